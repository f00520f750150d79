"""Stream correlators: what they are told, what they keep, and what they hand out."""

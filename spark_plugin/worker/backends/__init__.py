"""Which backend does the work, on which device, and what happens if that fails."""

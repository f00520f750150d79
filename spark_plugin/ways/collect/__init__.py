"""The way of two small sides: one job brings both to the driver, and workers join what it has collected."""

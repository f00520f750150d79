"""What `monotonically_increasing_id` says of a row."""

ROW_BITS = 33
ROW_MASK = (1 << ROW_BITS) - 1
"""Its lowest bits count the rows of a partition; those above number it."""

"""The interval join on a GPU."""

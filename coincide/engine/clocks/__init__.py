"""The errors of clocks, from events that two of them have seen, in one process."""

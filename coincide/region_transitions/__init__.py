"""Region transitions: their names, the decision on dwell times, and watches that the next event decides."""

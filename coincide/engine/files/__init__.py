"""Files: found, read, cut into slices of time, and written whole or not at all."""

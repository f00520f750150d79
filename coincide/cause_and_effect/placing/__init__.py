"""Events in buckets, which are cells of a grid or places, and which buckets hold partners of which."""

"""A condition on the columns of pairs, beside the timing condition: what users say, and its test."""

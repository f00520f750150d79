"""Sequences and coincidences: tuples of events from links, and which of them hold as a whole."""

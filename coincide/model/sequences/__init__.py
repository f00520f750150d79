"""Sequences and coincidences: the probability that all windows between several events hold."""

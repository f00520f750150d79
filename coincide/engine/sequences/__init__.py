"""Sequences and coincidences of three streams and more: one pass over the links between them."""

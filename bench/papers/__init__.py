"""Algorithms of the papers that only comparisons need: the product has better ones."""

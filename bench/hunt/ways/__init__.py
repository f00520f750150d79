"""The ways of joining, one file for each room of the product."""

"""Inputs of any format, read by PyArrow: where they are, how CSV is written, what their columns hold."""

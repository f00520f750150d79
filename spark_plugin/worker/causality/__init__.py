"""Causality joins of Arrow data in one process: arguments, coordinates, output."""

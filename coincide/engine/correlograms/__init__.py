"""Histograms of the delays between the events of two sides, and what chance gives."""

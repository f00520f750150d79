"""Histograms of delays: pairs counted by edges or one by one, and the masses of uncertain ones."""

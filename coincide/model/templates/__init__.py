"""Template histograms, and the tables that decide on them."""

"""Template histograms, and the exact times at which two of them meet a timing condition."""

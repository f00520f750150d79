"""The vocabulary: time, timestamps, conditions, and the formulas and state of each operator."""

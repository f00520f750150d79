"""The join of two sides: its arguments, its pairs, and the rows that come of them."""

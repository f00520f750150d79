"""Border crossings of readings."""

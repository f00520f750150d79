"""Border crossings on a GPU."""

"""Border crossings on the CPU."""

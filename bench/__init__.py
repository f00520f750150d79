"""Benchmarks: one experiment a file in `bench.experiments`, run by ``python -m bench run NAME``."""

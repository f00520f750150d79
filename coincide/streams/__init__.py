"""What a stream correlator is on any backend: what comes in, what waits, what goes out."""

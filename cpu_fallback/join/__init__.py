"""The join of events on the CPU."""

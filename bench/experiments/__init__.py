"""The experiments. Each file holds an `EXPERIMENT`; a file dropped in here is found by its name."""

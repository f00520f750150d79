"""The lazy correlators' block step on a GPU: what `bench.papers.streams.live_blocks` does on a CPU."""

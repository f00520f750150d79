"""The stream correlators' block step on the CPU: the lazy algorithms of Lee & Lee (2010), and classes."""

from cpu_fallback.streams.live_blocks import LiveBlocks

__all__ = ["LiveBlocks"]

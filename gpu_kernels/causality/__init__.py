"""The causality join on a GPU."""

from gpu_kernels.causality.causality_join import CausalityJoin

__all__ = ["CausalityJoin"]

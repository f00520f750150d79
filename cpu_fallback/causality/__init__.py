"""The causality join on the CPU."""

from cpu_fallback.causality.causality_join import CausalityJoin
from cpu_fallback.causality.clusters import cluster_labels

__all__ = ["CausalityJoin", "cluster_labels"]

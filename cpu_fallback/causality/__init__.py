"""The causality join on the CPU."""

from cpu_fallback.causality.best import Merits
from cpu_fallback.causality.causality_join import CausalityJoin
from cpu_fallback.causality.clusters import cluster_labels, labels_of_pairs

__all__ = ["CausalityJoin", "Merits", "cluster_labels", "labels_of_pairs"]

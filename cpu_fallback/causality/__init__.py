"""The causality join on the CPU."""

from cpu_fallback.causality.best import Merits
from cpu_fallback.causality.clusters import cluster_labels, labels_of_pairs
from cpu_fallback.causality.join import CausalityJoin

__all__ = ["CausalityJoin", "Merits", "cluster_labels", "labels_of_pairs"]

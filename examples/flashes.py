"""Located sources of lightning, joined to flashes."""

import numpy as np
import pyarrow as pa

from coincide import CausalityCondition, CorrelateOptions, Spatial, Temporal, clusters

rng = np.random.default_rng(5)
strokes = np.repeat(np.arange(40), 25)  # 40 flashes of 25 sources each, 20 km apart
sources = pa.table(
    {
        "id": np.arange(1_000),
        "time": strokes * 2.0 + np.tile(np.arange(25) * 0.01, 40),
        "x": strokes % 8 * 20.0 + rng.uniform(-1, 1, 1_000),
        "y": strokes // 8 * 20.0 + rng.uniform(-1, 1, 1_000),
    }
)
flashes = clusters(
    sources,
    CausalityCondition((Temporal("0s", "100ms"), Spatial(3))),
    place=("x", "y"),
    options=CorrelateOptions(unit="s", tick="ms"),
)
sizes = flashes["cluster"].value_counts().field("counts")
print(len(sizes), "flashes of", sorted(set(sizes.to_pylist())), "sources")

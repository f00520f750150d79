"""Which files `make test` leaves to `make test-slow`, next to single tests marked slow; which go first."""

from __future__ import annotations

from pathlib import Path

LATER = {
    "bench": "bench bench_borders bench_gpu bench_hunt",
    "bench/papers/streams": (
        "stream_buffers stream_counters stream_equality stream_histogram_input stream_histograms"
    ),
    "command_line": (
        "causality_command causality_pairs_command clocks_command clusters_command"
        " command_line_process command_line_spark command_line_ways doctor inputs_engines"
        " sequence_command spans_command warming"
    ),
    "cpu_fallback": "clocks",
    "end_to_end": "at_a_glance changed_sources front_ends",
    "engine": (
        "accidental_pairs aggregate_states causality_histograms one_stream publishing reports"
        " stream_options third_model ticks wide_columns"
    ),
    "engine/sequences": "accidental_sequences sequences",
    "gpu_kernels": "gpu_compilation virtual_gpu",
    "house": "extras front_ends imports",
    "model": "compiled kept_kernels",
    "spark_plugin/cluster": "spark_errors worker_python",
    "spark_plugin/frames": (
        "correlation correlation_columns correlation_input file_statistics statistics"
    ),
    "spark_plugin/operators": (
        "accidental_pairs_spark causality_pairs_spark clock_errors_spark sequences_spark"
        " spans_spark where_spark"
    ),
    "spark_plugin/streaming": "random_streams sequence_streams silent_sides",
    "spark_plugin/ways": "best_of_right_ways reports_of_actions",
    "spark_plugin/ways/broadcast": ("aggregates_of_parts broadcast spread streaming_sides unseen"),
    "spark_plugin/ways/exchange": (
        "cell_joins lengths packed_files packed_keys staying_row_groups"
    ),
    "spark_plugin/ways/files": (
        "direct_source direct_spark folder_columns folder_filters plain_frames tuples_of_files"
    ),
}
"""By folder; a file `test_clocks.py` is `clocks`. Each takes 7 s or more, of some 20 minutes in all."""

FIRST = (
    "gpu_kernels/test_virtual_gpu.py",
    "end_to_end/test_kafka.py",
    "gpu_kernels/test_virtual_gpu_programs.py",
    "bench/test_bench_experiments.py",
    "spark_plugin/streaming/test_restarts.py",
    "spark_plugin/streaming/test_sequence_streams.py",
    "gpu_kernels/test_gpu_compilation.py",
    "command_line/test_command_line_process.py",
    "spark_plugin/ways/test_contract.py",
)
"""Files that take a minute or more, longest first: else the last of them would keep one worker alone."""

HERE = Path(__file__).parent
ORDER = {HERE / name: place for place, name in enumerate(FIRST)}
FILES = frozenset(
    HERE / folder / f"test_{name}.py" for folder, names in LATER.items() for name in names.split()
)

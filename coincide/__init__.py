"""Joins event streams whose clocks cannot be trusted. Every public name of Coincide is found here.

Names are loaded when first used: `import coincide` needs neither Spark nor a GPU, nor does what is done
without them.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from coincide.borders.options import BorderOptions
    from coincide.causal_windows.options import WindowOptions
    from coincide.cause_and_effect.condition import CausalityCondition
    from coincide.cause_and_effect.predicates import (
        Ellipsoidal,
        Propagation,
        Spatial,
        SpeedRange,
        Temporal,
    )
    from coincide.cause_and_effect.spaces import Plane, Sphere
    from coincide.condition import TimingCondition, Window
    from coincide.errors import (
        BackendError,
        CoincideError,
        ConditionError,
        DataError,
        MemoryBudgetError,
        SchemaError,
    )
    from coincide.options import CorrelateOptions
    from coincide.predicates import Within, deadline, delay, mutual_deadline, within
    from coincide.templates.densities import templates_from_densities
    from coincide.templates.fitting import TemplateFit
    from coincide.templates.given import GivenTemplate, Templates
    from coincide.timestamps.histograms import HistogramEvents
    from coincide.timestamps.intervals import IntervalEvents
    from coincide.units import Tick
    from coincide.warnings import (
        CoincideWarning,
        CopiedRowsWarning,
        DistanceUnitWarning,
        DroppedRowsWarning,
        LateRowsWarning,
        NoPairsWarning,
        RoundedTimesWarning,
        ShortShiftsWarning,
        ToldTwiceWarning,
        UnmatchableRowsWarning,
    )
    from spark_plugin.operators.borders import (
        border_crossing_tables,
        border_crossings,
        inside_tables,
    )
    from spark_plugin.operators.causality import causality, causality_tables
    from spark_plugin.operators.clusters import clusters
    from spark_plugin.operators.explore import explore_tables
    from spark_plugin.operators.join import correlate
    from spark_plugin.operators.join_of_files import correlate_files
    from spark_plugin.operators.join_of_tables import correlate_tables
    from spark_plugin.operators.probability import qualifies, satisfaction_probability
    from spark_plugin.operators.streams import stream_correlator, stream_tables
    from spark_plugin.operators.transitions import transition_tables, transitions
    from spark_plugin.operators.window_recall import window_recall
    from spark_plugin.operators.windowed_causality import windowed_causality
    from spark_plugin.ways.files.source import register_source
    from spark_plugin.worker.arrow.template_frames import template_rows
    from spark_plugin.worker.borders.monitor import BorderMonitor
    from spark_plugin.worker.borders.reports import BorderReport, BorderSummary
    from spark_plugin.worker.clocks import Around, around, instants, intervals, resolution
    from spark_plugin.worker.delays import templates_from_delays
    from spark_plugin.worker.exploration.exploration import Exploration
    from spark_plugin.worker.histograms import Histograms, histograms
    from spark_plugin.worker.reports.accidental import AccidentalPairs
    from spark_plugin.worker.reports.reports import JoinReport, JoinSummary
    from spark_plugin.worker.streams.reports import StreamSummary
    from spark_plugin.worker.streams.stream_join import StreamJoin
    from spark_plugin.worker.transitions.monitor import TransitionMonitor
    from spark_plugin.worker.transitions.reports import TransitionReport, TransitionSummary
    from spark_plugin.worker.windowed_causality.reports import WindowReport, WindowSummary
    from spark_plugin.worker.windowed_causality.window import WindowedCausality

_HOMES = {
    "coincide.borders.options": ("BorderOptions",),
    "coincide.cause_and_effect.condition": ("CausalityCondition",),
    "coincide.cause_and_effect.predicates": (
        "Ellipsoidal", "Propagation", "Spatial", "SpeedRange", "Temporal",
    ),
    "coincide.cause_and_effect.spaces": ("Plane", "Sphere"),
    "coincide.condition": ("TimingCondition", "Window"),
    "coincide.errors": (
        "BackendError", "CoincideError", "ConditionError", "DataError", "MemoryBudgetError",
        "SchemaError",
    ),
    "coincide.options": ("CorrelateOptions",),
    "coincide.predicates": ("Within", "deadline", "delay", "mutual_deadline", "within"),
    "coincide.templates.densities": ("templates_from_densities",),
    "coincide.templates.fitting": ("TemplateFit",),
    "coincide.templates.given": ("GivenTemplate", "Templates"),
    "coincide.timestamps.histograms": ("HistogramEvents",),
    "coincide.timestamps.intervals": ("IntervalEvents",),
    "coincide.units": ("Tick",),
    "coincide.warnings": (
        "CoincideWarning", "CopiedRowsWarning", "DistanceUnitWarning", "DroppedRowsWarning",
        "LateRowsWarning",
        "NoPairsWarning", "RoundedTimesWarning", "ShortShiftsWarning", "ToldTwiceWarning",
        "UnmatchableRowsWarning",
    ),
    "coincide.causal_windows.options": ("WindowOptions",),
    "spark_plugin.operators.causality": ("causality", "causality_tables"),
    "spark_plugin.operators.clusters": ("clusters",),
    "spark_plugin.operators.borders": ("border_crossing_tables", "border_crossings", "inside_tables"),
    "spark_plugin.operators.explore": ("explore_tables",),
    "spark_plugin.operators.join": ("correlate",),
    "spark_plugin.operators.join_of_files": ("correlate_files",),
    "spark_plugin.operators.join_of_tables": ("correlate_tables",),
    "spark_plugin.operators.probability": ("qualifies", "satisfaction_probability"),
    "spark_plugin.operators.streams": ("stream_correlator", "stream_tables"),
    "spark_plugin.operators.transitions": ("transition_tables", "transitions"),
    "spark_plugin.ways.files.source": ("register_source",),
    "spark_plugin.worker.arrow.template_frames": ("template_rows",),
    "spark_plugin.worker.borders.monitor": ("BorderMonitor",),
    "spark_plugin.worker.borders.reports": ("BorderReport", "BorderSummary"),
    "spark_plugin.worker.clocks": ("Around", "around", "instants", "intervals", "resolution"),
    "spark_plugin.worker.delays": ("templates_from_delays",),
    "spark_plugin.worker.exploration.exploration": ("Exploration",),
    "spark_plugin.worker.histograms": ("Histograms", "histograms"),
    "spark_plugin.worker.reports.accidental": ("AccidentalPairs",),
    "spark_plugin.worker.reports.reports": ("JoinReport", "JoinSummary"),
    "spark_plugin.worker.streams.reports": ("StreamSummary",),
    "spark_plugin.worker.streams.stream_join": ("StreamJoin",),
    "spark_plugin.worker.transitions.monitor": ("TransitionMonitor",),
    "spark_plugin.worker.transitions.reports": ("TransitionReport", "TransitionSummary"),
    "spark_plugin.operators.window_recall": ("window_recall",),
    "spark_plugin.operators.windowed_causality": ("windowed_causality",),
    "spark_plugin.worker.windowed_causality.reports": ("WindowReport", "WindowSummary"),
    "spark_plugin.worker.windowed_causality.window": ("WindowedCausality",),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AccidentalPairs",
    "Around",
    "BackendError",
    "BorderMonitor",
    "BorderOptions",
    "BorderReport",
    "BorderSummary",
    "CausalityCondition",
    "CoincideError",
    "CoincideWarning",
    "ConditionError",
    "CopiedRowsWarning",
    "CorrelateOptions",
    "DataError",
    "DistanceUnitWarning",
    "DroppedRowsWarning",
    "Ellipsoidal",
    "Exploration",
    "GivenTemplate",
    "HistogramEvents",
    "Histograms",
    "IntervalEvents",
    "JoinReport",
    "JoinSummary",
    "LateRowsWarning",
    "MemoryBudgetError",
    "NoPairsWarning",
    "Plane",
    "Propagation",
    "RoundedTimesWarning",
    "SchemaError",
    "ShortShiftsWarning",
    "Spatial",
    "SpeedRange",
    "Sphere",
    "StreamJoin",
    "StreamSummary",
    "TemplateFit",
    "Templates",
    "Temporal",
    "Tick",
    "TimingCondition",
    "ToldTwiceWarning",
    "TransitionMonitor",
    "TransitionReport",
    "TransitionSummary",
    "UnmatchableRowsWarning",
    "Window",
    "WindowOptions",
    "WindowReport",
    "WindowSummary",
    "WindowedCausality",
    "Within",
    "__version__",
    "around",
    "border_crossing_tables",
    "border_crossings",
    "causality",
    "causality_tables",
    "clusters",
    "correlate",
    "correlate_files",
    "correlate_tables",
    "deadline",
    "delay",
    "explore_tables",
    "histograms",
    "inside_tables",
    "instants",
    "intervals",
    "mutual_deadline",
    "qualifies",
    "register_source",
    "resolution",
    "satisfaction_probability",
    "stream_correlator",
    "stream_tables",
    "template_rows",
    "templates_from_delays",
    "templates_from_densities",
    "transition_tables",
    "transitions",
    "window_recall",
    "windowed_causality",
    "within",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        found: Any = _version()
    elif name in _HOME:
        found = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def _version() -> str:
    try:
        return version("coincide")
    except PackageNotFoundError:  # run from its sources, such as a zip archive of them
        return "unknown"


def __dir__() -> list[str]:
    return sorted(__all__)

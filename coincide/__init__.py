"""Joins event streams whose clocks cannot be trusted. Every public name of Coincide is found here.

Names are loaded when first used: `import coincide` needs neither Spark nor a GPU, nor does what is done
without them.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from coincide.engine.borders.monitor import BorderMonitor
    from coincide.engine.borders.reports import BorderReport, BorderSummary
    from coincide.engine.borders.tables import border_crossing_tables, inside_tables
    from coincide.engine.causality.clusters import clusters
    from coincide.engine.causality.tables import causality_tables
    from coincide.engine.events.delays import templates_from_delays
    from coincide.engine.events.given_times import (
        Around,
        Histograms,
        around,
        histograms,
        instants,
        intervals,
        resolution,
    )
    from coincide.engine.events.template_frames import template_rows
    from coincide.engine.exploration.exploring import Exploration
    from coincide.engine.exploration.tables import explore_tables
    from coincide.engine.join.tables import correlate_tables
    from coincide.engine.reports.reports import AccidentalPairs, JoinReport, JoinSummary
    from coincide.engine.streams.correlators import stream_correlator, stream_tables
    from coincide.engine.streams.running import StreamSummary
    from coincide.engine.streams.stream_join import StreamJoin
    from coincide.engine.transitions.monitor import TransitionMonitor
    from coincide.engine.transitions.reports import TransitionReport, TransitionSummary
    from coincide.engine.transitions.tables import transition_tables
    from coincide.engine.windowed_causality.recall import window_recall
    from coincide.engine.windowed_causality.reports import WindowReport, WindowSummary
    from coincide.engine.windowed_causality.window import WindowedCausality
    from coincide.model.borders.options import BorderOptions
    from coincide.model.causality.condition import (
        CausalityCondition,
        Ellipsoidal,
        Propagation,
        Spatial,
        SpeedRange,
        Temporal,
    )
    from coincide.model.causality.spaces import Plane, Sphere
    from coincide.model.condition import (
        TimingCondition,
        Window,
        Within,
        deadline,
        delay,
        mutual_deadline,
        within,
    )
    from coincide.model.errors import (
        BackendError,
        CoincideError,
        CoincideWarning,
        ConditionError,
        CopiedRowsWarning,
        DataError,
        DistanceUnitWarning,
        DroppedRowsWarning,
        LateRowsWarning,
        MemoryBudgetError,
        NoPairsWarning,
        RoundedTimesWarning,
        SchemaError,
        ShortShiftsWarning,
        ToldTwiceWarning,
        UnmatchableRowsWarning,
    )
    from coincide.model.options import CorrelateOptions
    from coincide.model.templates.fitting import TemplateFit, templates_from_densities
    from coincide.model.templates.template import GivenTemplate, Templates
    from coincide.model.timestamps.histograms import HistogramEvents
    from coincide.model.timestamps.intervals import IntervalEvents
    from coincide.model.units import Tick
    from coincide.model.windowed_causality import WindowOptions
    from spark_plugin.operators.borders import border_crossings
    from spark_plugin.operators.causality import causality
    from spark_plugin.operators.join import correlate, correlate_files
    from spark_plugin.operators.probability import qualifies, satisfaction_probability
    from spark_plugin.operators.transitions import transitions
    from spark_plugin.operators.windowed_causality import windowed_causality
    from spark_plugin.ways.files.source import register_source

_HOMES = {
    "coincide.engine.borders.monitor": ("BorderMonitor",),
    "coincide.engine.borders.reports": ("BorderReport", "BorderSummary"),
    "coincide.engine.causality.clusters": ("clusters",),
    "coincide.engine.events.delays": ("templates_from_delays",),
    "coincide.engine.events.given_times": (
        "Around", "Histograms", "around", "histograms", "instants", "intervals", "resolution",
    ),
    "coincide.engine.events.template_frames": ("template_rows",),
    "coincide.engine.exploration.exploring": ("Exploration",),
    "coincide.engine.exploration.tables": ("explore_tables",),
    "coincide.engine.join.tables": ("correlate_tables",),
    "coincide.engine.reports.reports": ("AccidentalPairs", "JoinReport", "JoinSummary"),
    "coincide.engine.streams.correlators": ("stream_correlator", "stream_tables"),
    "coincide.engine.streams.running": ("StreamSummary",),
    "coincide.engine.streams.stream_join": ("StreamJoin",),
    "coincide.engine.transitions.monitor": ("TransitionMonitor",),
    "coincide.engine.transitions.reports": ("TransitionReport", "TransitionSummary"),
    "coincide.engine.windowed_causality.recall": ("window_recall",),
    "coincide.engine.windowed_causality.reports": ("WindowReport", "WindowSummary"),
    "coincide.engine.windowed_causality.window": ("WindowedCausality",),
    "coincide.model.borders.options": ("BorderOptions",),
    "coincide.model.causality.condition": (
        "CausalityCondition", "Ellipsoidal", "Propagation", "Spatial", "SpeedRange", "Temporal",
    ),
    "coincide.model.causality.spaces": ("Plane", "Sphere"),
    "coincide.model.condition": (
        "TimingCondition", "Window", "Within", "deadline", "delay", "mutual_deadline", "within",
    ),
    "coincide.model.errors": (
        "BackendError", "CoincideError", "CoincideWarning", "ConditionError", "CopiedRowsWarning",
        "DataError", "DistanceUnitWarning", "DroppedRowsWarning", "LateRowsWarning",
        "MemoryBudgetError", "NoPairsWarning", "RoundedTimesWarning", "SchemaError",
        "ShortShiftsWarning", "ToldTwiceWarning", "UnmatchableRowsWarning",
    ),
    "coincide.model.options": ("CorrelateOptions",),
    "coincide.model.templates.fitting": ("TemplateFit", "templates_from_densities"),
    "coincide.model.templates.template": ("GivenTemplate", "Templates"),
    "coincide.model.timestamps.histograms": ("HistogramEvents",),
    "coincide.model.timestamps.intervals": ("IntervalEvents",),
    "coincide.model.units": ("Tick",),
    "coincide.model.windowed_causality": ("WindowOptions",),
    "spark_plugin.operators.borders": ("border_crossings",),
    "coincide.engine.borders.tables": ("border_crossing_tables", "inside_tables"),
    "spark_plugin.operators.causality": ("causality",),
    "coincide.engine.causality.tables": ("causality_tables",),
    "spark_plugin.operators.join": ("correlate", "correlate_files"),
    "spark_plugin.operators.probability": ("qualifies", "satisfaction_probability"),
    "spark_plugin.operators.transitions": ("transitions",),
    "coincide.engine.transitions.tables": ("transition_tables",),
    "spark_plugin.operators.windowed_causality": ("windowed_causality",),
    "spark_plugin.ways.files.source": ("register_source",),
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

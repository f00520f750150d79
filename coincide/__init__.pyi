"""Every public name of Coincide, and the module that holds it: `coincide/__init__.py` reads this."""

from coincide.engine.accidental.pairs import AccidentalPairs as AccidentalPairs
from coincide.engine.accidental.sequences import (
    AccidentalSequences as AccidentalSequences,
    accidental_sequence_tables as accidental_sequence_tables,
)
from coincide.engine.accidental.tables import accidental_pair_tables as accidental_pair_tables
from coincide.engine.arrays.events import EventArrays as EventArrays
from coincide.engine.arrays.asked import ArrayMatches as ArrayMatches
from coincide.engine.arrays.join import correlate_arrays as correlate_arrays
from coincide.engine.borders.reports import (
    BorderReport as BorderReport,
    BorderSummary as BorderSummary,
)
from coincide.engine.borders.tables import (
    BorderMonitor as BorderMonitor,
    border_crossing_tables as border_crossing_tables,
    inside_tables as inside_tables,
)
from coincide.engine.causality.clusters import clusters as clusters
from coincide.engine.causality.join import causality_tables as causality_tables
from coincide.engine.clocks.applying import corrected as corrected
from coincide.engine.clocks.tables import clock_error_tables as clock_error_tables
from coincide.engine.correlograms.histogram import delay_histogram as delay_histogram
from coincide.engine.events.corrected import (
    CorrectedClock as CorrectedClock,
    corrected_clock as corrected_clock,
)
from coincide.engine.events.spans import Spans as Spans, spans as spans
from coincide.engine.events.template_frames import templates_from_delays as templates_from_delays
from coincide.engine.events.time_arguments import (
    Around as Around,
    Histograms as Histograms,
    around as around,
    histograms as histograms,
    instants as instants,
    intervals as intervals,
    resolution as resolution,
)
from coincide.engine.events.template_frames import template_rows as template_rows
from coincide.engine.events.unwrapping import unwrapped as unwrapped
from coincide.engine.exploration.exploring import (
    Exploration as Exploration,
    explore_tables as explore_tables,
)
from coincide.engine.join.join import correlate_tables as correlate_tables
from coincide.engine.join.coverage import (
    coverage as coverage,
    gaps as gaps,
    labelled as labelled,
    merged as merged,
)
from coincide.engine.join.difference import covered as covered, difference as difference
from coincide.engine.reports.join_report import (
    JoinReport as JoinReport,
    JoinSummary as JoinSummary,
)
from coincide.engine.sequences.coincidences import coincidence_tables as coincidence_tables
from coincide.engine.sequences.reports import (
    SequenceReport as SequenceReport,
    SequenceSummary as SequenceSummary,
)
from coincide.engine.sequences.tables import sequence_tables as sequence_tables
from coincide.engine.streams.running import StreamSummary as StreamSummary
from coincide.engine.streams.stream_join import StreamJoin as StreamJoin
from coincide.engine.streams.stream_tables import stream_tables as stream_tables
from coincide.engine.transitions.monitor import TransitionMonitor as TransitionMonitor
from coincide.engine.transitions.reports import (
    TransitionReport as TransitionReport,
    TransitionSummary as TransitionSummary,
)
from coincide.engine.transitions.monitor import transition_tables as transition_tables
from coincide.engine.windowed_causality.recall import window_recall as window_recall
from coincide.engine.windowed_causality.reports import (
    WindowReport as WindowReport,
    WindowSummary as WindowSummary,
)
from coincide.engine.windowed_causality.window import WindowedCausality as WindowedCausality
from coincide.model.borders.options import BorderOptions as BorderOptions
from coincide.model.causality.condition import (
    CausalityCondition as CausalityCondition,
    Ellipsoidal as Ellipsoidal,
    Propagation as Propagation,
    Spatial as Spatial,
    SpeedRange as SpeedRange,
    Temporal as Temporal,
)
from coincide.model.causality.spaces import Plane as Plane, Sphere as Sphere
from coincide.model.condition import (
    TimingCondition as TimingCondition,
    Window as Window,
    Within as Within,
    deadline as deadline,
    delay as delay,
    mutual_deadline as mutual_deadline,
    within as within,
)
from coincide.model.errors import (
    AheadRowsWarning as AheadRowsWarning,
    BackendError as BackendError,
    ClockLimitsWarning as ClockLimitsWarning,
    CoincideError as CoincideError,
    CoincideWarning as CoincideWarning,
    ConditionError as ConditionError,
    CopiedRowsWarning as CopiedRowsWarning,
    DataError as DataError,
    DistanceUnitWarning as DistanceUnitWarning,
    DroppedRowsWarning as DroppedRowsWarning,
    EarlyAnswersWarning as EarlyAnswersWarning,
    KernelCacheWarning as KernelCacheWarning,
    LargeSlicesWarning as LargeSlicesWarning,
    LateRowsWarning as LateRowsWarning,
    MemoryBudgetError as MemoryBudgetError,
    NoPairsWarning as NoPairsWarning,
    RoundedTimesWarning as RoundedTimesWarning,
    SchemaError as SchemaError,
    ShortShiftsWarning as ShortShiftsWarning,
    AmbiguousCrossingsWarning as AmbiguousCrossingsWarning,
    UnmatchableRowsWarning as UnmatchableRowsWarning,
)
from coincide.model.relations import (
    SpanRelation as SpanRelation,
    containing as containing,
    following as following,
    inside as inside,
    overlapping as overlapping,
    relation as relation,
)
from coincide.model.options import CorrelateOptions as CorrelateOptions
from coincide.model.templates.fitting import (
    TemplateFit as TemplateFit,
    templates_from_densities as templates_from_densities,
)
from coincide.model.templates.template import GivenTemplate as GivenTemplate, Templates as Templates
from coincide.model.timestamps.histograms import HistogramEvents as HistogramEvents
from coincide.model.timestamps.intervals import IntervalEvents as IntervalEvents
from coincide.model.units import Tick as Tick
from coincide.model.windowed_causality import WindowOptions as WindowOptions
from spark_plugin.cluster.spark_errors import spark_errors_as_ours as spark_errors_as_ours
from spark_plugin.operators.accidental import accidental_pairs as accidental_pairs
from spark_plugin.operators.borders import (
    border_crossing_streams as border_crossing_streams,
    border_crossings as border_crossings,
)
from spark_plugin.operators.causality import (
    causality as causality,
    causality_streams as causality_streams,
)
from spark_plugin.operators.clocks import clock_errors as clock_errors
from spark_plugin.operators.join import correlate as correlate, correlate_files as correlate_files
from spark_plugin.operators.probability import (
    qualifies as qualifies,
    satisfaction_probability as satisfaction_probability,
)
from spark_plugin.operators.sequence_streams import (
    coincidence_streams as coincidence_streams,
    sequence_streams as sequence_streams,
)
from spark_plugin.operators.sequences import coincidences as coincidences, sequences as sequences
from spark_plugin.operators.streams import correlate_streams as correlate_streams
from spark_plugin.operators.sweeps import sweep as sweep
from spark_plugin.operators.transitions import (
    transition_streams as transition_streams,
    transitions as transitions,
)
from spark_plugin.operators.windowed_causality import (
    windowed_causality as windowed_causality,
    windowed_causality_streams as windowed_causality_streams,
)
from spark_plugin.ways.files.source import register_source as register_source

__version__: str

"""How a join is run, which changes no pair that it finds; and which matches of an event it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import ClassVar, Literal, get_args

from coincide.model.errors import ConditionError, argument, brief, option
from coincide.model.sides import unit_option
from coincide.model.units import Duration, name_units

MAX_CLASSES = 16
"""More would save hardly a probe: lengths that differ little have nearly the same bands."""

How = Literal["inner", "left", "right", "full", "semi", "anti"]
Emit = Literal["pairs", "lists", "counts", "best", "aggregates"]
Invalid = Literal["raise", "drop"]
Backend = Literal["auto", "cpu", "gpu"]
Devices = Literal["one", "all"]
"""Which GPUs of one process a join uses."""
SideName = Literal["left", "right"]
Way = Literal[
    "auto", "files", "broadcast", "broadcast-left", "broadcast-right", "broadcast-both", "exchange"
]
"""How the events of two sides meet."""

MOST_SLICES = 1_000_000
"""Each is a task of Spark, whose driver keeps a record of every one."""
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class CorrelateOptions:
    """Options of `correlate` and `correlate_tables`.

    Parameters
    ----------
    unit : str or None
        What a number in the time columns counts: ``"ps"``, ``"ns"``, ``"us"``, ``"ms"``, ... Needed
        for float columns, and for integer columns when durations are given as strings. Timestamps need
        none, but ``"ns"`` where they are finer than 1 us; durations have their own.
    left_unit, right_unit : str or None
        The same for one side, where the sides differ; None: `unit`.
    tick : str or None
        The unit in which times are counted. None: us for timestamps, ns for floats, and for integers
        the finer unit of the two sides. Only floats are rounded; other times that a tick would round
        are an error.
    invalid : {"raise", "drop"}
        What to do with rows whose time is invalid (min > max, NaN, infinity, out of range, longer
        than a declared longest length): raise an error, or skip and count them.
    left_longest, right_longest : int, str or None
        Declared longest length of a timestamp (the papers' pi) of each side. A longer one is invalid.
    slices : int or None
        Number of time slices, and so of Spark tasks, at most 1,000,000. None: chosen from the data and
        the cluster.
    slice_rows, slice_bytes : int
        Rows, and bytes of rows, that a slice should hold without `slices`. They bound the memory of a
        worker, which takes two to three times the bytes. Where two small sides are collected, a task
        may hold this many rows of each.
    way : {"auto", "files", "broadcast", "broadcast-left", "broadcast-right", "broadcast-both", "exchange"}
        How events meet on Spark. ``"files"``: tasks read their own parts of Parquet files, which must
        lie nearly in time order. ``"broadcast"``: the smaller side, or the one that is named, goes to
        every worker, so that the other need not be shuffled; or both do. ``"exchange"``: both sides are
        shuffled.
        ``"auto"`` takes the first of these that fits. Files, if you give files that allow it. A
        broadcast of both sides, if Spark takes both for small. An exchange without a planning job, if
        Spark knows that both sides are large, and the condition says how far pairs reach. A broadcast
        of a side of at most `broadcast_bytes`, if you give no `slices` and an exchange would cost more.
        Else an exchange. Any other value holds whatever the sizes.
    broadcast_bytes : int
        Most bytes, on the way to the workers, of one side that is broadcast, or of both sides that are
        collected.
    batch_pairs : int or None
        Pairs in one output batch; None: 65,536 in a Spark worker, 1,000,000 elsewhere. A batch exceeds
        it only by the matches of one event.
    max_pairs : int or None
        Most pairs that an answer of pairs or lists may have; more are a `MemoryBudgetError` before any
        is made. None: in one process what fits in the memory that is free, or on the disk of an
        output. On Spark each task counts its own; functions and commands that write files also count
        all, before they publish any. ``matching="optimal"`` counts the pairs that it chooses from.
    classes : int or None
        Length classes a side (K); None: chosen from the data. 1 is the papers' lazy algorithm.
    threads : int or None
        Threads of one process; None: every core in a single process, one in a Spark worker.
    devices : {"one", "all"}
        With ``backend="gpu"``, which GPUs a join of one process uses: one, or all that the process sees
        (``CUDA_VISIBLE_DEVICES``). ``"all"`` deals left events over the GPUs, each of which holds both
        sides. On Spark each task has the one that Spark gives it.
    """

    unit: str | None = None
    left_unit: str | None = None
    right_unit: str | None = None
    tick: str | None = None
    invalid: Invalid = "raise"
    left_longest: Duration | None = None
    right_longest: Duration | None = None
    slices: int | None = None
    slice_rows: int = 1_000_000
    slice_bytes: int = 256 << 20
    way: Way = "auto"
    broadcast_bytes: int = 64 << 20
    batch_pairs: int | None = None
    max_pairs: int | None = None
    classes: int | None = None
    threads: int | None = None
    devices: Devices = "one"

    def __post_init__(self) -> None:
        name_units(self, "unit", "left_unit", "right_unit", "tick")
        check_choice("invalid", self.invalid, get_args(Invalid))
        check_choice("way", self.way, get_args(Way))
        check_choice("devices", self.devices, get_args(Devices))
        for name in ("slice_rows", "slice_bytes", "batch_pairs", "threads"):
            check_count(name, getattr(self, name))
        check_count("broadcast_bytes", self.broadcast_bytes, 0)
        check_count("max_pairs", self.max_pairs, 0)
        check_count("slices", self.slices, most=MOST_SLICES)
        check_count("classes", self.classes, most=MAX_CLASSES)

    @property
    def small_side(self) -> SideName | None:
        """The side that `way` names to go to every worker."""
        sides: dict[str, SideName] = {"broadcast-left": "left", "broadcast-right": "right"}
        return sides.get(self.way)

    def unit_of(self, side: str) -> str | None:
        """What a number in the time columns of a side counts: `coincide.model.sides.unit_option`."""
        given: str | None = getattr(self, unit_option(side))
        return given or self.unit


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not a choice."""
    if value not in choices:
        raise ConditionError(
            f"{argument(name)} must be one of {', '.join(choices)} (found {brief(value)})."
        )


def check_truth(name: str, value: object) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool):
        raise ConditionError(f"{argument(name)} must be True or False (found {brief(value)}).")


def check_options(given: object, kind: type) -> None:
    """Refuse what are no options of a kind."""
    if not isinstance(given, kind):
        raise ConditionError(
            f"{argument('options')} must be {kind.__name__}(...) (found {brief(given)})."
        )


def check_no_most(options: CorrelateOptions, what: str) -> None:
    """Refuse a bound on pairs where an answer has no pairs, or no end."""
    if options.max_pairs is not None:
        raise ConditionError(
            f"{option('max_pairs', options.max_pairs)} bounds the pairs that a join of whole tables"
            f" returns, and {what}. Remove it."
        )


def check_one_device(options: CorrelateOptions, what: str) -> None:
    """Refuse several GPUs where an answer is made on one at most."""
    check_options(options, CorrelateOptions)
    if options.devices != "one":
        raise ConditionError(
            f"{option('devices', options.devices)} deals a join in time over the GPUs of one process,"
            f" and {what}. Remove it."
        )


def check_devices(options: CorrelateOptions, backend: Backend) -> None:
    """Refuse several GPUs for a backend that may be another one."""
    if options.devices != "one" and backend != "gpu":
        raise ConditionError(
            f"{option('devices', options.devices)} needs a GPU (found {argument('backend', backend)})."
            f" Use {argument('backend', 'gpu')}, or remove it."
        )


def check_count(name: str, value: int | None, least: int = 1, most: int = _LARGEST) -> None:
    """Refuse what is not a whole number from `least` to `most`; None is left to be chosen."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConditionError(
            f"{argument(name)} must be an int of at least {least} (found {brief(value)})."
        )
    if value > most:
        raise ConditionError(f"{argument(name)} must be at most {most:,} (found {brief(value)}).")


@dataclass(frozen=True)
class KeptRows:
    """A word of `how`: which rows the output has."""

    word: How
    pairs: bool = True  # else left events alone, each once
    left_alone: bool = False  # left events without a match
    right_alone: bool = False


KEPT_ROWS: dict[How, KeptRows] = {
    rows.word: rows
    for rows in (
        KeptRows("inner"),
        KeptRows("left", left_alone=True),
        KeptRows("right", right_alone=True),
        KeptRows("full", left_alone=True, right_alone=True),
        KeptRows("semi", pairs=False),
        KeptRows("anti", pairs=False, left_alone=True),
    )
}
"""All words that say which rows there are."""


@dataclass(frozen=True)
class OutputRow:
    """A word of `emit`: what a row of the output is, and what follows from that."""

    word: Emit
    pair_work: float  # in rows that cross to a worker
    gives: str  # in words, with {pair}, {event} and {matches}
    is_a_pair: bool = False  # its own; else a row belongs to a left event
    in_lists: bool = False  # all matches of an event
    is_best: bool = False  # the matches of an event that are chosen
    holds_matches: bool = True  # what a match has, such as a probability
    totals: tuple[str, ...] = ()  # columns of whole numbers that add up over matches, from 0
    is_aggregated: bool = False  # columns that all matches of an event have together

    @property
    def holds_all_pairs(self) -> bool:
        """Whether each pair is in the output."""
        return self.is_a_pair or self.in_lists

    @property
    def may_be_of_right(self) -> bool:
        """Whether with ``how="right"`` a row belongs to a right event, and tells of its left matches."""
        return self.is_best or self.is_aggregated

    @property
    def said(self) -> str:
        """What messages call it."""
        return argument("emit", self.word)


OUTPUT_ROWS: dict[Emit, OutputRow] = {
    row.word: row
    for row in (
        OutputRow("pairs", 0.3, "{pair}", is_a_pair=True),
        OutputRow("lists", 0.1, "a {event} with arrays of its {matches}", in_lists=True),
        OutputRow(
            "counts", 0.02, "a {event} with their number", holds_matches=False, totals=("matches",)
        ),
        OutputRow("best", 0.1, "a {event} with the best one, as --prefer says", is_best=True),
        OutputRow(
            "aggregates",
            0.02,
            "a {event} with what --aggregate says of them",
            holds_matches=False,
            is_aggregated=True,
        ),
    )
}
"""All words that say what a row is: what rows need, and what refuses them, is asked here."""


class Output:
    """What an output has by `how` and `emit`, which arguments and specs both name."""

    how: How
    emit: Emit

    @property
    def kept(self) -> KeptRows:
        """Which rows there are."""
        return KEPT_ROWS[self.how]

    @property
    def row(self) -> OutputRow:
        """What a row is, where left events are not all that there is: `one_row_per_event`."""
        return OUTPUT_ROWS[self.emit]

    @property
    def one_row_per_event(self) -> bool:
        """Whether rows are left events alone: semi and anti."""
        return not self.kept.pairs

    @property
    def outputs_matches(self) -> bool:
        """Whether right columns are in the output: else they are not needed for it."""
        return self.row.holds_matches and not self.one_row_per_event

    @property
    def is_pairs_alone(self) -> bool:
        """Whether a row is final as soon as its pair is found, whatever other pairs there are."""
        return self.how == "inner" and self.row.is_a_pair


PreferWord = Literal["probability", "nearest", "first", "last"]
Prefer = PreferWord | str | Sequence[str]
"""What makes a match the best one: a word, or a column of it; or that, and then a column."""
PreferEffectWord = Literal["probability", "nearest", "first", "last", "distance"]
PreferEffect = PreferEffectWord | str | Sequence[str]
"""What makes an effect the best one: also where it is."""


Delay = Literal["nearest", "first", "last"]
"""Which delay of a match is the best one: that nearest to 0, the least, the greatest."""


@dataclass(frozen=True)
class PreferenceWord:
    """A word of `prefer`: what it asks for, and what takes it."""

    word: str
    takes: str  # which match is the best one, in words
    delay: Delay | None = None  # by which matches are ordered
    is_merit: bool = False  # what backends know of pairs
    is_alike: bool = False  # to both events of a pair, so that a matching of one stream takes it
    is_a_sum: bool = False  # whose best value an optimal matching finds
    needs_places: bool = False  # by which matches are ordered

    option: ClassVar[str] = argument("prefer")
    """What messages call the option."""

    @property
    def said(self) -> str:
        """What messages call the word."""
        return argument("prefer", self.word)


PREFERENCES: dict[str, PreferenceWord] = {
    each.word: each
    for each in (
        PreferenceWord(
            "probability", "the most probable", is_merit=True, is_alike=True, is_a_sum=True
        ),
        PreferenceWord(
            "nearest", "that with the nearest midpoint", "nearest", is_alike=True, is_a_sum=True
        ),
        PreferenceWord("first", "the earliest", "first"),
        PreferenceWord("last", "the latest", "last"),
        PreferenceWord("distance", "the nearest in space", is_alike=True, needs_places=True),
    )
}
"""All words that say which match is the best one: refusals and help come from here."""
_A_COLUMN = PreferenceWord("", "that with the best value of a column")
Ties = Literal["order", "all"]
"""Whether the order of rows decides among equal matches, or all of them count."""
Matching = Literal["mutual", "optimal", "unambiguous"]
"""How events are matched one to one."""


@dataclass(frozen=True)
class MatchingWord:
    """A word of `matching`: which pairs it gives, what it must see, and what it takes."""

    word: Matching
    gives: str  # which pairs, in words
    ranks: bool = True  # by what `prefer` says; else no match is better than another
    of_groups: bool = False  # a sum over connected groups of events, each of which it sees whole
    takes_one_stream: bool = True
    takes_spans: bool = True

    option: ClassVar[str] = argument("matching")
    """What messages call the option."""

    @property
    def said(self) -> str:
        """What messages call the word."""
        return argument("matching", self.word)


MATCHINGS: dict[Matching, MatchingWord] = {
    each.word: each
    for each in (
        MatchingWord("mutual", "each is the other's best"),
        MatchingWord(
            "optimal",
            f"those that are most probable together; with {PREFERENCES['nearest'].said} the most"
            " pairs with the least distances",
            of_groups=True, takes_one_stream=False, takes_spans=False,
        ),
        MatchingWord("unambiguous", "neither has another", ranks=False),
    )
}  # fmt: skip
"""All words that say how events are matched: what tasks must see is asked here; so is what is refused."""

MOST_MATCHES = 10_000
"""The most that `k` can be: that many are kept at hand for each event."""
LARGEST_GROUP = 2_000
"""Events of a connected group, unless a user gives another number: assigned in a second or two."""
MOST_IN_GROUP = 20_000
"""Its table of pairs takes up to 0.8 GB."""


def words_of(has: Callable[[PreferenceWord], bool]) -> str:
    """The words of `prefer` that have something, as messages list them."""
    return " or ".join(word.said for word in PREFERENCES.values() if has(word))


@dataclass(frozen=True)
class Preferred:
    """A column of a match by which the best one is chosen, and whether the largest value is best."""

    column: str
    is_descending: bool = False

    @classmethod
    def of(cls, text: str) -> Preferred:
        """As it is written: ``"snr"`` and ``"+snr"`` prefer the least, ``"-snr"`` the largest."""
        return cls(text[1:] if text[0] in "+-" else text, text[0] == "-")


def preferences_of(given: PreferEffect) -> tuple[str, str | None]:
    """What says which match is the best one, and the column that does so among those equal in it."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        return given, None  # `MatchChoice` refuses what is no text
    if not 1 <= len(given) <= 2:
        raise ConditionError(
            f"{argument('prefer')} takes one preference, or one and then a column, such as 'last' and"
            f" '-seq' (found {brief(given)}). Give one or two."
        )
    return given[0], given[1] if len(given) == 2 else None


@dataclass(frozen=True)
class MatchChoice:
    """Which matches of an event a join returns."""

    prefer: str = "probability"
    k: int = 1  # How many matches of each left event, the best first
    matching: Matching | None = None
    largest_group: int = LARGEST_GROUP
    ties: Ties = "order"
    then: str | None = None  # The column that decides among matches equal in what `prefer` says

    preferences: ClassVar[tuple[str, ...]] = tuple(
        name for name, word in PREFERENCES.items() if not word.needs_places
    )

    def __post_init__(self) -> None:
        self._check_prefer()
        self._check_then()
        check_choice("ties", self.ties, get_args(Ties))
        if self.k is None:
            raise ConditionError(f"{argument('k')} must be an int of at least 1 (found None).")
        check_count("k", self.k, most=MOST_MATCHES)
        if self.largest_group is None:
            raise ConditionError(
                f"{argument('largest_group')} must be an int of at least 2 (found None)."
            )
        check_count("largest_group", self.largest_group, 2, MOST_IN_GROUP)
        if self.matching is not None:
            check_choice("matching", self.matching, get_args(Matching))
        if not self.is_of_groups and self.largest_group != LARGEST_GROUP:
            raise ConditionError(
                f"{argument('largest_group')} applies to {MATCHINGS['optimal'].said} alone,"
                " which assigns whole groups. Remove it."
            )
        if self.one_to_one is not None:
            self._check_matching(self.one_to_one)

    def _check_matching(self, matching: MatchingWord) -> None:
        """Refuse what chooses among matches otherwise."""
        if self.may_be_many:
            many = argument("k", self.k) if self.ties == "order" else argument("ties", self.ties)
            raise ConditionError(
                f"{matching.said} gives an event at most one match. Remove {many}."
            )
        if not matching.ranks and self.asked != "probability":
            raise ConditionError(
                f"{matching.said} takes pairs whose events have no other match, so there is no"
                f" choice to make. Remove {argument('prefer', self.asked)}."
            )
        if matching.of_groups and (self.then or not self.word.is_a_sum):
            sums = words_of(lambda word: word.is_a_sum)
            raise ConditionError(
                f"{matching.said} optimizes a sum, so it takes {sums} (found"
                f" {argument('prefer', self.asked)}). Use one of these, or"
                f" {MATCHINGS['mutual'].said}."
            )

    def _check_prefer(self) -> None:
        words, given = self.preferences, self.prefer
        parts = [each.strip() for each in given.split(",")] if isinstance(given, str) else []
        are_two = len(parts) == 2 and (parts[0] in words or parts[1].startswith(("+", "-")))
        if are_two and self.then is None:
            raise ConditionError(
                f"{argument('prefer')} takes two preferences as a list (found {given!r}). Write"
                f" {argument('prefer', parts)}."
            )
        if isinstance(given, str) and given.strip("+-") and not self._is_slip:
            return
        found = f"(found {given!r})."
        if self._is_slip:
            found += f" If a column has this name, write '+{given}'."
        raise ConditionError(
            f"{argument('prefer')} must be one of {', '.join(words)}, or a column: 'snr' prefers"
            f" its least value, '-snr' its largest {found}"
        )

    def _check_then(self) -> None:
        then = self.then
        if then is None or (
            isinstance(then, str) and then.strip("+-") and then not in self.preferences
        ):
            return
        found = f"(found {then!r})."
        if then in self.preferences:
            found += f" If a column has this name, write '+{then}'."
        raise ConditionError(
            f"the second of {argument('prefer')} must be a column: 'seq' prefers its least value,"
            f" '-seq' its largest {found}"
        )

    @property
    def _is_slip(self) -> bool:
        """Whether it looks like a word that was meant."""
        given = self.prefer
        if not isinstance(given, str) or given in self.preferences or given[:1] in "+-":
            return False
        near = get_close_matches(given, self.preferences, 1, 0.8)
        return any(abs(len(word) - len(given)) < 2 for word in near)

    @property
    def asked(self) -> str | list[str]:
        """What is preferred, as one would write it."""
        return self.prefer if self.then is None else [self.prefer, self.then]

    @property
    def one_to_one(self) -> MatchingWord | None:
        """How events are matched one to one, if they are."""
        return None if self.matching is None else MATCHINGS[self.matching]

    @property
    def is_of_groups(self) -> bool:
        """Whether events are matched by whole connected groups."""
        return self.one_to_one is not None and self.one_to_one.of_groups

    def called(self, *, is_one_stream: bool) -> str:
        """What messages call it, of one stream by that."""
        return f"matching of {'one stream' if is_one_stream else repr(self.matching)}"

    @property
    def word(self) -> PreferenceWord:
        """What is preferred first, and what takes it."""
        return _A_COLUMN if self.is_by_column else PREFERENCES[self.prefer]

    @property
    def is_by_column(self) -> bool:
        """Whether a column is preferred first, and no word."""
        return self.prefer not in self.preferences

    @property
    def columns(self) -> list[Preferred]:
        """The columns of a match by which the best one is chosen, the first one first."""
        named = [self.prefer] if self.is_by_column else []
        return [Preferred.of(each) for each in (*named, self.then) if each is not None]

    @property
    def is_most_probable(self) -> bool:
        """Whether the best match is asked for, and it is the most probable one."""
        return self.asked == "probability" and not self.may_be_many

    @property
    def may_be_many(self) -> bool:
        """Whether an event may have more than one match."""
        return self.k > 1 or self.ties == "all"

    def check_output(self, output: Output) -> None:
        """Refuse what has no meaning for an output."""
        if self.one_to_one is not None:
            how, is_one_sided = output.how, not output.kept.pairs or output.kept.right_alone
            if is_one_sided or not (output.row.is_a_pair or output.row.is_best):
                shape = argument("how", how) if is_one_sided else output.row.said
                if how == "right":
                    shape += ", or swap the sides and mirror the window"
                raise ConditionError(
                    f"{self.one_to_one.said} gives one pair a row, and with"
                    f" {argument('how', 'left')} also left events without a pair. Remove {shape}."
                )
            return
        if output.row.is_best or self.is_most_probable:
            return
        is_k = self.asked == "probability"
        said = argument("k", self.k) if is_k else argument("prefer", self.asked)
        if is_k and self.k == 1:
            said = argument("ties", self.ties)
        best = "" if output.row.is_aggregated else f"Add {OUTPUT_ROWS['best'].said}, or remove"
        raise ConditionError(
            f"{said} chooses among matches, but {output.row.said} returns all matches or none."
            f" {best or 'Remove'} {said}."
        )


@dataclass(frozen=True)
class EffectChoice(MatchChoice):
    """Which effects of a cause a join returns: as `MatchChoice`, also by their distance in space."""

    preferences: ClassVar[tuple[str, ...]] = tuple(PREFERENCES)


MOST_PROBABLE = MatchChoice()
"""The choice where nothing else is asked for."""

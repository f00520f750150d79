"""Questions of sequences for Spark: random ones, whose answers of tables and of DataFrames are compared."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from coincide import CorrelateOptions, sequence_tables
from coincide.model.options import Way
from tests.helpers.sequence_cases import Case, drawn_case


@dataclass(frozen=True)
class Asked:
    """A question, and options that only tasks have."""

    words: dict[str, Any]
    options: CorrelateOptions

    @property
    def on_spark(self) -> dict[str, Any]:
        """The question for DataFrames."""
        return {**self.words, "options": self.options}


def drawn_on_spark(rng: random.Random, *, is_apart: bool) -> Case:
    """Streams of few events, or of more over a time that is cut into several cells."""
    if rng.random() < 0.3:
        return drawn_case(rng, is_apart=is_apart)
    until = rng.choice([60, 200, 600])
    return drawn_case(rng, rng.choice([40, 120]), is_apart=is_apart, until=until)


def drawn_options(rng: random.Random) -> CorrelateOptions:
    """Slices, and the room that they have."""
    return CorrelateOptions(
        slices=rng.choice([None, 1, 2, 5, 9]), slice_rows=rng.choice([2, 8, 1 << 20]),
        batch_pairs=rng.choice([1, 3, None]),
    )  # fmt: skip


def on_a_way(rng: random.Random, case: Case, asked: Asked) -> Asked:
    """The same by some way that its answer can take; half of all sets have an event of each stream."""
    words = dict(asked.words)
    if "at_least" in words and rng.random() < 0.5:
        words["at_least"] = len(case.names)
    ways: list[Way] = ["auto", "exchange"]
    if can_stay(case, words):
        ways += ["broadcast", "broadcast"]
    return Asked(words, replace(asked.options, way=rng.choice(ways)))


def can_stay(case: Case, words: dict[str, Any]) -> bool:
    """Whether one stream can stay in its partitions: every row has one event of it, and needs no other."""
    tables = [id(table) for table in case.tables]
    alone = [k for k, table in enumerate(tables) if tables.count(table) == 1]
    if len(set(tables)) == 1 or words.get("at_least", len(tables)) < len(tables):
        return False
    tells_of_firsts = words.get("how") == "anti" or words.get("emit") in ("counts", "best")
    return 0 in alone if tells_of_firsts else bool(alone)


def asked_of_sequences(rng: random.Random) -> tuple[Case, Asked]:
    """Streams and a question of their sequences."""
    case = drawn_on_spark(rng, is_apart=False)
    words: dict[str, Any] = {
        "windows": case.windows, "confidence": rng.choice([0.1, 0.25, 0.5, 0.75, 1.0]),
        "names": case.names, "time": case.times, "by": case.by,
    }  # fmt: skip
    are_exact = all(time == "stamp" for time in case.times.values())
    if len(case.windows) > 1 and (are_exact or len(case.windows) == 2) and rng.random() < 0.4:
        least, most = (sum(each) for each in zip(*case.windows, strict=True))
        lo = rng.randint(least, most)
        words["total"] = lo, rng.randint(lo, most + 2)
    form = rng.choice(["rows", "chances", "anti", "counts", "best"])
    if form == "chances":
        words |= {"probability": True, "link_probability": rng.random() < 0.5}
    elif form == "anti":
        words["how"] = "anti"
    elif form != "rows":
        words["emit"] = form
        if form == "best":
            words |= {"prefer": rng.choice(["probability", "first", "last"]), "probability": True}
    return case, Asked(words, drawn_options(rng))


def asked_of_coincidences(rng: random.Random) -> tuple[Case, Asked]:
    """Streams and a question of their coincidences."""
    case = drawn_on_spark(rng, is_apart=True)
    within: Any = rng.randint(0, 6)
    if len(case.names) < 4 and rng.random() < 0.4:
        pairs = [(a, b) for i, a in enumerate(case.names) for b in case.names[i + 1 :]]
        within = {pair: ((lo := rng.randint(-4, 1)), lo + rng.randint(2, 6)) for pair in pairs}
    words = {
        "within": within, "confidence": rng.choice([0.1, 0.25, 0.5, 0.75, 1.0]), "names": case.names,
        "time": case.times, "by": case.by, "at_least": rng.randint(2, len(case.names)),
        "probability": rng.random() < 0.5,
    }  # fmt: skip
    return case, Asked(words, drawn_options(rng))


def frames_of(spark: SparkSession, case: Case) -> list[DataFrame]:
    """The streams as DataFrames, one at several places once."""
    made = {id(table): spark.createDataFrame(table) for table in case.tables}
    return [made[id(table)] for table in case.tables]


def rows_of(found: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows in no order."""
    return Counter(tuple(row.values()) for row in found.to_pylist())


def certain_rows(case: Case, asked: Asked, found: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows; of the best sequences, which must be sequences, what is the same of all as good ones."""
    if asked.words.get("emit") != "best":
        return rows_of(found)
    words = {name: word for name, word in asked.words.items() if name not in ("emit", "prefer")}
    assert rows_of(found) <= rows_of(sequence_tables(case.tables, **words))
    last = [
        case.rows[-1][number // 10]["law"] for number in found[f"{case.names[-1]}_id"].to_pylist()
    ]
    done = pa.array([law[0][0] + law[-1][1] for law in last], pa.int64())
    names = [*case.by, f"{case.names[0]}_id", "probability"]
    return rows_of(found.select(names).append_column("done", done))

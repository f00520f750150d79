"""Sequences and coincidences of DataFrames: what tables give, whatever the slices."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    ConditionError,
    CorrelateOptions,
    DataError,
    DroppedRowsWarning,
    NoPairsWarning,
    SchemaError,
    SequenceReport,
    around,
    coincidence_tables,
    coincidences,
    sequence_tables,
    sequences,
)
from tests.helpers.sequence_cases import Case, drawn_case
from tests.helpers.sequence_spark import (
    Asked,
    asked_of_coincidences,
    asked_of_sequences,
    frames_of,
    rows_of,
)

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")]


@pytest.mark.parametrize("seed", range(24))
def test_sequences_are_those_of_tables(spark: SparkSession, seed: int) -> None:
    case, asked = asked_of_sequences(random.Random(seed))
    expected = sequence_tables(case.tables, **asked.words)
    found = sequences(frames_of(spark, case), **asked.on_spark).toArrow()
    assert found.schema == expected.schema
    assert rows_of(found) == rows_of(expected)


@pytest.mark.parametrize("seed", range(16))
def test_coincidences_are_those_of_tables(spark: SparkSession, seed: int) -> None:
    case, asked = asked_of_coincidences(random.Random(seed))
    expected = coincidence_tables(case.tables, **asked.words)
    found = coincidences(frames_of(spark, case), **asked.on_spark).toArrow()
    assert found.schema == expected.schema
    assert rows_of(found) == rows_of(expected)

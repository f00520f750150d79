"""Tables of Delta and Iceberg: their rows are those of the table as it is now, or an error."""

from __future__ import annotations

import base64
import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile
from pyiceberg.table import DataScan, Table
from pyroaring import BitMap

from coincide import BackendError, DataError, correlate_tables
from coincide.command_line import run
from coincide.engine.files.finding import find_files
from coincide.engine.files.planning import LocalFilesJoin
from coincide.engine.join.arguments import JoinArguments
from coincide.model import extras
from coincide.model.condition import TimingCondition, within
from tests.helpers.rows import in_order

WITHIN: dict[str, Any] = {"within": (-20, 60), "confidence": 0.4}


def events(seed: int, size: int = 300) -> pa.Table:
    """Events in order of time, of days and of names that need to be escaped."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.integers(0, 5_000, size))
    names = np.array(["a b", "c,d", "é", "07"])[rng.integers(0, 4, size)]
    days = np.datetime64("2026-01-01") + (at // 2_000).astype("timedelta64[D]")
    return pa.table({
        "id": np.arange(size) + 1_000 * seed, "min_time": at,
        "max_time": at + rng.integers(0, 40, size),
        "name": pa.array(names, mask=rng.random(size) < 0.1),
        "day": pa.array(days).cast(pa.date32()), "value": rng.normal(size=size),
    })  # fmt: skip


def delta(folder: Path, seed: int, *by: str) -> DeltaTable:
    """A table some of whose rows were written, deleted and written again."""
    given = events(seed)
    write_deltalake(folder, given.slice(0, 200), partition_by=list(by) or None)
    write_deltalake(folder, given.slice(200), mode="append")
    table = DeltaTable(folder)
    table.delete("id % 7 = 3")
    return DeltaTable(folder)


QUESTIONS: dict[str, dict[str, Any]] = {
    "pairs": {},
    "a key": {"by": ["name"]},
    "keys and output": {"by": ["name", "day"], "left_columns": ["day", "id", "value"]},
    "the names of files": {"left_columns": ["id", "filename", "name"]},
    "anti": {"by": "day", "how": "anti", "left_columns": ["name", "day", "id"]},
}


@pytest.mark.parametrize("by", [(), ("name",), ("day", "name")])
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_delta_table_is_its_rows(tmp_path: Path, name: str, by: tuple[str, ...]) -> None:
    tables = [delta(tmp_path / str(seed), seed, *by) for seed in (1, 2)]
    rows = [pa.table(each.to_pyarrow_table()) for each in tables]
    files = [pq.ParquetFile(path).metadata.num_rows for path in (tmp_path / "1").rglob("*.parquet")]
    assert sum(files) > len(rows[0])  # those that the log has removed lie there still
    asked = {**WITHIN, **QUESTIONS[name]}
    paths = [str(tmp_path / str(seed)) for seed in (1, 2)]
    found = correlate_tables(*paths, **asked)
    if name == "the names of files":
        held = {Path(each).name for each in find_files("left", paths[0]).paths}
        assert set(found["left_filename"].to_pylist()) <= held
        found = found.drop_columns("left_filename")
        asked["left_columns"] = ["id", "name"]
    expected = correlate_tables(*rows, **asked)
    assert found.num_rows
    assert in_order(found) == in_order(expected)


@pytest.mark.parametrize("by", [(), ("day", "name")])
def test_slices_of_delta_tables(tmp_path: Path, by: tuple[str, ...]) -> None:
    rows = [delta(tmp_path / str(seed), seed, *by).to_pyarrow_table() for seed in (1, 2)]
    asked: dict[str, Any] = {"by": ["name"], "left_columns": ["id", "day"]}
    arguments = JoinArguments(TimingCondition(within(-20, 60), 0.4), **asked)
    paths = [str(tmp_path / str(seed)) for seed in (1, 2)]
    join = LocalFilesJoin(*paths, arguments)
    found = pa.Table.from_batches(join.batches(), join.schema)
    assert join.plan.describe()
    assert in_order(found) == in_order(correlate_tables(*rows, **WITHIN, **asked))
    words = [*paths, "-o", str(tmp_path / "out.parquet"), "--within", "-20", "60"]
    words += ["--confidence", "0.4", "--by", "name", "--left-columns", "id,day"]
    assert run(["join", *words, "--engine", "local"]) == 0
    assert in_order(pq.read_table(tmp_path / "out.parquet")) == in_order(found)


def with_deletion_vector(folder: Path, rows: list[int]) -> None:
    """Say in a table's log that some rows of its first file are deleted, as Spark writes it."""
    log = folder / "_delta_log"
    (first, *_) = sorted(log.glob("*.json"))
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    added = next(each["add"] for each in actions if "add" in each)
    bitmap = BitMap(rows).serialize()
    magic, count, key = (1681511377).to_bytes(4, "little"), (1).to_bytes(8, "little"), bytes(4)
    content = magic + count + key + bitmap
    content += bytes(-len(content) % 4)
    ascii85 = bytes.maketrans(
        b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
        b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
    )
    told = base64.b85encode(content).translate(ascii85).decode()
    vector = {
        "storageType": "i", "pathOrInlineDv": told, "sizeInBytes": len(content),
        "cardinality": len(rows),
    }  # fmt: skip
    protocol = {
        "minReaderVersion": 3, "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"],
    }  # fmt: skip
    removed = {"path": added["path"], "dataChange": True, "deletionTimestamp": 1}
    new = [
        {"protocol": protocol}, {"remove": removed}, {"add": added | {"deletionVector": vector}},
    ]  # fmt: skip
    text = "\n".join(map(json.dumps, new))
    (log / f"{len(list(log.glob('*.json'))):020d}.json").write_text(text)


def test_deleted_rows_of_delta_are_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", events(1))
    assert len(find_files("left", tmp_path / "t").paths) == 1
    with_deletion_vector(tmp_path / "t", [0, 5])
    (told,) = pa.table(DeltaTable(tmp_path / "t").deletion_vectors().read_all()).to_pylist()
    assert [i for i, kept in enumerate(told["selection_vector"]) if not kept] == [0, 5]
    with pytest.raises(DataError, match=r"left: .*/t is a Delta table with deleted rows in its"):
        correlate_tables(str(tmp_path / "t"), str(tmp_path / "t"), **WITHIN)


def with_mapped_columns(schema: str) -> str:
    """The schema of a log, in which each column has the name that it has in files, too."""
    told = json.loads(schema)
    for number, each in enumerate(told["fields"], 1):
        each["metadata"] = {
            "delta.columnMapping.id": number, "delta.columnMapping.physicalName": each["name"],
        }  # fmt: skip
    return json.dumps(told)


@pytest.mark.parametrize(
    ("feature", "settings", "said"),
    [
        (
            "columnMapping",
            {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "6"},
            r"whose files call columns differently \(delta\.columnMapping\.mode is name\)",
        ),
        ("typeWidening", {}, r"with what is not read here \(found typeWidening\)"),
    ],
    ids=["columnMapping", "typeWidening"],
)
def test_what_delta_alone_reads_is_refused(
    tmp_path: Path, feature: str, settings: dict[str, str], said: str
) -> None:
    write_deltalake(tmp_path / "t", events(1))
    log = tmp_path / "t" / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"] |= settings
            if feature == "columnMapping":
                schema = action["metaData"]["schemaString"]
                action["metaData"]["schemaString"] = with_mapped_columns(schema)
        if "protocol" in action:
            features = {"readerFeatures": [feature], "writerFeatures": [feature]}
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    log.write_text("\n".join(map(json.dumps, actions)))
    cure = r"\. Write it to a new table without this, or read it by Spark\.$"
    with pytest.raises(DataError, match=rf"^left: .*/t is a Delta table {said}{cure}"):
        find_files("left", tmp_path / "t")


def test_a_folder_above_a_delta_table_is_refused(tmp_path: Path) -> None:
    delta(tmp_path / "all" / "t", 1)
    pq.write_table(events(2), tmp_path / "all" / "a.parquet")
    for given in (tmp_path / "all", str(tmp_path / "a*"), str(tmp_path / "all" / "t*")):
        with pytest.raises(DataError, match="all/t is a Delta table, which lies in the folder"):
            find_files("left", given)
    (tmp_path / "empty" / "_delta_log").mkdir(parents=True)
    with pytest.raises(DataError, match=r"left: cannot read .*empty as a Delta table"):
        find_files("left", tmp_path / "empty")


@pytest.mark.parametrize("package", ["deltalake", "pyiceberg"])
def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    if package == "deltalake":
        delta(tmp_path / "t", 1)
        place = tmp_path / "t"
    else:
        place = Path(iceberg(tmp_path, 1).metadata_location.removeprefix("file://"))
    monkeypatch.setattr(extras, "is_there", lambda module: module != package)
    with pytest.raises(BackendError, match=rf"need the package {package} .*coincide\[lake\]"):
        find_files("left", place)


def iceberg(folder: Path, seed: int) -> Table:
    """A table of a catalog, some of whose rows were written, deleted and written again."""
    warehouse = folder / f"warehouse{seed}"
    warehouse.mkdir()
    catalog = SqlCatalog("c", uri=f"sqlite:///{warehouse}/c.db", warehouse=f"file://{warehouse}")
    catalog.create_namespace("n")
    given = events(seed)
    table = catalog.create_table("n.t", schema=given.schema)
    with table.update_spec() as spec:
        spec.add_identity("name")
    table.append(given.slice(0, 200))
    table.append(given.slice(200))
    table.delete("id >= 1020 and id < 1100")
    return catalog.load_table("n.t")


def located(table: Table) -> Path:
    """The folder of a table."""
    return Path(table.location().removeprefix("file://"))


def test_an_iceberg_table_is_its_rows(tmp_path: Path) -> None:
    tables = [iceberg(tmp_path, seed) for seed in (1, 2)]
    paths = [each.metadata_location.removeprefix("file://") for each in tables]
    rows = [each.scan().to_arrow() for each in tables]
    assert len(rows[0]) == 220
    for asked in QUESTIONS.values():
        if "filename" not in asked.get("left_columns", ()):
            found = correlate_tables(*paths, **WITHIN, **asked)
            assert found.num_rows
            assert in_order(found) == in_order(correlate_tables(*rows, **WITHIN, **asked))


def test_the_metadata_of_an_iceberg_table(tmp_path: Path) -> None:
    table = iceberg(tmp_path, 1)
    newest = table.metadata_location.removeprefix("file://")
    with pytest.raises(DataError, match=r"only its catalog knows which of its \d metadata files"):
        find_files("left", located(table))
    metadata = located(table) / "metadata"
    expected = find_files("left", newest).paths
    assert expected
    hinted = metadata / "v9.metadata.json"
    hinted.write_text(Path(newest).read_text())
    (metadata / "version-hint.text").write_text("9")
    assert find_files("left", located(table)).paths == expected
    older = max(path for path in metadata.glob("0*.metadata.json") if str(path) != newest)
    hinted.write_text("{}")
    (metadata / "v8.metadata.json").write_text(older.read_text())
    (metadata / "v10.metadata.json").write_text(Path(newest).read_text())  # after the hint
    assert find_files("left", located(table)).paths == expected
    (metadata / "version-hint.text").write_text("8")
    (metadata / "v9.metadata.json").unlink()
    assert find_files("left", located(table)).paths != expected


def test_a_folder_above_an_iceberg_table_is_refused(tmp_path: Path) -> None:
    table = iceberg(tmp_path, 1)
    with pytest.raises(DataError, match="is an Iceberg table, which lies in the folder that you"):
        find_files("left", str(Path(located(table)).parent))


def test_what_iceberg_alone_reads_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = iceberg(tmp_path, 1)
    newest = table.metadata_location.removeprefix("file://")
    plan_files = DataScan.plan_files

    def with_deletes(scan: DataScan) -> Any:
        tasks = list(plan_files(scan))
        tasks[-1].delete_files.add(DataFile.from_args(file_path="d.parquet"))
        return tasks

    monkeypatch.setattr(DataScan, "plan_files", with_deletes)
    with pytest.raises(DataError, match="is an Iceberg table with deleted rows in its files"):
        find_files("left", newest)
    monkeypatch.undo()
    with table.update_schema() as update:
        update.rename_column("value", "other")
    with pytest.raises(DataError, match="the column 'other' had another name or type"):
        find_files("left", table.metadata_location.removeprefix("file://"))


def test_times_of_a_delta_table_may_be_of_its_log(tmp_path: Path) -> None:
    at = [dt.datetime(2026, 1, 1, hour, tzinfo=dt.UTC) for hour in (0, 0, 3, 5)]
    given = pa.table({"id": range(4), "t": pa.array(at, pa.timestamp("us", "UTC"))})
    write_deltalake(tmp_path / "t", given, partition_by=["t"])
    asked: dict[str, Any] = {"left_time": "t", "right_time": "t", "within": ("0s", "2h")}
    arguments = JoinArguments(
        TimingCondition(within("0s", "2h"), 1.0), left_time="t", right_time="t"
    )
    join = LocalFilesJoin(str(tmp_path / "t"), str(tmp_path / "t"), arguments)
    found = pa.Table.from_batches(join.batches(), join.schema)
    expected = correlate_tables(given, given, **asked)
    assert in_order(found) == in_order(expected)
    assert in_order(correlate_tables(str(tmp_path / "t"), given, **asked)) == in_order(expected)

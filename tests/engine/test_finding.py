"""Finding Parquet files."""

from __future__ import annotations

from pathlib import Path

import pytest

from coincide.engine.files.finding import find_files
from coincide.model.errors import DataError


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "a.parquet",
        "b.parquet",
        "day=1/c.parquet",
        "_tmp/x.parquet",
        ".y.parquet",
        "_SUCCESS",
    ):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "data"


def names(tree: Path, given: object) -> list[str]:
    found = find_files("left", given)  # type: ignore[arg-type]
    return [str(Path(path).relative_to(tree)) for path in found.paths]


def test_a_folder_is_all_that_is_visible_below(tree: Path) -> None:
    for given in (tree, str(tree), f"{tree}/", f"file://{tree}"):
        assert names(tree, given) == ["a.parquet", "b.parquet", "day=1/c.parquet"]


def test_files_globs_and_several(tree: Path) -> None:
    assert names(tree, tree / "b.parquet") == ["b.parquet"]
    assert names(tree, f"{tree}/[ab].parquet") == ["a.parquet", "b.parquet"]
    assert names(tree, f"{tree}/day=*") == ["day=1/c.parquet"]
    assert names(tree, f"{tree}/*/c.parquet") == ["day=1/c.parquet"]
    assert names(tree, f"{tree}/*") == ["a.parquet", "b.parquet", "day=1/c.parquet"]
    assert names(tree, f"{tree}/**/c.parquet") == ["day=1/c.parquet"]
    assert names(tree, f"{tree}/**") == ["a.parquet", "b.parquet", "day=1/c.parquet"]
    assert names(tree, f"{tree}/_tmp/*") == ["_tmp/x.parquet"]
    assert names(tree, f"{tree}/.y*") == [".y.parquet"]
    assert names(tree, [tree / "b.parquet", f"{tree}/a*"]) == ["a.parquet", "b.parquet"]
    assert names(tree, [tree / "b.parquet", tree / "b.parquet"]) == ["b.parquet"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("{}/none.parquet", r"left: .*none\.parquet does not exist"),
        ("{}/*.csv", r"left: no file matches .*\*\.csv"),
        ("{}/none/*.parquet", "left: no file matches"),
        ("{}/_tmp/nothing", "does not exist"),
        ("nosuchscheme://bucket/x", "left: cannot open nosuchscheme://bucket/x"),
        ([], "left: the list of files is empty"),
    ],
)
def test_what_is_not_there(tree: Path, given: object, words: str) -> None:
    given = given.format(tree) if isinstance(given, str) else given
    with pytest.raises(DataError, match=words):
        find_files("left", given)  # type: ignore[arg-type]


def test_a_folder_without_files(tree: Path) -> None:
    (tree / "empty").mkdir()
    with pytest.raises(DataError, match=r"left: the folder .*empty holds no files"):
        find_files("left", tree / "empty")

"""A folder of results appears whole or not at all."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide.engine.files.finding import find_files
from coincide.engine.files.publishing import Output
from coincide.model.errors import DataError


def put(folder: Output, name: str, value: int = 1) -> str:
    path = f"{folder.aside}/{name}"
    pq.write_table(pa.table({"id": [value]}), path)
    return path


def tree(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_exactly_the_reported_files_appear(tmp_path: Path) -> None:
    with Output(tmp_path / "out", False) as folder:
        kept, given_up = put(folder, "part-0-a.parquet"), put(folder, "part-0-b.parquet")
        assert given_up != kept
        assert not (tmp_path / "out").exists()
        folder.publish({kept})
    assert tree(tmp_path) == ["out/_SUCCESS", "out/part-0-a.parquet"]


def test_nothing_is_left_of_a_run_that_fails(tmp_path: Path) -> None:
    folder = Output(tmp_path / "out", False)
    with suppress(ZeroDivisionError), folder:
        put(folder, "part-0-a.parquet")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_output_that_a_killed_run_had_taken_away_comes_back(
    tmp_path: Path, overwrite: bool
) -> None:
    with Output(tmp_path / "out", False) as folder:
        folder.publish({put(folder, "part-1.parquet")})
    killed = tmp_path / f".out.coincide-{7:032x}"
    killed.mkdir()
    (tmp_path / "out").rename(killed / "old")
    if overwrite:
        with pytest.raises(ZeroDivisionError), Output(tmp_path / "out", True):
            raise ZeroDivisionError
    else:
        with pytest.raises(DataError, match="exists already"):
            Output(tmp_path / "out", False)
    assert tree(tmp_path) == ["out/_SUCCESS", "out/part-1.parquet"]


def test_outputs_and_inputs_apart(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1]}), folder / "part-1.parquet")
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "hard").hardlink_to(folder / "part-1.parquet")
    for output, given, words in (
        (folder, folder, "is the left input"),
        (folder / "part-1.parquet", folder / "part-1.parquet", "is the left input"),
        (tmp_path / "hard", folder, "is the left input"),
        (folder, folder / "part-1.parquet", "left input lies inside the output"),
        (folder, f"{folder}/*.parquet", "left input lies inside the output"),
        (tmp_path / "link", f"{folder}/*.parquet", "left input lies inside the output"),
        (folder / "out", folder, "lies inside the left input"),
        (folder / "out", f"file://{folder}/", "lies inside the left input"),
        (folder / "out", [tmp_path / "hard", folder], "lies inside the left input"),
        (tmp_path / "link" / "out", tmp_path / "link", "lies inside the left input"),
        (folder / "out.parquet", f"{folder}/*.parquet", "matches the left input"),
    ):
        with pytest.raises(DataError, match=f"{words}.*. Write to another place"):
            Output(output, True, [find_files("left", given)])
    Output(tmp_path / "out", True, [find_files("left", folder)])
    Output(tmp_path / "inn", True, [find_files("left", folder)])


def test_replacing(tmp_path: Path) -> None:
    for value in (1, 2):
        with Output(tmp_path / "out", overwrite=value > 1) as folder:
            folder.publish({put(folder, f"part-{value}.parquet", value)})
    assert tree(tmp_path) == ["out/_SUCCESS", "out/part-2.parquet"]
    with pytest.raises(
        DataError, match=r"exists already. Write to another place, or pass overwrite=True"
    ):
        Output(tmp_path / "out", False)


def test_a_failure_to_publish_leaves_the_older_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Output(tmp_path / "out", False) as folder:
        folder.publish({put(folder, "part-1.parquet")})
    with Output(tmp_path / "out", True) as folder:
        paths, broken = {put(folder, "part-2.parquet")}, BrokenMove(folder.filesystem, folder.aside)
        monkeypatch.setattr(folder, "filesystem", broken)
        with pytest.raises(DataError, match=r"cannot write the output .*/out: full"):
            folder.publish(paths)
    assert tree(tmp_path) == ["out/_SUCCESS", "out/part-1.parquet"]


def test_a_file_that_a_late_attempt_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class LateFile(BrokenMove):
        """A file system on which a file is begun just before a folder moves."""

        def move(self, source: str, target: str) -> None:
            Path(source, "part-0-late.parquet").write_bytes(b"PAR1")
            super().move(source, target)

    with Output(tmp_path / "out", False) as folder:
        paths = {put(folder, "part-0-a.parquet")}
        monkeypatch.setattr(folder, "filesystem", LateFile(folder.filesystem, ""))
        folder.publish(paths)
    assert tree(tmp_path) == ["out/_SUCCESS", "out/part-0-a.parquet"]


class BrokenMove:
    """A file system that cannot move one folder."""

    def __init__(self, filesystem: object, refused: str) -> None:
        self._filesystem, self._refused = filesystem, refused

    def __getattr__(self, name: str) -> object:
        return getattr(self._filesystem, name)

    def move(self, source: str, target: str) -> None:
        if source == self._refused:
            raise OSError("full")
        self._filesystem.move(source, target)  # type: ignore[attr-defined]


def test_only_results_are_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").touch()
    with pytest.raises(DataError, match=r"is a folder that holds thesis.txt, which no join wrote"):
        Output(folder, True)
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"is a file. Name a folder, or remove the file"):
        Output(tmp_path / "file", True)
    with pytest.raises(DataError, match=r"does not exist. Make it first"):
        Output(tmp_path / "none" / "out", False)
    with pytest.raises(DataError, match="output: cannot open nosuchscheme://x/y"):
        Output("nosuchscheme://x/y", False)
    assert (folder / "thesis.txt").exists()

"""Workers that were spared what tasks cost do as before."""

from __future__ import annotations

import gc
import importlib
import itertools
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from spark_plugin.tasks import connection as worker_reuse
from spark_plugin.tasks.connection import begin_task, forget_archive_finders


def archive_finders() -> list[str]:
    finders = sys.path_importer_cache.items()
    return [path for path, finder in finders if isinstance(finder, zipimport.zipimporter)]


def test_archives_stay_importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "shelf.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("shelf_of_tests/__init__.py", "")
        archive.writestr("shelf_of_tests/book.py", "PAGES = 7")
        archive.writestr("shelf_of_tests/other.py", "PAGES = 9")
    monkeypatch.syspath_prepend(str(path))
    assert importlib.import_module("shelf_of_tests.book").PAGES == 7
    others = {p for p, f in sys.path_importer_cache.items() if p not in archive_finders()}
    assert len([p for p in archive_finders() if p.startswith(str(path))]) == 2

    forget_archive_finders()
    assert archive_finders() == []
    assert others <= set(sys.path_importer_cache)
    importlib.invalidate_caches()
    assert importlib.import_module("shelf_of_tests.other").PAGES == 9
    for name in [name for name in sys.modules if name.startswith("shelf_of_tests")]:
        monkeypatch.delitem(sys.modules, name)


def test_what_is_loaded_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_reuse, "_tasks", itertools.count(1))
    gc.unfreeze()
    begin_task([])
    assert gc.get_freeze_count() == 0
    begin_task([])
    frozen = gc.get_freeze_count()
    try:
        assert frozen > 10_000
        later = [[]]
        begin_task([])
        assert any(found is later for found in gc.get_objects())
    finally:
        gc.unfreeze()

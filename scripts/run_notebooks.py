"""Runs notebooks from their first cell to the last and keeps them with what they print and draw.

`python scripts/run_notebooks.py examples/notebooks build/notebooks`
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

TIMEOUT_S = 240
"""Most seconds of a cell: the first ones wait for the compiler, or for Spark."""


def executed(path: Path, folder: Path) -> NotebookNode:
    """Run a notebook.

    Parameters
    ----------
    path : Path
        The notebook, which is left as it is.
    folder : Path
        Where its cells run.

    Returns
    -------
    NotebookNode
        With outputs, but for what went to stderr.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell fails; it has the cell and its traceback.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    for cell in notebook.cells:  # what Spark and kernels log concerns this machine, not the subject
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
    return notebook


def main(source: Path, target: Path) -> None:
    """Run all notebooks of a folder and write them to another."""
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.glob("*.ipynb")):
        print(f"running {path}", flush=True)
        nbformat.write(executed(path, source), target / path.name)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))

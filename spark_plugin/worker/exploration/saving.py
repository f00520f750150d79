"""Pages and pictures as files, which appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from coincide.errors import DataError
from spark_plugin.worker.exploration.exploration import CHARTS, Exploration
from spark_plugin.worker.exploration.pictures import picture_of
from spark_plugin.worker.files.finding import ParquetFiles
from spark_plugin.worker.files.outputs import Output

_PAGES = (".html", ".htm")


def save(
    found: Exploration,
    path: str,
    overwrite: bool,
    command: str | None = None,
    inputs: tuple[ParquetFiles, ...] = (),
) -> list[str]:
    """Write the page, one picture, or a folder of pictures: what the name says.

    Returns
    -------
    list of str
        The files.

    Raises
    ------
    DataError
        If something is there already, or cannot be written.
    """
    planned = _planned(found, path, command)
    for file, content in planned:
        with Output(file, overwrite, inputs, is_folder=False, replaces_files=True) as output:
            with output.filesystem.open_output_stream(output.aside) as stream:
                stream.write(content())
            output.publish()
    return [file for file, _ in planned]


def check_places(
    paths: Sequence[str], overwrite: bool, inputs: tuple[ParquetFiles, ...] = ()
) -> None:
    """Refuse, before anything is computed, what could not be written afterwards.

    Raises
    ------
    DataError
    """
    for path in paths:
        is_folder = os.path.isdir(path) and not is_page(path) and not is_picture(path)
        for name in pictures(path) if is_folder else [path]:
            Output(name, overwrite, inputs, is_folder=False, replaces_files=True)


def pictures(folder: str) -> list[str]:
    """The pictures of a folder."""
    return [os.path.join(folder, f"{name}.png") for name in CHARTS]


def is_page(path: str) -> bool:
    """Whether a name is that of a page."""
    return path.lower().endswith(_PAGES)


def is_picture(path: str) -> bool:
    """Whether a name is that of one picture."""
    return path.lower().endswith(".png")


def _planned(
    found: Exploration, path: str, command: str | None
) -> list[tuple[str, Callable[[], bytes]]]:
    if is_page(path):
        return [(path, lambda: found.to_html(command).encode())]
    from spark_plugin.worker.exploration.charts import charts_of, together, with_style

    charts = charts_of(found)
    if not charts:
        raise DataError(
            f"there are no candidates, so no charts to write to {path}: {'; '.join(found.why_none)}"
        )
    if is_picture(path):
        return [(path, lambda: picture_of(together(charts)))]
    _make_folder(path)
    return [
        (file, lambda chart=chart: picture_of(with_style(chart)))  # type: ignore[misc]
        for file, chart in zip(pictures(path), charts.values(), strict=True)
    ]


def _make_folder(path: str) -> None:
    ending = os.path.splitext(path)[1]
    if ending and not os.path.isdir(path):
        raise DataError(
            f"cannot tell what to write to {path}: name a page .html, a picture .png, or a folder for"
            " pictures"
        )
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot make the folder {path}: {error.strerror}") from error

"""Charts as PNG, a third as large as they come."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from typing import Any

_SCALE = 1.5
"""Pixels of a picture for each of a chart."""
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def picture_of(chart: Any) -> bytes:
    """A chart of Altair as PNG."""
    pixels = io.BytesIO()
    chart.save(pixels, format="png", scale_factor=_SCALE)
    return squeezed(pixels.getvalue())


def squeezed(png: bytes) -> bytes:
    """The same picture, its pixels compressed as well as zlib can."""
    chunks = list(_chunks(png))
    pixels = zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT"))
    head = [chunk for chunk in chunks if chunk[0] not in (b"IDAT", b"IEND")]
    written = [*head, (b"IDAT", zlib.compress(pixels, 9)), (b"IEND", b"")]
    return _SIGNATURE + b"".join(_chunk(*each) for each in written)


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(png):
        size, kind = struct.unpack_from(">I4s", png, at)
        yield kind, png[at + 8 : at + 8 + size]
        at += 12 + size


def _chunk(kind: bytes, data: bytes) -> bytes:
    checked = kind + data
    return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

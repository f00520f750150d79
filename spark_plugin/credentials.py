"""URIs may hold keys and secrets: what is shown to people, or logged, leaves them out."""

from __future__ import annotations

import re

# A number before the path is a port, and an @ after it part of a name.
_USER = re.compile(r"(?<=://)[^\s/@:'\"]*:(?!\d+/)[^\s@'\"]*@")
_QUERY = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^\s?'\"]*)\?[^\s'\"]*?(?=[:;,.)]?(?:[\s'\"]|$))")

NOT_FOR_SPARK = (
    "would be opened by Spark itself, which takes no credentials or options in a URI; leave them out and"
    " give them to Spark, such as spark.hadoop.fs.s3a.access.key, or see to it that the direct way is open"
)
"""What to say of a URI that holds settings and shall go by exchange."""


def without_credentials(text: str) -> str:
    """A text, its URIs without user, password and query.

    Parameters
    ----------
    text : str
        A URI, a path, or a message in which some stand.
    """
    return _QUERY.sub(r"\1", _USER.sub("", text))


def holds_settings(uri: str) -> bool:
    """Whether a URI holds credentials or options, as PyArrow takes them and Spark does not."""
    return without_credentials(uri) != uri

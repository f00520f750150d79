"""URIs and settings may hold keys and secrets: what is shown to people, or logged, leaves them out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from coincide.model.errors import DataError, Words, marked
from coincide.model.remembered import remembered

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_URI_IN_TEXT = re.compile(rf"{SCHEME.pattern}(?:(?!{SCHEME.pattern})\S)*")
_CLOSING = re.compile(r"[\"'):;,.}\]>]*$")
"""What may follow a URI in a text without a blank."""
_NAMED_USERS = ("abfs", "abfss", "wasb", "wasbs", "hdfs", "viewfs", "webhdfs", "swebhdfs", "file")
"""Schemes whose part before an @ is, without a colon, the name of a container or a user."""
_WITH_PORTS = ("hdfs", "viewfs", "webhdfs", "swebhdfs", "file")
"""Schemes that name a host and a port, and no passwords: an @ after them is part of a name."""
_NO_PORT = re.compile(r":(?!\d*$)")
"""A colon before no port, which may begin a password."""
_UNKNOWN = "***"
_LENGTH = 4
"""Any part of a secret that is as long is hidden."""
_MARKS = (_UNKNOWN, "…", "")
_HARMLESS = re.compile(
    r"scheme=https?|region=[a-z]+(-[a-z0-9]+)+|endpoint_override=[\w.-]+(:\d+)?"
    r"|(anonymous|allow_bucket_\w+|background_writes|\w*retry\w*)=\w{0,5}"
)
"""Options of PyArrow's that may be shown, so that not every "east" in a message is hidden."""
_SECRET_SETTING = re.compile(
    r"(?:^|=)[\w.-]*(?:secret|passw|passphrase|token|credential|(?:access|account|private|api)[._-]?key)"
    r"[\w.-]*[=:\s]+(.+)",
    re.IGNORECASE | re.DOTALL,
)

NOT_FOR_SPARK = (
    "would be opened by Spark, which takes no credentials or options in a URI. Remove them and"
    " give them to Spark, such as spark.hadoop.fs.s3a.access.key, or make sure that Coincide can"
    " read the files itself."
)
"""What to say of a URI that holds settings and shall go by exchange."""
_NOT_ENCODED = (
    "holds credentials, options or a name with characters that mark parts of a URI. Write them as"
    " %2F (/), %40 (@), %3A (:), %3F (?) and %23 (#)."
)


def shown(word: str) -> str:
    """A path or URI, as someone gave it, without user, password and query."""
    # Secrets may hold any character, also where a URI must not: all up to the last @ is taken for
    # them.
    found = SCHEME.search(word)
    if found is None:
        return word
    scheme, _, place, _ = _parts(word[found.start() :])
    return f"{word[: found.start()]}{scheme}://{place}"


def without_credentials(text: str) -> str:
    """A text of unknown origin, its URIs without user, password and query."""
    # Where the words are known that a user gave, a `Redactor` of them hides more: here a URI ends
    # at a blank.
    return _URI_IN_TEXT.sub(_shown_in_text, text)


def holds_settings(uri: str) -> bool:
    """Whether a URI holds credentials or options, as PyArrow takes them and Spark does not."""
    return shown(uri) != uri


def check_encoded(what: str, uri: str) -> None:
    """Refuse a URI of which readers would take other parts for credentials than we do."""
    _, user, _, _ = _parts(uri)
    authority = re.split("[/?#]", uri.partition("://")[2], maxsplit=1)[0]
    if user is not None and (user != authority.rpartition("@")[0] or "@" in user):
        raise DataError(Redactor.of([uri])(f"{what} {shown(uri)} {_NOT_ENCODED}"))


@dataclass(frozen=True)
class Redactor:
    """Hides the secrets of words that are known, wherever they turn up, in whichever encoding."""

    uris: tuple[str, ...] = field(default=(), repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, words: Iterable[str]) -> Redactor:
        """A redactor for what users typed: paths, URIs, lists of them, settings KEY=VALUE."""
        words = list(words)
        uris = [uri for word in words for uri in _uris(word)]
        settings = [found[1] for word in words if (found := _SECRET_SETTING.search(word))]
        secrets = [secret for uri in uris for secret in _secrets(uri)]
        return cls(tuple(sorted(uris, key=len, reverse=True)), (*secrets, *settings))

    def __call__(self, said: object) -> Words:
        """A message without the secrets, nor parts of them of four or more characters."""
        text = marked(said)
        for uri in self.uris:
            text = text.replace(uri, shown(uri))
        return Words(self._without_parts(without_credentials(text)))

    def cause(self, error: BaseException) -> BaseException | None:
        """An error to raise another from, if its own text may be shown."""
        return error if self(str(error)) == str(error) else None

    @remembered
    def _parts(self) -> frozenset[str]:
        """All parts of the secrets of the length that is hidden."""
        return frozenset(
            encoded[i : i + _LENGTH]
            for secret in self.secrets
            for encoded in _encodings(secret)
            for i in range(len(encoded) - _LENGTH + 1)
        )

    @remembered
    def _mark(self) -> str:
        """What stands for what is hidden, and cannot become part of a secret itself."""
        used = set().union(*self._parts)
        return next(mark for mark in _MARKS if not used.intersection(mark))

    def _without_parts(self, text: str) -> str:
        while spans := list(self._spans(text)):
            for start, stop in reversed(spans):
                text = text[:start] + self._mark + text[stop:]
        return text

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """The places of parts of secrets, those that touch as one."""
        start = stop = 0
        for i in range(len(text) - _LENGTH + 1) if self._parts else ():
            if text[i : i + _LENGTH] not in self._parts:
                continue
            if i > stop and stop:
                yield start, stop
            start, stop = (start if stop and i <= stop else i), i + _LENGTH
        if stop:
            yield start, stop


def _shown_in_text(found: re.Match[str]) -> str:
    end = _CLOSING.search(found[0])
    assert end is not None
    return shown(found[0][: end.start()]) + end[0]


def _parts(uri: str) -> tuple[str, str | None, str, str]:
    """Scheme, credentials (None without any), what may be shown, and query."""
    scheme, _, rest = uri.partition("://")
    place, _, query = rest.partition("?")
    marks = [i for mark in "?#" if (i := rest.find(mark)) >= 0]
    host = re.split("[/?#]", rest, maxsplit=1)[0]
    is_cut = "@" not in host and _NO_PORT.search(host)
    area = host if scheme.lower() in _WITH_PORTS and not is_cut else rest
    end = area.rfind("@")
    if end > min(marks, default=end):
        return scheme, rest, _UNKNOWN, ""  # it may belong to the credentials or to the query
    if end < 0 or not _is_secret(scheme.lower(), area[:end]):
        return scheme, None, place, query
    return scheme, rest[:end], place[end + 1 :], query


def _is_secret(scheme: str, user: str) -> bool:
    return ":" in user or not (scheme in _NAMED_USERS or "/" in user)


def _uris(word: str) -> list[str]:
    """The URI that a word is, ends with, or is a list of."""
    found = SCHEME.search(word)
    uris: list[str] = []
    for part in re.split(rf",(?={SCHEME.pattern})", word[found.start() :]) if found else ():
        if uris and _is_cut(uris[-1]):
            uris[-1] += f",{part}"
        else:
            uris.append(part)
    return uris


def _is_cut(uri: str) -> bool:
    """Whether a URI ends within its credentials."""
    scheme, _, rest = uri.partition("://")
    return scheme.lower() not in _WITH_PORTS and ":" in rest and "@" not in rest


def _secrets(uri: str) -> list[str]:
    _, user, _, query = _parts(uri)
    options = [option for option in query.split("&") if not _HARMLESS.fullmatch(option)]
    return [
        *([] if user is None else [user]),
        "&".join(options),
        *(o.partition("=")[2] for o in options),
    ]


def _encodings(secret: str) -> set[str]:
    """A secret as others may write it."""
    plain = {secret, unquote(secret), unquote_plus(secret)}
    quoted = {form for one in plain for form in (quote(one, safe=""), quote(one), quote_plus(one))}
    return {
        form for one in plain | quoted for form in (one, json.dumps(one)[1:-1], repr(one)[1:-1])
    }

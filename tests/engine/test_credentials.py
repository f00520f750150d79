"""Credentials in URIs are not shown."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coincide.command_line import run
from coincide.engine.files.credentials import (
    Redactor,
    check_encoded,
    holds_settings,
    without_credentials,
)
from coincide.engine.files.finding import find_files, place_of
from coincide.engine.files.publishing import Output
from coincide.model.errors import CoincideError, DataError
from spark_plugin.ways.files.source import CoincideSource


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://key:secret@bucket/a.parquet", "s3://bucket/a.parquet"),
        ("s3://key:se/cr+et@bucket/a", "s3://bucket/a"),
        ("s3://bucket/a?region=x&endpoint_override=h:1", "s3://bucket/a"),
        ("left: s3://k:s@b/a?x=h:1 does not exist", "left: s3://b/a does not exist"),
        ("cannot open 's3://k:s@b/a?x=1': no", "cannot open 's3://b/a': no"),
        ('{"a": "s3://k:s@b/a?x=1", "b": 2}', '{"a": "s3://b/a", "b": 2}'),
        ("s3://k:s@b/a?x=1, gs://u:t@c/d", "s3://b/a, gs://c/d"),
        ("abfs://user:key@host/a?client_secret=1", "abfs://host/a"),
        ("abfs://container@account.net/a?client_secret=1", "abfs://container@account.net/a"),
        ("s3://AKIAX:1234/56secret@bucket/x", "s3://bucket/x"),
        ("s3://key:se@cret@bucket/x", "s3://bucket/x"),
        ("s3://key:se'cr\"et@bucket/x", "s3://bucket/x"),
        ("cannot open 's3://k:s'ecret@b/a': no", "cannot open 's3://b/a': no"),
        ("s3://key:se?cr@et@bucket/x", "s3://***"),
        ("s3://ke/y:secret@bucket/x", "s3://bucket/x"),
        ("s3://bucket/a?password=b@c", "s3://***"),
        ("s3://bucket/a?password=b'c\"d", "s3://bucket/a"),
        ("s3://k:s@b/a,gs://u:t@c/d", "s3://b/a,gs://c/d"),
        ("s3://keyid@bucket/x", "s3://bucket/x"),
        ("hdfs://user:pass@host:8020/a@b", "hdfs://host:8020/a@b"),
        ("viewfs://user:DUG2J?ateX0@host/a", "viewfs://***"),
        ("webhdfs://user:se/cret@host/a", "webhdfs://host/a"),
    ],
)
def test_hidden(text: str, shown: str) -> None:
    assert without_credentials(text) == shown
    assert holds_settings(text)


@pytest.mark.parametrize(
    "text",
    [
        "/a/b?.parquet",
        "hdfs://host:8020/a@b.parquet",
        "s3://bucket/a@b.parquet",
        "hdfs://host:8020/1/a@b:c",
        "hdfs://user@host:8020/a",
        "abfs://container@account.net/a",
        "file:///a:b@c",
        "a:b@c",
    ],
)
def test_left_as_it_is(text: str) -> None:
    assert without_credentials(text) == text
    assert not holds_settings(text)


@pytest.mark.parametrize(
    "uri",
    [
        "s3://AKIAX:1234/56secret@bucket/x",
        "s3://key:se@cret@bucket/x",
        "s3://key:se?cret@bucket/x",
        "s3://key:se#cret@bucket/x",
        "s3://bucket/x?token=se@cret",
    ],
)
def test_secrets_that_are_not_encoded_are_refused_before_anyone_reads_the_uri(uri: str) -> None:
    with pytest.raises(
        DataError, match="holds credentials, options or a name with characters that"
    ) as caught:
        find_files("left", uri)
    assert_hidden(str(caught.value), "secret", "cret", "1234")
    check_encoded("left", "s3://key:se%2Fcr%40et@bucket/x?token=a%40b")


def test_a_list_of_uris_is_no_secret() -> None:
    hide = Redactor.of(["s3://key:secret@bucket/x,s3://other:password@bucket/y"])
    assert hide("s3://bucket/x and s3://bucket/y") == "s3://bucket/x and s3://bucket/y"
    assert hide("other, secret password") == "***, *** ***"


@pytest.mark.parametrize(
    "word",
    [
        "spark.hadoop.fs.s3a.secret.key=topsecret",
        "--conf=spark.hadoop.fs.s3a.secret.key=topsecret",
        "spark.hadoop.fs.s3a.access.key: topsecret",
        "fs.azure.account.key.me.net=topsecret",
        "spark.ssl.keyStorePassword topsecret",
    ],
)
def test_secrets_in_settings(word: str) -> None:
    assert Redactor.of(["--conf", word])("it's topsecret, topse, sec") == "it's ***, ***, sec"


def test_what_is_no_secret_is_told() -> None:
    words = ["spark.sql.shuffle.partitions=1000", "s3://bucket/x?region=us-east-1&scheme=http"]
    assert Redactor.of(words)("1000 us-east-1 http") == "1000 us-east-1 http"


def assert_hidden(text: str, *secrets: str, ordinary: str = "") -> None:
    """No part of a secret of four or more characters is in a text.

    Unless it is in what is `ordinary`, which is said without any secret: our name, lines of code.
    """
    for secret in secrets:
        for form in {secret, unquote(secret)}:
            parts = {form[i : i + 4] for i in range(len(form) - 3)}
            found = [part for part in parts if part in text and part not in ordinary]
            assert not found, (found, text)


PRINTABLE = st.characters(min_codepoint=32, max_codepoint=126)
SECRET = st.text(PRINTABLE, min_size=4, max_size=24)


@st.composite
def uris_with_secrets(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A URI, and the secrets in it as they are written there."""
    parts = [draw(SECRET) for _ in range(3)]
    user, password, token = (quote(p, safe="") if draw(st.booleans()) else p for p in parts)
    query = draw(st.sampled_from(["", f"?token={token}", f"?region=us-east-1&x={token}"]))
    scheme = draw(st.sampled_from(["s3", "s3a", "gs", "foo", "wasb"]))
    if scheme == "s3":  # else the server would be asked for it
        query = f"?region=us-east-1{query.replace('?', '&', 1)}"
    secrets = [user, password, *([token] if token in query else [])]
    return f"{scheme}://{user}:{password}@zz/z{query}", secrets


def failures(uri: str, folder: Path) -> str:
    """All that is said where a URI is given that cannot be used."""
    rest = {"within": "0,5", "confidence": "1"}
    said, other = [], uri.replace("s3:", "foo:")
    for call in (
        lambda: place_of("left", uri),
        lambda: find_files("left", [other, "/nowhere"]),
        lambda: Output(uri, True),
        lambda: CoincideSource({"left": other, "right": "/x", **rest}).join,
        lambda: CoincideSource({"left": f"{uri},", "right": "/x", **rest}).join,
        lambda: CoincideSource({"left": "/x", "right": "/x", **rest, "within": uri}).join,
        lambda: CoincideSource({"left": "/x", "right": "/x", **rest, "by": f"{uri},,"}).join,
    ):
        try:
            call()
        except CoincideError as error:
            said += _texts(error)
    return "\n".join(said)


def _texts(error: BaseException | None) -> list[str]:
    """What an uncaught error shows, lines of code apart."""
    if error is None:
        return []
    before = None if error.__suppress_context__ else error.__context__
    return [repr(error), str(error), *_texts(error.__cause__ or before)]


def commands(uri: str, folder: Path) -> str:
    """All that the command says where a URI is given that cannot be used."""
    file, out = str(folder / "a.parquet"), str(folder / "out")
    common = ["--within", "0", "5", "--confidence", "1", "--engine", "local", "-f", "parquet"]
    other = uri.replace("s3:", "foo:")
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        for words in (
            ["join", other, file, "-o", out, *common],
            ["join", file, f" {uri}", "-o", out, *common, "--debug"],
            ["join", file, file, "-o", f"{uri}.csv", *common],
            ["join", file, file, uri, "-o", out, *common],
            ["join", file, file, "-o", out, *common, "--how", uri],
            ["join", file, file, "-o", out, *common, "--by", f"{uri},"],
            ["join", file, file, f"--output={other}", *common, "--debug"],
        ):
            assert run(words) in (1, 2)
    return said.getvalue()


@pytest.mark.parametrize(
    ("say", "examples"),
    [(failures, 40), (commands, 12), pytest.param(commands, 40, marks=pytest.mark.slow)],
)
def test_no_part_of_a_secret_is_ever_shown(say: Any, examples: int, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").touch()

    @settings(deadline=None, max_examples=examples)
    @example(given_=("s3://AKIAX:1234/56secret@zz/z", ["AKIAX", "1234/56secret"]))
    @example(given_=("foo://AKIA:se'c wvq@zz/z?token=pass wxyz", ["se'c wvq", "pass wxyz"]))
    @example(given_=("foo://AKIA:a,foo://bcde@zz/z", ["a,foo://bcde"]))
    @example(given_=("foo://AKIA:cannot open@zz/z", ["cannot open"]))
    @example(given_=("foo://AKIA:****@zz/z", ["****"]))
    @given(given_=uris_with_secrets())
    def check(given_: tuple[str, list[str]]) -> None:
        uri, secrets = given_
        assert_hidden(say(uri, tmp_path), *secrets, ordinary=say("foo://zz/z", tmp_path))

    check()


@given(uris_with_secrets(), st.text(PRINTABLE, max_size=20))
def test_a_redactor_hides_whatever_stands_around(given_: tuple[str, list[str]], text: str) -> None:
    uri, secrets = given_
    hide = Redactor.of([uri])
    for said in (uri, repr(uri), unquote(uri), quote(uri), *secrets, f"{text}{uri}{text}"):
        assert_hidden(hide(f"{text} {said} {text}"), *secrets)

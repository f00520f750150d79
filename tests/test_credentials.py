"""Credentials in URIs are not shown."""

from __future__ import annotations

import pytest

from spark_plugin.credentials import holds_settings, without_credentials


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
        "s3://bucket/a@b:c@d",
        "file:///a:b@c",
        "a:b@c",
    ],
)
def test_left_as_it_is(text: str) -> None:
    assert without_credentials(text) == text
    assert not holds_settings(text)

"""What a release says of itself, and its checksums."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from scripts import build_conda, check_release
from tests.helpers.places import ROOT
from tests.house.test_packages import PROJECT

VERSION = PROJECT["version"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
LONGEST = 160


def test_all_places_name_the_version_and_its_date() -> None:
    heads = re.findall(r"^## \[(.+?)\](?: - (\S+))?$", CHANGELOG, flags=re.MULTILINE)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert heads[0] == ("Unreleased", "")
    assert heads[1] == (VERSION, citation["date-released"].isoformat())
    assert citation["version"] == VERSION
    assert f"- Version {VERSION}, Apache-2.0." in (ROOT / "README.md").read_text("utf-8")


def test_the_citation_says_what_the_project_does() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["license"] == PROJECT["license"]
    assert citation["abstract"].rstrip(".") == PROJECT["description"]
    assert [each["name"] for each in citation["authors"]] == [
        each["name"] for each in PROJECT["authors"]
    ]


def test_a_change_is_one_line() -> None:
    lines = [line for line in CHANGELOG.splitlines() if line.startswith(("- ", " "))]
    assert len(lines) > 20
    assert [line for line in lines if line.startswith(" ")] == []
    assert [line for line in lines if len(line) > LONGEST] == []


def test_checksums_are_those_that_sha256sum_reads(tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_bytes(b"wheel")
    (tmp_path / "a.tar.gz").write_bytes(b"archive")
    for _ in range(2):  # the list itself is not in it
        lines = check_release.written_sums(tmp_path)
        assert [line.split("  ")[1] for line in lines] == ["a.tar.gz", "b.whl"]
        assert lines[0].split("  ")[0] == hashlib.sha256(b"archive").hexdigest()
        subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path, check=True)


def test_a_python_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    done = check_release.check(tmp_path / "no.whl", VERSION, "3.99", None)
    assert (done.what, done.state) == ("Python 3.99", check_release.SKIPPED)
    assert done.said.startswith("not here, and uv cannot get it (")


def test_what_is_missing_fails_unless_it_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check_release, "DIST", tmp_path)
    monkeypatch.setattr(check_release, "collect", lambda version: True)
    asked = ["--python", "3.99", "--spark"]
    assert check_release.main(asked) == 1
    assert "1 of the above could not be had. Give --allow-missing" in capsys.readouterr().out
    assert check_release.main([*asked, "--allow-missing"]) == 0
    monkeypatch.setattr(check_release, "collect", lambda version: False)  # no conda package
    assert check_release.main(["--python", "--spark"]) == 1
    assert check_release.main(["--python", "--spark", "--allow-missing"]) == 0


def test_without_uv_a_check_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_release, "UV", str(tmp_path / "uv"))
    done = check_release.check(tmp_path / "no.whl", VERSION, "3.11", None)
    assert done.state == check_release.FAILED
    assert "No such file" in done.said


def test_an_old_conda_package_is_none_of_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "build" / "conda" / "noarch" / f"coincide-{VERSION}-0.conda"
    old.parent.mkdir(parents=True)
    old.touch()
    monkeypatch.setattr(build_conda, "ROOT", tmp_path)
    monkeypatch.delenv(build_conda.VARIABLE, raising=False)
    assert build_conda.main() == 0
    assert not old.exists()


def test_a_wheel_that_does_not_install_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / f"coincide-{VERSION}-py3-none-any.whl").write_bytes(b"no archive")
    wheel = next(tmp_path.iterdir())
    python = ".".join(map(str, check_release.sys.version_info[:2]))
    assert check_release.check(wheel, VERSION, python, None).state == check_release.FAILED

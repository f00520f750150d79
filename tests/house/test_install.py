"""scripts/install.sh with a made-up pip and uv."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.places import ROOT

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")

OF_PIP = "pip install --quiet --disable-pip-version-check -c requirements.lock"


class Environment:
    """A virtual environment whose pip and uv write down what they are asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls"
        self.settings = folder / "settings"
        self.settings.write_text("global.cert='/some/file'\n:env:.find-links='/some/folder'\n")
        self.command(
            "python",
            f'shift; case "$*" in "pip config list") cat {self.settings}; exit 0 ;; esac\n'
            f'echo "$@" >> {self.calls}',
        )
        self.uv(0)

    def command(self, name: str, body: str) -> None:
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def uv(self, code: int) -> None:
        self.command("uv", f'echo uv "$@" >> {self.calls}; exit {code}')

    def install(self, *words: str) -> tuple[list[str], str]:
        """What pip and uv were asked, and what was said."""
        done = subprocess.run(
            ["bash", ROOT / "scripts" / "install.sh", self.folder, *words],
            cwd=ROOT, check=True, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        return self.calls.read_text().splitlines(), done.stderr


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path)


def test_uv_installs_the_locked_versions(environment: Environment) -> None:
    by_uv = f"uv pip install --quiet --system-certs --python {environment.folder}/bin/python"
    calls, said = environment.install("-e", ".[dev,docs]")
    assert calls == [f"{OF_PIP} uv", f"{by_uv} -c requirements.lock -e .[dev,docs]"]
    assert said == ""


@pytest.mark.parametrize("setting", ["global.index-url", ":env:.no-index", "install.proxy"])
def test_pip_installs_where_its_settings_name_an_index(
    environment: Environment, setting: str
) -> None:
    with environment.settings.open("a") as settings:
        settings.write(f"{setting}='x'\n" + "global.timeout='9'\n" * 20_000)
    assert environment.install("-e", ".") == ([f"{OF_PIP} -e ."], "")


def test_pip_installs_where_uv_fails(environment: Environment) -> None:
    environment.uv(2)
    calls, said = environment.install("-e", ".")
    assert [call.partition(" ")[0] for call in calls] == ["pip", "uv", "pip"]
    assert calls[-1] == f"{OF_PIP} -e ."
    assert said == "uv cannot install it; pip will\n"


def test_pip_installs_where_it_cannot_have_uv(environment: Environment) -> None:
    (environment.folder / "bin" / "uv").unlink()
    assert environment.install("-e", ".")[0][-1] == f"{OF_PIP} -e ."

"""The script by which Spark finds the GPUs of a machine, on machines with and without."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.places import ROOT

SCRIPT = ROOT / "scripts" / "discover-gpus.sh"


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder to be all of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def answering(tools: Path, script: str) -> None:
    """A made-up nvidia-smi, which insists on being asked for numbers."""
    command = tools / "nvidia-smi"
    asked = '[ "$*" = "--query-gpu=index --format=csv,noheader" ] || exit 64'
    command.write_text(f"#!/bin/sh\n{asked}\n{script}\n")
    command.chmod(0o755)


def discover(tools: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [shutil.which("sh"), SCRIPT],
        env={"PATH": str(tools)}, capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("indexes", [["0"], ["0", "1", "2", "3"], ["3", "15"]])
def test_gpus(tools: Path, indexes: list[str]) -> None:
    answering(tools, "\n".join(f"echo {index}" for index in indexes))
    answer = discover(tools)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert json.loads(answer.stdout) == {"name": "gpu", "addresses": indexes}


def test_warnings_and_line_ends_do_no_harm(tools: Path) -> None:
    warned = "echo 'WARNING: infoROM is corrupted' >&2"
    answering(tools, rf"{warned}; printf '0\r\n1\r\n'; exit 14")
    answer = discover(tools)
    assert answer.returncode == 0
    assert json.loads(answer.stdout) == {"name": "gpu", "addresses": ["0", "1"]}
    assert "infoROM" in answer.stderr


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (None, "no nvidia-smi on PATH: this machine has no NVIDIA driver"),
        ("echo 'NVIDIA-SMI has failed'; exit 9", "nvidia-smi failed: NVIDIA-SMI has failed"),
        ("echo 'No devices were found'", "nvidia-smi named no GPUs: No devices were found"),
        ("true", "nvidia-smi names no GPU on this machine"),
    ],
)
def test_machines_without(tools: Path, script: str | None, message: str) -> None:
    if script is not None:
        answering(tools, script)
    answer = discover(tools)
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert answer.stderr.startswith(f"discover-gpus: {message}")

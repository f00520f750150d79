"""scripts/find-java.sh against made-up JVM folders."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.places import ROOT

SCRIPTS = ROOT / "scripts"

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def write_script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def make_java(command: Path, version: str, home: Path) -> Path:
    """A `java` that answers as the JVM of this version in this home does."""
    return write_script(
        command,
        f"""cat >&2 <<END
Picked up JAVA_TOOL_OPTIONS: -Dx=y
Property settings:
    java.home = {home}
    java.specification.version = {version}
    java.version = {version}.0.2

openjdk version "{version}.0.2" 2026-01-20
END""",
    )


class Machine:
    """A machine with an empty JVM folder, an old `java` on PATH, and no apt-get that works."""

    def __init__(self, folder: Path) -> None:
        self.commands = folder / "bin"
        self.jvm_root = folder / "jvm"
        self.jvm_root.mkdir()
        self.apt_log = folder / "apt.log"
        self.environment = {
            "PATH": f"{self.commands}{os.pathsep}{os.environ['PATH']}",
            "COINCIDE_JVM_ROOT": str(self.jvm_root),
        }
        make_java(self.commands / "java", "1.8", folder / "old")
        self.command("id", "echo 1000")
        self.command("sudo", "exit 1")
        self.apt_gets(None)

    def command(self, name: str, body: str) -> None:
        write_script(self.commands / name, body)

    def jvm(self, name: str, version: str) -> Path:
        home = self.jvm_root / name
        make_java(home / "bin" / "java", version, home)
        return home

    def apt_gets(self, package: str | None) -> None:
        """Let apt-get know one package, a Java of the version in its name."""
        version = "".join(c for c in package or "" if c.isdigit())
        made = make_java(self.commands / "made", version, self.jvm_root / "new")
        self.command(
            "apt-get",
            f"""echo "$@" >> {self.apt_log}
case "$*" in
  update*) exit 0 ;;
  *{package}) mkdir -p {self.jvm_root}/new/bin; cp {made} {self.jvm_root}/new/bin/java ;;
  *) echo "E: Unable to locate package"; exit 100 ;;
esac""",
        )

    def apt_calls(self) -> list[str]:
        return self.apt_log.read_text().splitlines() if self.apt_log.exists() else []

    def find(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", SCRIPTS / "find-java.sh"],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def assert_found(machine: Machine, home: Path) -> None:
    answer = machine.find()
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == f"{home}\n"


def test_takes_17_among_installed(machine):
    machine.jvm("temurin-11", "11")
    home = machine.jvm("temurin-17", "17")
    machine.jvm("a-temurin-21", "21")
    machine.jvm("temurin-25", "25")
    assert_found(machine, home)


def test_falls_back_to_21(machine):
    home = machine.jvm("java-21", "21")
    machine.jvm("java-25", "25")
    assert_found(machine, home)
    assert machine.apt_calls() == []


@pytest.mark.parametrize("version", ["17", "21"])
def test_java_home_comes_first(machine, tmp_path, version):
    home = tmp_path / "mine"
    make_java(home / "bin" / "java", version, home)
    machine.environment["JAVA_HOME"] = str(home)
    machine.jvm("java-17", "17")
    assert_found(machine, home)


@pytest.mark.parametrize("version", ["11", "25"])
def test_java_home_of_a_wrong_version_is_passed_over(machine, tmp_path, version):
    home = tmp_path / "mine"
    make_java(home / "bin" / "java", version, home)
    machine.environment["JAVA_HOME"] = str(home)
    assert_found(machine, machine.jvm("java-17", "17"))
    assert f"JAVA_HOME={home}" in machine.find().stderr


def test_java_home_without_java_is_passed_over(machine, tmp_path):
    machine.environment["JAVA_HOME"] = str(tmp_path / "nowhere")
    assert_found(machine, machine.jvm("java-17", "17"))


def test_java_on_path_comes_before_the_jvm_folder(machine, tmp_path):
    make_java(machine.commands / "java", "21", tmp_path / "on-path")
    machine.jvm("java-17", "17")
    assert_found(machine, tmp_path / "on-path")


def test_home_with_a_space(machine):
    assert_found(machine, machine.jvm("my java 17", "17"))


def test_broken_java_is_passed_over(machine):
    write_script(machine.jvm_root / "broken" / "bin" / "java", "exit 3")
    assert_found(machine, machine.jvm("java-17", "17"))


def test_says_what_to_do_where_it_may_not_install(machine):
    machine.jvm("java-25", "25")
    answer = machine.find()
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert "sudo apt-get install openjdk-17-jre-headless" in answer.stderr
    assert "export JAVA_HOME=" in answer.stderr
    assert machine.apt_calls() == []


def test_installs_17_as_root(machine):
    machine.command("id", "echo 0")
    machine.apt_gets("openjdk-17-jre-headless")
    assert_found(machine, machine.jvm_root / "new")
    assert not any("openjdk-21" in call for call in machine.apt_calls())


def test_installs_21_where_there_is_no_17(machine):
    machine.command("id", "echo 0")
    machine.apt_gets("openjdk-21-jre-headless")
    assert_found(machine, machine.jvm_root / "new")
    assert any("openjdk-17" in call for call in machine.apt_calls())


def test_installs_through_passwordless_sudo(machine):
    machine.command("sudo", 'shift; exec "$@"')
    machine.apt_gets("openjdk-17-jre-headless")
    assert_found(machine, machine.jvm_root / "new")


def test_fails_where_apt_has_neither(machine):
    machine.command("id", "echo 0")
    answer = machine.find()
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert "none could be installed" in answer.stderr

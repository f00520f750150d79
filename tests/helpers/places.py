"""Where the project lies, and which files are its own."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def repository_files() -> list[Path]:
    """What git tracks or would add; outside a checkout, every file that is no build output."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        outputs = {"__pycache__", "build", "dist", "artifacts", "metastore_db", "spark-warehouse"}
        paths = [
            path
            for path in ROOT.rglob("*")
            if not any(
                part in outputs or part.endswith(".egg-info") or (part[0] == "." and part != ".ci")
                for part in path.relative_to(ROOT).parts
            )
        ]
    return [path for path in paths if path.is_file()]

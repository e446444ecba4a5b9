"""What is committed is what is generated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_committed_code_is_what_is_generated(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "scripts/generate", tmp_path / "made"], check=True)
    made = {file.name: file.read_text() for file in (tmp_path / "made").iterdir()}
    there = {file.name: file.read_text() for file in (ROOT / "src/sluice/_proto").iterdir() if file.is_file()}
    assert there == made, "run scripts/generate"

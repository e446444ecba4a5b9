"""Each command and each snippet of the README does as it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.testing import Server, find_binary

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.M | re.S)
#: What differs from run to run, or is said around what is wanted.
NOISE = re.compile(
    r"^(Requirement already|Processing|Looking in|Building|Installing|Success|WARNING|\[notice\]| |\s*$)"
    r"|passed in"
)


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(kind, text) for kind, text in BLOCK.findall(page.read_text())]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A folder with the binary on the PATH, and settings that lead to free ports."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "sluice").symlink_to(os.path.abspath(find_binary() or ""))
    path = f"{bin_folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    # What is installed goes into this folder, and is used here all the same: it comes first.
    (tmp_path / "sdks").symlink_to(README.parents[1])
    installed = str(tmp_path / "installed")
    pip = {"TARGET": installed, "NO_DEPS": "1", "NO_BUILD_ISOLATION": "0", "DISABLE_PIP_VERSION_CHECK": "1"}
    pip_variables = {f"PIP_{name}": value for name, value in pip.items()}
    return {**os.environ, "PATH": path, "SLUICE_BIN": "", "PYTHONPATH": installed, **pip_variables}


@pytest.fixture
def free_address() -> str:
    with Server() as server:
        return server.url.removeprefix("http://")


def test_each_block_does_as_it_says(env: dict[str, str], free_address: str, tmp_path: Path) -> None:
    env |= {"SLUICE_LISTEN": free_address, "SLUICE_SERVER": f"http://{free_address}"}
    started: list[subprocess.Popen[bytes]] = []
    try:
        for kind, text in blocks(README):
            if kind == "console":
                run_console(text, env, tmp_path, started)
            else:
                run_python(text, env, tmp_path)
    finally:
        for process in started:
            process.terminate()
            process.wait(30)


def run_python(text: str, env: dict[str, str], folder: Path) -> None:
    named = re.match(r"# (\w+\.py)\n", text)
    (folder / (named.group(1) if named else "snippet.py")).write_text(text)
    if named is None:
        run_command(f"{sys.executable} snippet.py", env, folder)


def run_console(text: str, env: dict[str, str], folder: Path, started: list[subprocess.Popen[bytes]]) -> None:
    for command, wanted in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", text, re.M):
        if command.endswith(" &"):
            started.append(start(command[:-2].split(), env, folder))
            continue
        said = run_command(command, env, folder)
        if wanted == "2 passed\n":
            assert wanted.strip() in said
        else:
            assert [line for line in said.splitlines() if not NOISE.search(line)] == wanted.splitlines()


def run_command(command: str, env: dict[str, str], folder: Path) -> str:
    run = subprocess.run(command, shell=True, cwd=folder, env=env, capture_output=True, text=True)
    assert run.returncode == 0, f"{command}\n{run.stdout}{run.stderr}"
    return run.stdout


def start(command: list[str], env: dict[str, str], folder: Path) -> subprocess.Popen[bytes]:
    """Starts a server, and waits until it is ready."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=quiet)
    assert process.stdout is not None
    assert b"is ready" in process.stdout.readline()
    return process

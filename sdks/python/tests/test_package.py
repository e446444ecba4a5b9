"""What is built has all that belongs into it."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_wheel_and_sdist(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    made = subprocess.run(build, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    [wheel] = tmp_path.glob("sluice_client-*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        text = archive.read(metadata).decode()
    wanted = {
        "sluice/py.typed",
        "sluice/aio/__init__.py",
        "sluice/_proto/queues_pb2.py",
        "sluice/testing/plugin.py",
    }
    assert wanted <= names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"sluice", "sluice_client"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    required = [
        line for line in text.splitlines() if line.startswith("Requires-Dist") and "extra" not in line
    ]
    # tomli is what older versions of Python lack.
    wanted_packages = ["grpcio", "protobuf", "tomli"]
    assert [re.split("[<>=;]", line.split()[1])[0] for line in required] == wanted_packages
    [sdist] = tmp_path.glob("sluice_client-*.tar.gz")
    with tarfile.open(sdist) as archive:
        inside = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"README.md", "LICENSE", "pyproject.toml", "scripts/generate", "src/sluice/py.typed"} <= inside

"""What the guides for people who come from elsewhere say in Python, shell and HTTP does as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sluice.testing import Server

from .test_readme import blocks, env, run_command, run_console, run_python  # noqa: F401

GUIDES = Path(__file__).parents[3] / "docs/guides"


@pytest.mark.parametrize("guide", ["celery", "rabbitmq", "sidekiq", "sqs"])
def test_each_block_does_as_it_says(guide: str, env: dict[str, str], tmp_path: Path) -> None:  # noqa: F811
    page = GUIDES / f"{guide}.md"
    scripts = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.M | re.S)
    with Server() as server:
        env |= {"SLUICE_SERVER": server.url}
        for script in scripts:
            run_command(script, env, tmp_path)
        for kind, text in blocks(page):
            if kind == "console":
                run_console(text, env, tmp_path, [])
            else:
                run_python(text, env, tmp_path)

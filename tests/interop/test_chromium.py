"""Headless Chromium: the checks are in chromium.html, which tells on its console what came of them."""

import re
import shutil
import subprocess
import threading

import pytest

from conftest import HERE, need

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--ignore-certificate-errors", "--enable-logging=stderr"]
CHECKS = re.findall(r"^  async (\w+)\(", (HERE / "chromium.html").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def told(stack, tmp_path_factory):
    """What each check came to, by its name."""
    program = shutil.which("chromium") or need("chromium-browser")
    command = [program, *FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}", f"{stack.url}/page"]
    browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    late = threading.Timer(60, browser.kill)
    late.start()
    came = {}
    try:
        for line in browser.stderr:
            if "interop over" in line:
                break
            if found := re.search(r'"interop (\w+): (.*)", source:', line):
                came[found[1]] = found[2]
    finally:
        late.cancel()
        browser.terminate()
        browser.wait(20)
    return came


@pytest.mark.parametrize("check", CHECKS)
def test_chromium(check, told):
    assert told.get(check) == "ok", told

#!/usr/bin/env python3
"""As much of `docker compose` as deploy/ uses, which runs the services as processes of this machine.

  compose.py STATE -f FILE [--profile NAME] run --rm|up --detach --wait|exec -T SERVICE [COMMAND...]

In STATE each volume is a folder and each service has a port. Names of hosts and places of the image become those.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

import yaml
from conftest import ROOT, binary

IMAGE_DATA = "/var/lib/sluice"


def image_environment() -> dict[str, str]:
    """What the Dockerfile sets for all processes of the image."""
    text = (ROOT / "deploy/Dockerfile").read_text().replace("\\\n", " ")
    entries = re.findall(r"^ENV (.*)$", text.split("FROM scratch")[1], flags=re.M)
    return dict(pair.split("=", 1) for entry in entries for pair in entry.split())


class Compose:
    def __init__(self, state: pathlib.Path, file: pathlib.Path):
        self.state = state
        self.services = yaml.safe_load(file.read_text())["services"]
        self.ports = json.loads((state / "ports.json").read_text())

    def here(self, service: str, text: str) -> str:
        """A value of the file or the image, as it is on this machine."""
        volume = self.services[service]["volumes"][0].split(":")[0]
        text = re.sub(r"\$\{(\w+):-\}", lambda found: os.environ.get(found[1], ""), text)
        text = text.replace(IMAGE_DATA, str(self.state / volume))
        text = text.replace("0.0.0.0:7070", f"127.0.0.1:{self.ports[service]}")
        text = text.replace("localhost:7070", f"127.0.0.1:{self.ports[service]}")
        for name, port in self.ports.items():
            text = re.sub(rf"\b{name}:7070", f"127.0.0.1:{port}", text)
        return text

    def environment(self, service: str) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
        settings = image_environment() | self.services[service]["environment"]
        del settings["PATH"]
        return env | {name: self.here(service, value) for name, value in settings.items()}

    def started(self, service: str, command: list[str], **options) -> subprocess.Popen:
        command = [binary(), *(self.here(service, word) for word in command)]
        return subprocess.Popen(command, env=self.environment(service), cwd=self.state, **options)

    def run(self, service: str) -> int:
        return self.started(service, self.services[service]["command"]).wait(60)

    def up(self, service: str) -> int:
        """Starts the service unless it runs, and waits until its healthcheck is content."""
        pid = self.state / f"{service}.pid"
        if not pid.exists():
            with open(self.state / f"{service}.log", "a") as log:
                process = self.started(service, self.services[service]["command"], stdout=log, stderr=log)
            pid.write_text(str(process.pid))
        deadline = time.monotonic() + 30
        while self.exec(service, healthcheck()) != 0:
            if time.monotonic() > deadline:
                print((self.state / f"{service}.log").read_text(), file=sys.stderr)
                return 1
            time.sleep(0.1)
        return 0

    def exec(self, service: str, command: list[str]) -> int:
        assert command[0] == "sluice", "the image has nothing else"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} if command == healthcheck() else {}
        return self.started(service, command[1:], **quiet).wait(60)


def healthcheck() -> list[str]:
    found = re.search(r"^HEALTHCHECK .* CMD (\[.*\])$", (ROOT / "deploy/Dockerfile").read_text(), flags=re.M)
    return json.loads(found[1])


def main(state: str, *arguments: str) -> int:
    words = [word for word in arguments if word not in ("--rm", "--detach", "--wait", "-T")]
    assert words.pop(0) == "-f"
    compose = Compose(pathlib.Path(state), pathlib.Path(words.pop(0)))
    if words[0] == "--profile":
        words = words[2:]
    verb, service, *rest = words
    return getattr(compose, verb)(service, *([rest] if rest else []))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

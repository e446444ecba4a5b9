"""The guide for agents, word by word."""

import json
import re
import subprocess

from conftest import ROOT, binary

GUIDE = ROOT / "docs/agents.md"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", GUIDE.read_text(), flags=re.M | re.S)


def test_the_commands_of_the_guide_run(server):
    (server.directory / "policy.toml").write_text(blocks("toml")[0])
    (server.directory / "sluice").symlink_to(binary())
    env = {**server.env, "SLUICE_SERVER": server.url, "PATH": f"{server.directory}:{server.env['PATH']}"}
    commands = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) > 8
    # The queues of the guide are there once something was sent to them.
    script = ["set -ex", commands[0], commands[1], "sluice send mail hello", *commands[2:]]
    ran = subprocess.run(
        ["bash", "-c", "\n".join(script)], env=env, cwd=server.directory, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr


def test_the_file_for_programs_names_a_command_that_there_is(server):
    [program] = [json.loads(text)["mcpServers"]["sluice"] for text in blocks("json") if "mcpServers" in text]
    (server.directory / "agent.token").write_text("sluice_x")
    arguments = [word.replace("/home/ann/", f"{server.directory}/") for word in program["args"]]
    ran = subprocess.run([binary(), *arguments], input="", capture_output=True, text=True, timeout=30, env=server.env)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_every_tool_is_in_the_table():
    named = set(re.findall(r"`(\w+)`", GUIDE.read_text().split("## Tools")[1].split("## Long leases")[0]))
    rows = (ROOT / "crates/cli/src/mcp/tools.rs").read_text().split("const ROWS")[1].split("];")[0]
    tools = {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in re.findall(r"Operation::(\w+)", rows)}
    assert {name.replace("who_am_i", "whoami") for name in tools} <= named

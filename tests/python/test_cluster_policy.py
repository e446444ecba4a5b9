"""The policy that a cluster stores counts on every node."""

import json
import shutil
import ssl
import urllib.error
import urllib.request

from conftest import until
from test_cluster_join import begun, joined, machines, until_sent  # noqa: F401

BILLING = """
[[rule]]
name = "billing"
identities = ["billing"]
role = "observer"
"""
ADMIN = """
[[rule]]
name = "all"
identities = ["*"]
role = "admin"
namespaces = ["*"]
"""


def status(machine, token: str):
    """Status of a look at the queues with a token; None: there is no answer."""
    context = ssl.create_default_context(cafile=machine.directory / "data-tls" / "ca.pem")
    headers = {"authorization": f"Bearer {token}"}
    request = urllib.request.Request(machine.url + "/v1/queues", None, headers)
    try:
        with urllib.request.urlopen(request, timeout=20, context=context) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def led_by(machine, node: int):
    """Lets a node lead, and waits until the machine knows it."""
    until(lambda: machine.run("cluster", "transfer", str(node)).returncode == 0, f"node {node} leads")
    until(lambda: machine.members().get(node) == [0], f"all know that node {node} leads")


def written(machine, text: str) -> str:
    (machine.directory / "policy.toml").write_text(text)
    return "policy.toml"


def enforced(machines, token: str, expected: int):
    """Waits until each machine enforces the same, whichever leads."""
    for number, machine in machines.items():
        led_by(machine, number)
        until(lambda m=machine: status(m, token) == expected, f"node {number} answers {expected} when it leads")


def problems(machine):
    return [text for text in machine.json("cluster", "status")["problems"] if "polic" in text]


def test_a_policy_is_set_on_one_node_enforced_on_all_and_outlives_the_leader(machines):  # noqa: F811
    one = begun(machines)
    two, three = joined(machines, "two", one), joined(machines, "three", one)
    until(lambda: "voters=[1, 2, 3]" in (one.directory / "log").read_text(), "all nodes vote")
    nodes = {1: one, 2: two, 3: three}
    token = two.run("token", "create", "billing").stdout.strip()
    enforced(nodes, token, 403)
    assert two.run("policy", "show").returncode == 3

    first = two.json("policy", "set", written(two, BILLING), "--version", "")
    enforced(nodes, token, 200)
    for machine in nodes.values():
        shown = machine.run("policy", "show")
        assert shown.stdout == BILLING and first["version"] in shown.stderr
    # The leader is lost as soon as it has answered; it learns by itself what it has missed.
    led_by(one, 1)
    second = one.json("policy", "set", written(one, "# nobody\n"))
    one.kill()
    until_sent(two, "d")
    until(lambda: status(two, token) == 403 == status(three, token), "the others enforce it")
    third = two.json("policy", "set", "policy.toml", "--version", second["version"])
    one.start()
    until(lambda: one.payloads() == ["a", "b", "c", "d"], "the first node is back")
    enforced(nodes, token, 200)
    assert one.json("policy", "show")["version"] == third["version"]
    entries = map(json.loads, three.run("audit", "--json").stdout.splitlines())
    versions = [entry["target"].rsplit("/", 1)[1] for entry in entries if entry["operation"] == "policy_put"]
    assert versions == [stored["version"] for stored in (first, second, third)]

    # All start again, and a backup has it.
    for machine in nodes.values():
        assert machine.stop() == 0
    for machine in nodes.values():
        machine.start()
    enforced(nodes, token, 200)
    assert two.run("backup", "copy").returncode == 0
    alone = machines("alone")
    shutil.copy(two.directory / "data.key", alone.directory)
    assert alone.run("restore", str(two.directory / "copy"), "data", "--key-source", "file:data.key").returncode == 0
    alone.start("--tls", "auto")
    assert alone.run("policy", "show").stdout == BILLING and status(alone, token) == 200


def test_policy_files_that_differ_are_told_until_a_policy_is_stored(machines):  # noqa: F811
    one = begun(machines)
    two = joined(machines, "two", one)
    until(lambda: "voters=[1, 2]" in (one.directory / "log").read_text(), "both nodes vote")
    assert problems(one) == []
    token = one.run("token", "create", "billing").stdout.strip()
    written(two, BILLING)
    assert two.stop() == 0
    two.start("--access-policy", "policy.toml")
    until_sent(two, "d")
    (told,) = problems(one)
    assert "none on 1" in told and " on 2" in told and "`sluice policy set FILE`" in told
    led_by(one, 1)
    until(lambda: status(one, token) == 403, "without a file nobody gives the right")
    led_by(one, 2)
    until(lambda: status(one, token) == 200, "the file of the other gives it")
    one.json("policy", "set", written(one, "# nobody\n"))
    until(lambda: problems(one) == [] and status(two, token) == 403, "the stored policy counts instead of the file")
    until(lambda: "is not used" in (two.directory / "log").read_text(), "the log says so")
    led_by(one, 1)
    assert one.run("policy", "remove", "--yes").returncode == 0
    until(lambda: len(problems(two)) == 1, "the file counts again")


def test_a_policy_with_mistakes_or_without_its_administrator_is_refused(machines):  # noqa: F811
    one = begun(machines)
    wrong = one.run("policy", "set", written(one, BILLING.replace("role", "rule")))
    assert wrong.returncode == 2
    assert "line 5: rule 1" in wrong.stderr and "line 2: rule 1: role is missing" in wrong.stderr
    assert one.run("policy", "set", "nowhere.toml").returncode == 2
    assert one.run("policy", "show").returncode == 3
    assert one.run("policy", "remove").returncode == 2, "without --yes"
    kept = one.json("policy", "set", written(one, ADMIN))
    late = one.run("policy", "set", written(one, BILLING), "--version", "")
    assert late.returncode == 4 and kept["version"] in late.stderr
    pem = one.run("cert", "show", "data-tls/admin.pem", "--json")
    serial = json.loads(pem.stdout)["serial"]
    own = one.run("policy", "set", written(one, f'{ADMIN}[revoked]\nserials = ["{serial}"]\n'))
    assert own.returncode == 4 and "is revoked" in own.stderr
    assert one.run("policy", "show").stdout == ADMIN

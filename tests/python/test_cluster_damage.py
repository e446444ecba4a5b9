"""Nodes of a cluster whose data is damaged when they start, or copied."""

import pathlib
import re
import shutil
import ssl
import urllib.request

from conftest import until
from test_cluster_join import Machine, begun, joined, machines, numbers, until_sent  # noqa: F401

SHARD = pathlib.Path("data") / "shard-000"
BIG = "x" * 900_000


def log(machine: Machine) -> str:
    return (machine.directory / "log").read_text()


def three_nodes(machines, *settings: str):  # noqa: F811
    one = begun(machines, *settings)
    two, three = joined(machines, "two", one), joined(machines, "three", one)
    until(lambda: "voters=[1, 2, 3]" in log(one), "all nodes vote")
    return one, two, three


def problems(machine: Machine) -> list[str]:
    status, answer = machine.request("GET", "/v1/cluster/status")
    return answer["problems"] if status == 200 else ["it does not answer"]


def files(shard: pathlib.Path) -> dict[str, bytes]:
    """Data of a shard by the names of its files."""
    return {path.name: path.read_bytes() for path in shard.iterdir() if path.name != "lock"}


def flip(path: pathlib.Path):
    """Flips a bit in the middle of what a file holds, not of the zeros between batches."""
    content = path.read_bytes()
    at = len(content.rstrip(b"\0")) // 2
    at += len(content[at:]) - len(content[at:].lstrip(b"\0"))
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([content[at] ^ 1]))


def snapshot(machine: Machine) -> pathlib.Path:
    return max((machine.directory / SHARD).glob("*.snapshot"))


def manifest(machine: Machine) -> pathlib.Path:
    return machine.directory / SHARD / "manifest"


def sealed_segment(machine: Machine) -> pathlib.Path:
    """The newest segment that a start has sealed; it holds what came since the state."""
    machine.start()
    until(lambda: problems(machine) == [], "the cluster is whole")
    assert machine.stop() == 0
    segments = sorted((machine.directory / SHARD).glob("*.log"))
    return [path for path in segments if path.read_bytes().strip(b"\0")][-2]


def figures(machine: Machine):
    """Number of messages as the machine itself has them, and whether what it has is damaged."""
    context = ssl.create_default_context(cafile=machine.directory / "data-tls" / "ca.pem")
    context.load_cert_chain(*(machine.directory / "data-tls" / f"admin.{end}" for end in ("pem", "key")))
    with urllib.request.urlopen(machine.url + "/metrics", context=context) as metrics:
        text = metrics.read().decode()
    found = re.search(r'^sluice_shard_messages{shard="0",state="ready"} (\d+)$', text, flags=re.M)
    damaged = re.search(r'^sluice_replica_damaged{shard="0"} (\d)$', text, flags=re.M)
    return int(found[1]), int(damaged[1])


def contents(machine: Machine, number: int):
    """Messages as the machine has them, which gets the leadership: small payloads, and ids of big messages."""
    until(lambda: machine.run("cluster", "transfer", str(number)).returncode == 0, "the node leads")
    until(lambda: machine.members().get(number), "the node leads")
    big = machine.request("GET", "/v1/queues/big/messages?limit=1000")[1]
    return machine.payloads(), [message["id"] for message in big["messages"]]


def test_what_is_damaged_at_a_start_comes_from_the_others(machines):  # noqa: F811
    one, two, hurt = three_nodes(machines, "--cluster-log", "1MiB")
    # More than the leader keeps of its log, so that who begins empty gets a state.
    for _ in range(80):
        assert one.request("POST", "/v1/queues/big/messages", {"payload": BIG})[0] == 201
    until(lambda: list((hurt.directory / SHARD).glob("*.snapshot")), "the node has a snapshot")
    sent = ["a", "b", "c"]
    for number, damaged in enumerate((snapshot, sealed_segment, manifest), 4):
        sent += [f"with {number}", f"without {number}"]
        until_sent(one, sent[-2])
        count = 80 + len(sent)
        until(lambda n=count: figures(hurt) == (n - 1, 0), "the node has it")
        assert hurt.stop() == 0
        flip(damaged(hurt))
        until_sent(one, sent[-1])
        hurt.start()
        until(lambda n=number: hurt.node_file()["joined"]["node"] == n, "it has another number")
        until(lambda n=number: numbers(one) == [1, 2, n] == numbers(hurt), "its former number is removed")
        until(lambda: not (hurt.directory / "data" / "shard-000.damaged").exists(), "the copy is removed")
        until(lambda: problems(one) == [], "the cluster is whole")
        until(lambda n=count: figures(hurt) == figures(one) == figures(two) == (n, 0), "all have the same")
        payloads, big = contents(hurt, number)
        assert payloads == sent and len(big) == 80
        assert contents(one, 1) == (payloads, big)
    assert "shard-000.damaged keeps what it had" in log(hurt)
    # It counts again: without the first node the others go on only with its vote.
    one.kill()
    until_sent(two, "with it")
    status, answer = hurt.request("POST", "/v1/queues/big/receive", {"max": 1})
    assert status == 200 and answer["messages"][0]["payload"] == BIG


def test_the_first_node_comes_back_like_any_other_and_a_missing_shard_too(machines):  # noqa: F811
    one, two, three = three_nodes(machines)
    assert one.stop() == 0
    shutil.rmtree(one.directory / SHARD)
    until_sent(two, "d")
    one.start()
    until(lambda: numbers(two) == [2, 3, 4] == numbers(one), "it has another number")
    until(lambda: problems(two) == [], "the cluster is whole")
    two.kill()
    until_sent(three, "e")
    assert one.payloads() == ["a", "b", "c", "d", "e"]


def test_nothing_is_moved_while_a_majority_is_damaged(machines):  # noqa: F811
    nodes = one, two, three = three_nodes(machines)
    for machine in nodes:
        assert machine.stop() == 0
    found = {}
    for machine in (two, three):
        flip(manifest(machine))
        found[machine] = files(machine.directory / SHARD)
    for machine in nodes:
        machine.start()
    until(lambda: sum("is damaged (" in told for told in problems(one)) == 2, "both are named")
    assert "node 2 and node 3 may have forgotten" in problems(one)[0]
    assert not one.send("nobody leads")
    assert two.stop() == 0
    for machine in (two, three):
        assert files(machine.directory / SHARD) == found[machine]
        assert machine.node_file()["joined"]["node"] == numbers_of(machine, nodes)
    # What turns out to be whole goes on as it was, and is a majority with the first.
    flip(manifest(two))
    two.start()
    until(lambda: numbers(one) == [1, 2, 4] == numbers(three), "the other one gets its data")
    until_sent(three, "d")
    assert one.payloads() == ["a", "b", "c", "d"]


def numbers_of(machine, nodes) -> int:
    return nodes.index(machine) + 1


def test_damage_is_refused_where_nobody_else_has_the_data(machines):  # noqa: F811
    alone, one = machines("alone"), begun(machines)
    alone.start("--tls", "auto")
    assert alone.send("a")
    for machine in (alone, one):
        assert machine.stop() == 0
        flip(manifest(machine))
        found = files(machine.directory / SHARD)
        told = machine.refused()
        assert "is damaged at byte" in told and "`sluice restore`" in told
        assert files(machine.directory / SHARD) == found
        assert not (machine.directory / "data" / "shard-000.damaged").exists()


def test_a_copy_of_a_node_that_runs_beside_it_is_refused_and_named(machines):  # noqa: F811
    one, two, three = three_nodes(machines)
    assert two.stop() == 0
    twin = machines("twin")
    for name in ("data", "data-tls"):
        shutil.copytree(two.directory / name, twin.directory / name)
    shutil.copy(two.directory / "data.key", twin.directory)
    two.start()
    until(lambda: problems(one) == [], "the cluster is whole")
    twin.start()
    told = "uses a copy of the files of node 2, and is refused"
    until(lambda: any(told in problem for problem in problems(one)), "the copy is named")
    until_sent(two, "d")
    assert not twin.send("not taken")
    assert "two processes use the same identity" in log(one)
    assert twin.stop() == 0
    assert [machine.payloads() for machine in (one, two, three)] == [["a", "b", "c", "d"]] * 3

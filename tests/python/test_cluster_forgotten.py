"""Machines of a cluster that lose power before what they acknowledged was synced."""

import uuid

import pytest
from conftest import ALONE, unshare_is_missing, until
from test_cluster_join import (  # noqa: F401
    Machine,
    begun,
    join_without_a_server,
    joined,
    machines,
    numbers,
    until_sent,
)
from test_cluster_recover import recover

pytestmark = pytest.mark.skipif(bool(unshare_is_missing()), reason=unshare_is_missing())

BOOT_ID = "/proc/sys/kernel/random/boot_id"
FORGOTTEN = "may have forgotten what it acknowledged"


def reboot(machine: Machine):
    """Lets the next processes run as after another boot of the machine."""
    boot = machine.directory / "boot_id"
    boot.write_text(f"{uuid.uuid4()}\n")
    mount = f'mount --bind {boot} {BOOT_ID} && exec "$@"'
    machine.runner = [*ALONE, "sh", "-c", mount, "sh"]


def lose_power(machine: Machine):
    """Kills a machine, whose disk loses the end of the log, and boots it."""
    machine.kill()
    segments = sorted((machine.directory / "data" / "shard-000").glob("*.log"))
    for segment in reversed(segments):
        content = segment.read_bytes().rstrip(b"\0")
        if content:
            with segment.open("r+b") as file:
                file.seek(len(content) - 16)
                file.write(bytes(16))
            break
    reboot(machine)


def log(machine: Machine) -> str:
    return (machine.directory / "log").read_text()


@pytest.fixture
def three(machines):  # noqa: F811
    """Three machines that acknowledge what is not synced."""

    def make(name):
        machine = machines(name)
        machine.env["SLUICE_DURABILITY"] = "os"
        return machine

    one = begun(make)
    two, three = joined(make, "two", one), joined(make, "three", one)
    until(lambda: "voters=[1, 2, 3]" in log(one), "all nodes vote")
    return one, two, three


def is_healthy(machine) -> bool:
    status, answer = machine.request("GET", "/v1/cluster/status")
    return status == 200 and answer["healthy"]


def test_a_node_that_may_have_forgotten_something_comes_back_under_another_number(three):
    one, two, lost = three
    sent = ["a", "b", "c"]
    for number in range(50):
        sent.append(f"m{number}")
        assert one.send(sent[-1])
    lose_power(lost)
    assert one.send("without it")
    sent.append("without it")
    lost.start()
    until(lambda: lost.node_file()["joined"]["node"] == 4, "it has another number")
    until(lambda: numbers(one) == [1, 2, 4] == numbers(lost), "its former number is removed")
    assert FORGOTTEN in log(lost)
    until(lambda: is_healthy(one), "the cluster is whole")
    # It counts again: without the first node the others go on only with its vote.
    one.kill()
    until_sent(two, "with it")
    assert two.payloads() == [*sent, "with it"]
    # A crash of a process loses nothing that was written, and no boot what was stopped in order.
    one.start()
    until(lambda: numbers(one) == [1, 2, 4], "the first node is back")
    lost.kill()
    lost.start()
    assert two.stop() == 0
    reboot(two)
    two.start()
    until(lambda: is_healthy(one), "the cluster is whole again")
    assert numbers(one) == [1, 2, 4]
    assert FORGOTTEN not in log(one) + log(two) and log(lost).count(FORGOTTEN) == 1


def test_a_majority_that_may_have_forgotten_something_elects_nobody(three):
    for machine in three:
        machine.kill()
        reboot(machine)
    for machine in three:
        machine.start()
    one = three[0]

    def problem():
        status, answer = one.request("GET", "/v1/cluster/status")
        return answer["problems"][0] if status == 200 else ""

    until(lambda: "node 1 and node 2 and node 3 may have forgotten" in problem(), "all say so")
    assert "`sluice cluster recover`" in problem()
    assert not one.send("nobody leads")
    assert [machine.node_file()["joined"]["node"] for machine in three] == [1, 2, 3]
    for machine in three:
        assert machine.stop() == 0


def test_a_look_at_what_stopped_nodes_have_forgets_nothing(three):
    for machine in three:
        assert machine.stop() == 0
        settings = ("--listen", machine.listen, "--data-dir", "data")
        assert machine.json("cluster", "recover", *settings, "--dry-run")["shards"]
        reboot(machine)
    for machine in three:
        machine.start()
    until(lambda: is_healthy(three[0]), "the cluster is whole")
    assert all(FORGOTTEN not in log(machine) for machine in three)


def test_a_cluster_of_one_node_goes_on_with_what_was_synced(machines):  # noqa: F811
    one = machines("one")
    one.env["SLUICE_DURABILITY"] = "os"
    one = begun(lambda name: one)
    one.kill()
    reboot(one)
    one.start()
    until_sent(one, "d")
    assert numbers(one) == [1] and FORGOTTEN not in log(one)


def test_a_sole_voter_with_a_node_that_learns_is_recovered(machines):  # noqa: F811
    one = machines("one")
    one.env["SLUICE_DURABILITY"] = "os"
    one = begun(lambda name: one)
    join_without_a_server(one)
    until(lambda: "learners=[2]" in log(one), "the machine learns")
    one.kill()
    reboot(one)
    one.start()
    until(lambda: FORGOTTEN in log(one), "the node may have forgotten something")
    assert one.stop() == 0
    code, _, error = recover(one, "--yes")
    assert code == 0, error
    one.start()
    until_sent(one, "d")
    assert one.payloads() == ["a", "b", "c", "d"]

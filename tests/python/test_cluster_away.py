"""Nodes that were away while others joined, and come back to what they do not know."""

import pytest
from conftest import unshare_is_missing, until
from test_cluster_forgotten import is_healthy, log, lose_power, three  # noqa: F401
from test_cluster_join import begun, joined, machines, numbers, until_sent  # noqa: F401


def test_a_node_comes_back_to_a_leader_that_joined_meanwhile(machines):  # noqa: F811
    one = begun(machines)
    two, away = joined(machines, "two", one), joined(machines, "three", one)
    until(lambda: "voters=[1, 2, 3]" in log(one), "all nodes vote")
    assert away.stop() == 0
    joined(machines, "four", one)
    until(lambda: "voters=[1, 2, 3, 4]" in log(one), "the new machine votes")
    one.json("cluster", "transfer", "4")
    until(lambda: one.members().get(4) == [0], "it leads")
    away.start()
    until(lambda: numbers(away) == [1, 2, 3, 4], "the node that was away has the list")
    until(lambda: is_healthy(one), "the cluster is whole")
    # It counts again: one of four may be lost.
    two.kill()
    until_sent(away, "with it")


@pytest.mark.skipif(bool(unshare_is_missing()), reason=unshare_is_missing())
def test_a_node_under_a_new_number_ends_nobody_that_joined_meanwhile(three, machines):  # noqa: F811
    one, _, away = three
    assert one.send("d")
    lose_power(away)
    four = machines("four")
    four.env["SLUICE_DURABILITY"] = "os"
    four.join(one.token(), one)
    until(lambda: "voters=[1, 2, 3, 4]" in log(one), "the new machine votes")
    # The list comes to the node that was away only behind all of this.
    for _ in range(60):
        assert one.send("x" * 900_000)
    away.start()
    until(lambda: away.node_file()["joined"]["node"] == 5, "it has another number")
    until(lambda: numbers(one) == [1, 2, 4, 5] == numbers(away), "its former number is removed")
    until(lambda: is_healthy(one), "the cluster is whole")
    assert four.process.poll() is None and not four.node_file()["is_removed"]

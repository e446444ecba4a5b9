"""Machines that leave a cluster."""

from conftest import until
from test_cluster_join import begun, join_without_a_server, joined, machines, until_sent  # noqa: F401


def test_a_node_stays_until_the_others_have_all_shards(machines):  # noqa: F811
    one = begun(machines, "--shards=2")
    assert one.run("namespace", "create", "shop", "--shard", "1").returncode == 0
    count = 6_000
    with (one.directory / "lines").open("w") as lines:
        lines.writelines(f"{number:040000}\n" for number in range(count))
    assert one.run("-n", "shop", "send", "big", "--lines", "-f", "lines", "-q").returncode == 0
    two = machines("two")
    two.settings = one.settings
    two.join(one.token(), one)
    # Shard 0 is small: the machine that joins leads it long before it has the other one.
    until(lambda: two.run("cluster", "remove", "1", "--yes").returncode == 0, "the first node is to leave")
    assert one.process.wait(40) == 9
    until(lambda: two.members() == {2: [0, 1]}, "the second node leads all")
    assert two.json("-n", "shop", "queue", "show", "big")["counts"]["ready"] == count


def test_machines_that_died_before_they_voted_are_removed_one_after_the_other(machines):  # noqa: F811
    one = begun(machines)
    for _ in range(2):
        join_without_a_server(one)
    until(lambda: list(one.members()) == [1, 2, 3], "both are listed")
    for number in ("2", "3"):
        done = one.run("cluster", "remove", number, "--yes")
        assert done.returncode == 0, done.stderr
    until(lambda: list(one.members()) == [1], "the first node is alone again")
    refused = one.run("cluster", "remove", "1", "--yes")
    assert refused.returncode != 0 and "the last node" in refused.stderr


def test_a_removed_leader_ends_soon_and_is_not_to_be_started_again(machines):  # noqa: F811
    one = begun(machines)
    two, three = joined(machines, "two", one), joined(machines, "three", one)
    until(lambda: "voters=[1, 2, 3]" in (one.directory / "log").read_text(), "all nodes vote")
    assert two.run("cluster", "remove", "1", "--yes").returncode == 0
    # Less than the time for which an entry of the audit log waits for a leader.
    assert one.process.wait(9) == 9
    text = (one.directory / "log").read_text()
    assert "Object {" not in text and "was removed from its cluster" in text
    assert "was removed from its cluster" in one.refused() and one.process.returncode == 9
    until_sent(three, "d")

"""A node goes on alone after the majority of its cluster is lost for good."""

import json
import shutil

from conftest import until
from test_cluster_join import begun, free_port, joined, machines, numbers, until_sent  # noqa: F401


def recover(machine, *arguments: str):
    """The remains of the cluster, and what became of the node; fails with the error."""
    settings = ("--listen", machine.listen, "--data-dir", "data", *machine.settings)
    done = machine.run("cluster", "recover", *settings, "--json", *arguments)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def health(machine):
    return machine.request("GET", "/v1/cluster/status")[1]["shards"]


def lost(make, *settings: str):
    """The third of three nodes, whose others are gone without a word, and a message that it has."""
    one = begun(make, *settings)
    two, three = joined(make, "two", one), joined(make, "three", one)
    until(lambda: all(len(shard["followers"]) == 2 for shard in health(one)), "all nodes follow")
    until(lambda: all(it["votes"] for shard in health(one) for it in shard["followers"]), "all nodes vote")
    until_sent(one, "d")
    until(lambda: three.payloads() == ["a", "b", "c", "d"], "the third node has all of it")
    one.kill()
    two.kill()
    return one, two, three


def test_what_one_node_has_goes_on_and_the_others_are_refused(machines):
    one, two, three = lost(machines)
    certificate = three.directory / "data-tls" / "server.pem"
    former = certificate.read_text()
    code, shown, error = recover(three, "--dry-run")
    assert code == 4 and "uses the data directory" in error and not shown
    three.kill()
    # Without a word of the operator the data stay as they are.
    before = three.node_file()
    code, [remains], _ = recover(three, "--dry-run")
    assert code == 0 and three.node_file() == before
    [shard] = remains["shards"]
    assert (remains["node"], shard["members"]) == (3, [1, 2, 3])
    assert 0 < shard["committed_index"] <= shard["index"] and shard["term"] > 0 and shard["time_ms"] > 0
    code, [again], error = recover(three)
    assert code == 2 and "--yes" in error and again == remains and three.node_file() == before

    code, [_, recovered], _ = recover(three, "--yes")
    assert code == 0 and recovered["node"] == 4 and recovered["cluster"] != remains["cluster"]
    assert three.node_file()["joined"]["node"] == 4
    assert certificate.read_text() != former
    # The same again changes nothing.
    after = three.node_file()
    code, [_, same], _ = recover(three, "--yes")
    assert code == 0 and same == recovered and three.node_file() == after

    three.start()
    until_sent(three, "e")
    assert three.payloads() == ["a", "b", "c", "d", "e"]
    assert numbers(three) == [4]
    # A former node is told why nobody speaks with it, whichever of the two connects.
    two.start()
    told = f"the cluster {remains['cluster']} was recovered without node 2, and goes on as {recovered['cluster']}"
    until(lambda: told in (two.directory / "log").read_text(), "the former node says why it is refused")
    assert told in (three.directory / "log").read_text()
    two.kill()
    # New machines join, the former ones with empty directories.
    two.process = None
    shutil.rmtree(two.directory / "data")
    two.join(three.token(), three)
    five = joined(machines, "five", three)
    until(lambda: numbers(five) == [4, 5, 6] == numbers(two), "the cluster has three nodes again")
    until(lambda: "voters=[4, 5, 6]" in (three.directory / "log").read_text(), "all nodes vote")
    three.kill()
    until_sent(five, "f")
    assert two.payloads() == ["a", "b", "c", "d", "e", "f"]


def files(machine):
    """All files of the machine but its log, with their contents."""
    found = (path for path in machine.directory.rglob("*") if path.is_file() and path.name != "log")
    return {path.relative_to(machine.directory): path.read_bytes() for path in found}


def test_a_look_at_what_a_node_has_writes_nothing(machines):
    one = begun(machines)
    two = joined(machines, "two", one)
    until(lambda: "voters=[1, 2]" in (one.directory / "log").read_text(), "both nodes vote")
    until_sent(one, "d")
    assert two.stop() == 0 and one.stop() == 0
    for machine in (one, two):
        before = files(machine)
        code, [remains], _ = recover(machine, "--dry-run")
        assert code == 0 and remains["shards"][0]["members"] == [1, 2]
        # Who does not consent changes nothing either.
        code, [again], _ = recover(machine)
        assert code == 2 and again == remains
        assert files(machine) == before
    one.start()
    two.start()
    until_sent(one, "e")
    # The orderly stop is not forgotten.
    assert all("not stopped in order" not in (it.directory / "log").read_text() for it in (one, two))


def test_a_directory_in_which_no_node_has_run_is_to_be_started(machines):
    one = machines("one")
    one.start("--tls", "auto")
    assert one.send("a") and one.stop() == 0
    one.json("cluster", "init", "--listen", one.listen, "--data-dir", "data")
    code, shown, error = recover(one, "--dry-run")
    assert code != 0 and not shown and "no node of a cluster has written the log; start the server" in error
    one.start()
    until(lambda: one.payloads() == ["a"], "it goes on with its data")


def test_a_recovery_that_was_interrupted_is_finished_by_the_next(machines):
    one, two, three = lost(machines, "--shards=2")
    three.kill()
    # Its machine has another port by now.
    three.listen = f"127.0.0.1:{free_port()}"
    three.url = f"https://{three.listen}"
    # A setting that names fewer shards than there are would leave one behind.
    code, shown, error = recover(three, "--shards=1", "--yes")
    assert code == 2 and "set it to 2" in error and not shown
    directory = three.directory
    for part in ("data", "data-tls"):
        shutil.copytree(directory / part, directory / f"{part}-before")
    named = ("--dry-run", "--cluster-address", "three.example:7070")
    assert recover(three, *named)[1][0]["address"] == "three.example:7070"
    code, [_, recovered], _ = recover(three, "--yes")
    assert code == 0 and recovered["address"] == three.listen
    place = three.node_file()["joined"]
    former = json.loads((directory / "data-before" / "node").read_text())

    def interrupted(changed: int, is_certified: bool):
        """The files as they are when the process dies after so many shards, or after the certificate."""
        shutil.copytree(directory / "data-before", directory / "data-cut")
        for shard in [f"shard-{number:03}" for number in range(changed)]:
            shutil.rmtree(directory / "data-cut" / shard)
            shutil.copytree(directory / "data" / shard, directory / "data-cut" / shard)
        (directory / "data-cut" / "node").write_text(json.dumps({**former, "recovering": place}))
        shutil.copytree(directory / ("data-tls" if is_certified else "data-tls-before"), directory / "data-cut-tls")

    for changed, is_certified in ((0, False), (1, False), (2, False), (2, True)):
        interrupted(changed, is_certified)
        shutil.copy(directory / "data.key", directory / "data-cut.key")
        assert "was interrupted" in three.refused("--data-dir", "data-cut")
        code, [_, again], error = recover(three, "--data-dir", "data-cut", "--yes")
        assert code == 0 and again == recovered, error
        three.start("--data-dir", "data-cut")
        until(lambda: three.members() == {4: [0, 1]}, "the node goes on alone")
        assert three.payloads() == ["a", "b", "c", "d"]
        assert [node["address"] for node in three.json("cluster", "members")["nodes"]] == [three.listen]
        assert three.stop() == 0
        for part in directory.glob("data-cut*"):
            shutil.rmtree(part) if part.is_dir() else part.unlink()


def test_what_is_no_node_is_not_recovered(machines):
    alone = machines("alone")
    alone.start()
    alone.stop()
    code, shown, error = recover(alone, "--yes")
    assert code == 2 and "belongs to no node of a cluster" in error and not shown
    one = begun(machines)
    one.stop()
    code, [remains, same], _ = recover(one, "--yes")
    assert code == 0 and remains["shards"][0]["members"] == [1] and same["node"] == 1


def test_a_namespace_that_shard_0_has_lost_is_kept_and_its_number_not_given_again(machines):
    def make(name):
        machine = machines(name)
        machine.env["SLUICE_DURABILITY"] = "os"
        return machine

    one, two, three = lost(make, "--shards=2")
    one.start()
    two.start()
    until(lambda: one.members() and three.send("e"), "there is a leader again")
    segments = sorted((three.directory / "data" / "shard-000").glob("*.log"))
    before = {path: path.read_bytes().rstrip(b"\0") for path in segments}
    assert one.run("namespace", "create", "old", "--shard", "1").returncode == 0
    path = "/v1/namespaces/{}/queues/jobs/messages"
    assert one.request("POST", path.format("old"), {"messages": [{"payload": "of old"}]})[0] == 201
    held = path.format("old") + "?payload=true"
    until(lambda: (three.request("GET", held)[1] or {}).get("messages"), "the third node has all of it")
    for machine in (one, two, three):
        machine.kill()
    # What the third node has of shard 0 ends before.
    for segment, content in before.items():
        segment.write_bytes(content + bytes(segment.stat().st_size - len(content)))
    assert recover(three, "--yes")[0] == 0
    three.start()
    until(lambda: three.send("f"), "the node goes on alone")
    created = three.run("namespace", "create", "new", "--shard", "1")
    assert created.returncode == 0, created.stderr
    status, answer = three.request("GET", path.format("new"))
    assert status == 404 or not answer["messages"]
    assert [it["payload"] for it in three.request("GET", held)[1]["messages"]] == ["of old"]

"""A server becomes a cluster, and machines join and leave it."""

import json
import pathlib
import random
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from conftest import Process, binary, until


def free_port() -> int:
    """A port that no connection gets from the system before its server listens: below those."""
    while True:
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", random.randrange(20_000, 32_000)))
                return found.getsockname()[1]
            except OSError:
                continue


class Machine(Process):
    """A machine of a cluster."""

    def __init__(self, directory: pathlib.Path, name: str):
        (directory / name).mkdir()
        super().__init__(directory / name, f"127.0.0.1:{free_port()}")
        self.url = f"https://{self.listen}"
        self.process = None
        self.settings = ()

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        """The command line, against this server as its administrator."""
        tls = self.directory / "data-tls"
        env = {
            **self.env,
            "SLUICE_SERVER": self.url,
            "SLUICE_CA": str(tls / "ca.pem"),
            "SLUICE_CERT": str(tls / "admin.pem"),
            "SLUICE_CERT_KEY": str(tls / "admin.key"),
        }
        command = [binary(), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=self.directory, env=env)

    def json(self, *arguments: str):
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def begin(self, *arguments: str) -> str:
        with (self.directory / "log").open("a") as log:
            return self.spawn(*self.settings, *arguments, log=log)

    def start(self, *arguments: str):
        first_line = self.begin(*arguments)
        assert first_line, (self.directory / "log").read_text()
        assert "url" in json.loads(first_line), first_line

    def join(self, token: str, at: "Machine"):
        self.start("--join", at.url, "--join-token", token)

    def refused(self, *arguments: str) -> str:
        """The error of a server that does not start."""
        assert self.begin(*arguments) == ""
        assert self.process.wait(40) != 0
        return (self.directory / "log").read_text()

    def node_file(self):
        return json.loads((self.directory / "data" / "node").read_text())

    def request(self, method, path, body=None):
        """Status and JSON of the answer; None: there is none."""
        tls = self.directory / "data-tls"
        context = ssl.create_default_context(cafile=tls / "ca.pem")
        context.load_cert_chain(tls / "admin.pem", tls / "admin.key")
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"} if data else {}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20, context=context) as answer:
                return answer.status, json.loads(answer.read() or "null")
        except urllib.error.HTTPError as error:
            assert error.code != 403, "an administrator is refused"
            return error.code, json.loads(error.read())
        except OSError:
            return None, None

    def send(self, *payloads: str):
        messages = [{"payload": payload} for payload in payloads]
        return self.request("POST", "/v1/queues/jobs/messages", {"messages": messages})[0] == 201

    def payloads(self):
        status, answer = self.request("GET", "/v1/queues/jobs/messages?payload=true")
        return [message["payload"] for message in answer["messages"]] if status == 200 else None

    def members(self):
        status, answer = self.request("GET", "/v1/cluster")
        return {node["number"]: node["leads"] for node in answer["nodes"]} if status == 200 else {}

    def token(self, *arguments: str) -> str:
        return self.json("cluster", "add", *arguments)["token"]


@pytest.fixture
def machines(tmp_path):
    made = []

    def make(name):
        made.append(Machine(tmp_path, name))
        return made[-1]

    yield make
    for machine in made:
        if machine.process and machine.process.poll() is None:
            machine.process.send_signal(signal.SIGKILL)
            machine.process.wait()


def begun(make, *settings: str):
    """A server with data and these settings, which was made the first node."""
    one = make("one")
    one.settings = settings
    one.start("--tls", "auto")
    assert one.send("a", "b")
    assert one.stop() == 0
    initialised = one.json("cluster", "init", *settings, "--listen", one.listen, "--data-dir", "data")
    assert initialised["node"] == 1 and initialised["address"] == one.listen
    one.start()
    until(lambda: one.send("c"), "the first node leads")
    until(lambda: list(one.members()) == [1], "the node shows itself")
    return one


def test_a_server_with_data_becomes_the_first_node_in_place(machines):
    one = begun(machines)
    assert one.payloads() == ["a", "b", "c"]
    # The same again changes nothing; while the server runs, it is refused.
    again = ("cluster", "init", "--listen", one.listen, "--data-dir", "data", "--json")
    assert "uses the data directory" in one.run(*again).stderr
    before = one.node_file()
    one.stop()
    assert one.run(*again).returncode == 0
    assert one.node_file() == before
    one.start()
    until(lambda: one.send("d"), "the node leads again")


def test_a_cluster_begins_without_data_and_with_more_shards(machines):
    one, two = machines("one"), machines("two")
    for machine, shards in ((one, 1), (two, 2)):
        if machine is two:
            machine.start("--tls", "auto")
            assert machine.send("a") and machine.stop() == 0
        settings = ("--listen", machine.listen, "--data-dir", "data", "--shards", str(shards))
        assert machine.json("cluster", "init", *settings)["node"] == 1
        machine.start("--shards", str(shards))
        until(lambda m=machine, n=shards: m.members() == {1: list(range(n))}, "it leads all shards")
        until_sent(machine, "b")
    assert (one.payloads(), two.payloads()) == (["b"], ["a", "b"])


def test_whoever_gets_a_root_key_is_told_to_keep_a_copy(machines):
    one, two = machines("one"), machines("two")
    init = ("cluster", "init", "--listen", one.listen, "--data-dir", "data")
    warning = f"KEEP A COPY of {one.directory / 'data.key'}\n"
    assert warning in one.run(*init).stdout
    assert "KEEP A COPY" not in one.run(*init).stdout
    one.start()
    until(lambda: list(one.members()) == [1], "the node shows itself")

    def is_made(*arguments: str):
        """True if a start of the second machine says that it has made its key."""
        return json.loads(two.begin(*arguments))["encryption"]["made"]

    assert is_made("--join", one.url, "--join-token", one.token())
    until(lambda: one.members().keys() == {1, 2}, "the machine has joined")
    assert two.stop() == 0
    assert not is_made()


def test_the_key_of_the_ca_is_sealed_with_the_root_key_of_each_node(machines):
    one = begun(machines)
    two = joined(machines, "two", one)
    tls = [machine.directory / "data-tls" for machine in (one, two)]
    for folder in tls:
        assert "SLUICE SEALED KEY" in (folder / "ca.key").read_text()
        assert {(folder / name).stat().st_mode & 0o777 for name in ("ca.key", "server.key", "admin.key")} == {0o600}
    sealed = [(folder / "ca.key").read_text() for folder in tls]
    assert sealed[0] != sealed[1]

    def certified(machine, name, *arguments: str):
        return machine.run("cert", "client", name, "--scope", "default=r", "--dir", "data-tls", *arguments)

    # Certificates can be made with it where its root key is, and nowhere else.
    assert certified(two, "first").returncode == 0
    (two.directory / "other.key").write_text("07" * 32)
    refused = certified(two, "second", "--key-source", "file:other.key")
    assert refused.returncode == 2 and "--key-source" in refused.stderr and "root key" in refused.stderr
    # Another root key seals it anew at once, so that the former may go.
    two.json("key", "rotate")
    again = (tls[1] / "ca.key").read_text()
    assert again not in sealed and "SLUICE SEALED KEY" in again
    keys = (two.directory / "data.key").read_text().split("\n")
    newest = next(line for line in keys if len(line.split("#")[0].strip()) == 64)
    (two.directory / "newest.key").write_text(newest)
    assert certified(two, "third", "--key-source", "file:newest.key").returncode == 0
    # A node whose data are not encrypted keeps what it has, and a new one has the key as it is.
    three = machines("three")
    three.start("--join", two.url, "--join-token", two.token(), "--no-encryption")
    plain = three.directory / "data-tls" / "ca.key"
    assert "BEGIN PRIVATE KEY" in plain.read_text() and plain.stat().st_mode & 0o777 == 0o600
    assert three.stop() == 0
    three.start()
    assert "SLUICE SEALED KEY" in plain.read_text()
    assert certified(three, "fourth").returncode == 0


def test_no_machine_joins_a_server_alone(machines):
    one = machines("one")
    one.start("--tls", "auto")
    for verb in (["add"], ["limits", "show"], ["limits", "set", "limits.queues=5"]):
        refused = one.run("cluster", *verb)
        assert refused.returncode == 4 and "sluice cluster init" in refused.stderr


def test_tokens_that_are_wrong_used_or_expired_are_refused(machines):
    one = begun(machines)
    token, short = one.token(), one.token("--ttl", "1ms")
    two = machines("two")
    assert "that is no join token" in two.refused("--join", one.url, "--join-token", "rubbish")
    assert "has expired" in two.refused("--join", one.url, "--join-token", short)
    # The CA of another cluster.
    wrong = token.replace(token.split("_")[2], "00" * 32)
    told = two.refused("--join", one.url, "--join-token", wrong)
    assert f"cannot join at {one.url}: the server is no node of the cluster" in told
    other = token[:-4] + "AAAA"
    assert "not one of this cluster" in two.refused("--join", one.url, "--join-token", other)
    # A machine that does not fit; its token stays good.
    assert "has 1 shard, and the machine 2" in two.refused("--join", one.url, "--join-token", token, "--shards=2")
    # A join that was cut is repeated; a machine that has joined starts again with or without the flags.
    two.join(token, one)
    assert two.node_file()["joined"]["node"] == 2
    until(lambda: one.members().keys() == {1, 2}, "the first node shows the second")
    two.kill()
    two.join(token, one)
    three = machines("three")
    assert "was used by node 2" in three.refused("--join", one.url, "--join-token", token)
    # A server with data does not join.
    alone = machines("alone")
    alone.start()
    alone.stop()
    assert "has data" in alone.refused("--join", one.url, "--join-token", one.token())
    # Nor does a node of another cluster start as that.
    other = machines("other")
    assert other.run("cluster", "init", "--listen", other.listen, "--data-dir", "data").returncode == 0
    assert "a node of another cluster" in other.refused("--join", one.url, "--join-token", one.token())
    other.start("--join", one.url, "--join-token", "gone")


def words(command: str) -> list[str]:
    """The words of a command as a shell has them, which joins lines that end with a backslash."""
    return shlex.split(command.replace("\\\n", ""))


def test_the_command_that_is_printed_lets_a_machine_join(machines):
    one = begun(machines)
    printed = one.run("cluster", "add")
    assert "One machine joins with this until" in printed.stderr and "sluice_join_" not in printed.stderr
    program, verb, *flags = words(printed.stdout)
    assert (program, verb) == ("sluice", "serve")
    assert flags[: flags.index("--join")] == ["--listen", "0.0.0.0:7070", "--cluster-address", "HOST:7070"]
    two = machines("two")
    two.start(*flags[flags.index("--join") :])
    until(lambda: one.members().keys() == {1, 2}, "the machine has joined")
    # The new machine is not told to ask the one that it replaces.
    replacing = words(one.run("cluster", "replace", "1").stdout)
    assert replacing[replacing.index("--join") + 1] == two.url
    assert one.run("cluster", "replace", "9").returncode == 3


def join_without_a_server(one: Machine):
    """Lets a machine join that never starts: it only learns."""
    asked = {"token": one.token(), "address": f"127.0.0.1:{free_port()}", "machine": "m", "shards": 1}
    asked |= {"behaviour": 1, "oldest_behaviour": 1, "protocol": 255, "oldest_protocol": 1}
    for _ in range(2):
        now_ms = int(time.time() * 1000)
        status, answer = one.request("POST", "/v1/cluster/join", {**asked, "now_ms": now_ms})
        if status == 200:
            return
        told = answer["error"]["message"]
        if version := re.search(r"in the cluster version (\d+)", told):
            asked["behaviour"] = asked["oldest_behaviour"] = int(version[1])
        else:
            raise AssertionError(told)
    raise AssertionError("the machine cannot join")


def joined(make, name, first, *arguments):
    """Another machine, which has joined and caught up."""
    machine = make(name)
    machine.settings = first.settings
    token = first.json("cluster", *(arguments or ["add"]))["token"]
    machine.join(token, first)
    payloads = first.payloads()
    until(lambda: machine.payloads() == payloads, f"{name} has the data of the cluster")
    return machine


def numbers(machine):
    return sorted(machine.members())


def ended(machine) -> str:
    """The log of a server that starts and ends by itself."""
    machine.start()
    assert machine.process.wait(40) != 0
    return (machine.directory / "log").read_text()


def until_sent(machine, payload):
    until(lambda: machine.send(payload), f"{payload} is stored")


def test_a_cluster_grows_from_one_server_and_goes_on_without_it(machines):
    one = begun(machines)
    two, three = joined(machines, "two", one), joined(machines, "three", one)
    until(lambda: numbers(three) == [1, 2, 3] == numbers(two), "all know all nodes")
    until_sent(three, "d")
    # A learner does not count: without the first node the others go on only if both vote.
    until(lambda: one.json("cluster", "status")["tolerates"] == 1, "all nodes vote")
    in_force = one.json("cluster", "finalize", "--yes")
    assert in_force["behaviour"] == in_force["former"] == one.json("cluster", "status")["behaviour"]
    one.kill()
    until_sent(two, "e")
    assert three.payloads() == ["a", "b", "c", "d", "e"]
    one.start()
    until(lambda: one.payloads() == ["a", "b", "c", "d", "e"], "the first node has what it missed")
    # Not the last majority: one of the others is gone.
    three.kill()
    until(lambda: two.send("f"), "two nodes go on")
    refused = two.run("cluster", "remove", "2", "--yes")
    assert refused.returncode == 4 and "no majority" in refused.stderr
    refused = two.run("cluster", "finalize", "--yes")
    assert refused.returncode == 4 and "node 3 is not reached" in refused.stderr
    # Another machine comes in its place, and the one that is gone never comes back.
    four = joined(machines, "four", two, "replace", "3")
    until(lambda: numbers(two) == [1, 2, 4] == numbers(four), "the third node is removed")
    assert "was removed from its cluster" in ended(three)
    assert "was removed from its cluster" in three.refused()
    # The leader can be removed, too.
    leader = next(node for node, leads in two.members().items() if leads)
    left = {1: one, 2: two, 4: four}
    gone = left.pop(leader)
    assert next(iter(left.values())).run("cluster", "remove", str(leader), "--yes").returncode == 0
    assert gone.process.wait(40) != 0
    for machine in left.values():
        until(lambda m=machine: numbers(m) == sorted(left), "the leader is removed")
        until_sent(machine, "g")


def test_limits_are_the_clusters_whatever_its_nodes_have_in_their_settings(machines):
    small = ("--limits-payload=1000B", "--limits-batch-bytes=4KiB", "--limits-batch-items=10")
    one = begun(machines, *small)
    three = joined(machines, "three", one)
    two = machines("two")
    two.settings = ("--limits-payload=2000B", *small[1:])
    two.join(one.token(), one)
    until(lambda: two.payloads() == one.payloads(), "the second node has the data")
    nodes = {machine.node_file()["joined"]["node"]: machine for machine in (one, two, three)}
    number = next(number for number, machine in nodes.items() if machine is two)

    def answers(size):
        """Codes with which the nodes answer a send, or 201."""
        sent = (m.request("POST", "/v1/queues/jobs/messages", {"payload": "x" * size}) for m in nodes.values())
        return [status if status == 201 else answer["error"]["code"] for status, answer in sent]

    def differing():
        return one.json("cluster", "limits", "show")["differing"]

    assert answers(1000) == [201] * 3 and answers(1001) == ["payload_too_large"] * 3
    warning = "limits.payload is 2000 on this node and has no effect: in the cluster 1000 is in force"
    until(lambda: warning in (two.directory / "log").read_text(), "the node warns")
    assert differing() == [{"node": number, "limits": {"limits.payload": 2000}}]
    assert "2000B on node" in one.run("cluster", "limits", "show").stdout
    problems = one.json("cluster", "status")["problems"]
    assert any(f"node {number} " in told and "limits.payload is 2000 instead of 1000" in told for told in problems)
    # Any node is asked. Far larger bodies than before are read, too.
    for _ in range(2):
        changed = three.json("cluster", "limits", "set", "limits.payload=1MiB", "limits.batch_bytes=2MiB")
        assert changed["limits"]["limits.payload"] == 1 << 20 and changed["limits"]["limits.batch_items"] == 10
    until(lambda: answers(500_000) == [201] * 3, "the limits are in force on all nodes")
    # A leader with other settings changes nothing, nor does a restart.
    assert one.run("cluster", "transfer", str(number)).returncode == 0
    until(lambda: one.members()[number] == [0], "the second node leads")
    for machine in (one, two):
        assert machine.stop() == 0
        machine.start()
        until_sent(machine, "again")
    until(lambda: answers(500_000) == [201] * 3, "the limits stay")
    # Limits that cannot be.
    for wrong in ("limits.payload=0", "limits.rows=1", "limits.payload=8MiB", "--from-node=9"):
        refused = one.run("cluster", "limits", "set", wrong)
        assert refused.returncode == 2, (wrong, refused.stderr)
    # The settings of a node come into force, and its lost leader takes nothing of that away.
    one.json("cluster", "limits", "set", "--from-node", str(number))
    assert {node["node"] for node in differing()} == nodes.keys() - {number}
    until(lambda: answers(2001) == ["payload_too_large"] * 3, "the settings are in force")
    leader = next(number for number, leads in one.members().items() if leads)
    nodes.pop(leader).kill()
    until(lambda: answers(2000) == [201] * 2, "the others go on")
    assert answers(2001) == ["payload_too_large"] * 2
    assert next(iter(nodes.values())).json("cluster", "limits", "show")["limits"]["limits.payload"] == 2000


def test_an_address_that_was_wrong_or_has_changed_is_put_right(machines):
    one = begun(machines)
    two = machines("two")
    url, short = one.url, one.token("--ttl", "1ms")
    assert "--join https://HOST:PORT" in two.refused("--join-token", short)
    assert "reach this one" in two.refused("--join", url, "--join-token", short, "--cluster-address", "0.0.0.0:7")
    assert "expired" in two.refused("--join", url, "--join-token", short, "--cluster-address", "127.0.0.1:1")
    # What the refused try has named is forgotten.
    two.join(one.token(), one)
    until(lambda: two.payloads() == one.payloads(), "the second node has the data")

    def addresses():
        return {node["number"]: node["address"] for node in one.json("cluster", "members")["nodes"]}

    until(lambda: addresses() == {1: one.listen, 2: two.listen}, "both addresses are listed")
    # Its machine moves.
    two.stop()
    two.listen = f"127.0.0.1:{free_port()}"
    two.url = f"https://{two.listen}"
    two.start()
    assert one.run("cluster", "address", "2", one.listen).returncode == 4
    assert one.json("cluster", "address", "2", two.listen) == {"node": 2, "address": two.listen}
    until_sent(one, "moved")
    until(lambda: two.payloads() == one.payloads(), "the second node follows from its new address")
    # A node looks at the list four times a second.
    until(lambda: addresses() == {1: one.listen, 2: two.listen}, "the new address is listed")
    until(lambda: two.node_file()["address"] == two.listen, "its file follows the list")
    assert one.run("cluster", "transfer", "2").returncode == 0
    until_sent(one, "passed on")


def without(machine, path: str) -> pathlib.Path:
    """Moves a file of the machine away; its place there."""
    aside = machine.directory / "aside"
    (machine.directory / path).rename(aside)
    return aside


def test_data_of_a_node_are_refused_without_its_file(machines):
    one = begun(machines)
    two = joined(machines, "two", one)
    assert two.stop() == 0
    file = without(two, "data/node")
    # Alone it would deliver what the cluster delivers.
    assert "holds the data of a node of a cluster" in two.refused()
    assert two.process.returncode == 2
    init = two.run("cluster", "init", "--listen", two.listen, "--data-dir", "data")
    assert init.returncode == 2 and "holds the data of a node of a cluster" in init.stderr
    assert "has data" in two.refused("--join", one.url, "--join-token", one.token())
    file.rename(two.directory / "data" / "node")
    two.start()
    until_sent(one, "d")
    until(lambda: two.payloads() == ["a", "b", "c", "d"], "it is a node as before")


def test_a_backup_of_a_cluster_begins_a_server_alone_or_another_cluster(machines):
    one = begun(machines)
    two = joined(machines, "two", one)
    # Also of a node that has just got its data.
    done = two.run("backup", "copy")
    assert done.returncode == 0, done.stderr
    for name in ("alone", "first"):
        machine = machines(name)
        shutil.copy(two.directory / "data.key", machine.directory)
        restored = machine.run("restore", str(two.directory / "copy"), "data", "--key-source", "file:data.key")
        assert restored.returncode == 0, restored.stderr
        if name == "first":
            assert machine.json("cluster", "init", "--listen", machine.listen, "--data-dir", "data")["node"] == 1
            machine.start()
        else:
            machine.start("--tls", "auto")
        until_sent(machine, "d")
        assert machine.payloads() == ["a", "b", "c", "d"]


def test_a_cluster_begun_with_a_backup_of_another_has_its_own_members(machines):
    one = begun(machines)
    two = joined(machines, "two", one)
    assert two.run("cluster", "remove", "1", "--yes").returncode == 0
    until(lambda: list(two.members()) == [2], "only the second node is a member")
    until_sent(two, "d")
    done = two.run("backup", "copy")
    assert done.returncode == 0, done.stderr
    first = machines("first")
    shutil.copy(two.directory / "data.key", first.directory)
    restored = first.run("restore", str(two.directory / "copy"), "data", "--key-source", "file:data.key")
    assert restored.returncode == 0, restored.stderr
    assert first.json("cluster", "init", "--listen", first.listen, "--data-dir", "data")["node"] == 1
    first.start()
    until_sent(first, "e")

    second = joined(machines, "second", first)
    until(lambda: "voters=[1, 2]" in (second.directory / "log").read_text(), "the second machine votes")
    until_sent(second, "f")
    # A majority of the two: neither goes on alone, and what it was sent meanwhile may be stored later.
    assert first.stop() == 0
    assert not second.send("unknown")
    first.start()
    until_sent(first, "g")
    stored = [payload for payload in second.payloads() if payload != "unknown"]
    assert stored == ["a", "b", "c", "d", "e", "f", "g"]


def test_a_node_keeps_the_number_of_its_shards(machines):
    one = begun(machines)
    two = joined(machines, "two", one)
    for machine in (one, two):
        assert machine.stop() == 0
        before = sorted((machine.directory / "data").iterdir())
        assert "start with --shards 1" in machine.refused("--shards", "2")
        assert machine.process.returncode == 2
        assert sorted((machine.directory / "data").iterdir()) == before
    one.start()
    two.start()
    until_sent(two, "d")


def test_a_node_whose_disk_is_not_mounted_does_not_start_as_a_server_alone(machines):
    one = begun(machines)
    assert one.stop() == 0
    data, away = one.directory / "data", one.directory / "away"
    data.rename(away)
    # There is no directory, then one of a disk that is new.
    for times in (1, 2):
        assert one.refused().count("whose data are not in data") == times
        (data / "lost+found").mkdir(parents=True, exist_ok=True)
    shutil.rmtree(data)
    away.rename(data)
    one.start()
    until_sent(one, "d")


def test_a_node_whose_disk_is_not_mounted_does_not_join_with_its_used_token(machines):
    one, two = begun(machines), machines("two")
    token = one.token()
    two.join(token, one)
    until(lambda: two.payloads() == ["a", "b", "c"], "the second node has the data")
    assert two.stop() == 0
    data, away = two.directory / "data", two.directory / "away"
    data.rename(away)
    data.mkdir()
    told = two.refused("--join", one.url, "--join-token", token)
    assert "was used by node 2" in told and "whose data are not in data" in told
    assert list(data.iterdir()) == []
    # What is said to do when they are lost.
    two.join(one.json("cluster", "replace", "2")["token"], one)
    until(lambda: two.payloads() == ["a", "b", "c"], "the machine has the data again")
    until(lambda: numbers(two) == [1, 3], "it has come in the place of the former")


def test_a_node_goes_on_without_the_key_of_the_ca_and_not_without_the_ca(machines):
    one = begun(machines)
    two = joined(machines, "two", one)
    assert two.stop() == 0
    key = without(two, "data-tls/ca.key")
    two.start()
    until(lambda: two.payloads() == ["a", "b", "c"], "it goes on")
    assert "the key of the cluster's CA is missing" in (two.directory / "log").read_text()
    assert two.stop() == 0
    key.rename(two.directory / "data-tls" / "ca.key")
    without(two, "data-tls/ca.pem")
    told = two.refused()
    assert two.process.returncode == 2
    assert "ca.pem" in told and "`sluice cluster replace`" in told and "move its whole folder" not in told


def test_the_key_of_another_node_does_not_open_here_and_the_advice_says_so(machines):
    one = begun(machines)
    two = joined(machines, "two", one)
    assert two.stop() == 0
    shutil.rmtree(two.directory / "data-tls")
    (two.directory / "data-tls").mkdir()
    for name in ("ca.pem", "ca.key"):
        shutil.copy(one.directory / "data-tls" / name, two.directory / "data-tls")
    told = two.refused()
    assert "another node's copy of the key is sealed" in told and "move its whole folder" not in told

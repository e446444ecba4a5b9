"""Locks: who holds them, who is next, and what is left of those that are gone."""

import http.client
import itertools
import json
import os
import random
import signal
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
from conftest import binary, until
from test_cluster_join import begun, free_port, joined, machines  # noqa: F401

LOCKS, RENEW, RELEASE = "/v1/locks", "/v1/grants/renew", "/v1/grants/release"
LONG_MS = 60_000


class Asked:
    """A request for a lock whose answer is read later, or never."""

    def __init__(self, url: str, body: dict, context=None):
        secure = {"context": context} if context else {}
        kind = http.client.HTTPSConnection if context else http.client.HTTPConnection
        self.connection = kind(url.split("://")[1], timeout=20, **secure)
        self.connection.connect()
        self.body = json.dumps(body).encode()

    def send(self) -> "Asked":
        self.connection.request("POST", LOCKS, self.body, {"Content-Type": "application/json"})
        return self

    def grant(self, status=200) -> dict:
        answer = self.connection.getresponse()
        told = json.loads(answer.read())
        self.leave()
        assert answer.status == status, told
        return told

    def leave(self):
        self.connection.close()


def asked(server, key: str, **fields) -> Asked:
    """A request that waits for a lock, and stands in its line."""
    before = shown(server, key)["waiter_count"]
    waiting = Asked(server.url, {"key": key, "wait_ms": LONG_MS, **fields}).send()
    until(lambda: shown(server, key)["waiter_count"] == before + 1, "it waits")
    return waiting


def acquire(server, key: str, **fields) -> dict:
    return server.call("POST", LOCKS, {"key": key, **fields})


def renew(server, grant: dict, **fields) -> dict:
    return server.call("POST", RENEW, {"token": grant["token"], **fields})


def release(server, grant: dict):
    server.call("POST", RELEASE, {"token": grant["token"]})


def error(server, path: str, body: dict, headers=None) -> dict:
    """Error of a call that must not succeed, with its status."""
    headers = {"Content-Type": "application/json", **(headers or {})}
    status, answer = server.request("POST", path, json.dumps(body).encode(), headers)
    assert status >= 400, answer
    return {"status": status, **json.loads(answer)["error"]}


def is_held(server, **asks) -> bool:
    return error(server, LOCKS, asks)["code"] == "lock_held"


def is_lost(server, grant: dict) -> bool:
    told = [error(server, path, {"token": grant["token"]}) for path in (RENEW, RELEASE)]
    return all((one["status"], one["code"]) == (409, "lease_lost") for one in told)


def shown(server, key: str) -> dict:
    return server.call("GET", f"{LOCKS}/{quote(key, safe='')}")


def line(server, key: str) -> list[str]:
    """Owners that wait, in their order."""
    return [waiter["owner"] for waiter in shown(server, key)["waiters"]]


def listed(server, query="") -> list[str]:
    return [lock["key"] for lock in server.call("GET", f"{LOCKS}{query}")["locks"]]


def number(grant: dict) -> int:
    return int(grant["fencing_token"])


def grow(tokens: list[int]) -> bool:
    return tokens == sorted(set(tokens))


def many(server, may, requests):
    """A thread for each of the lists makes its requests; those inside at once have to be such as may."""
    guard, inside = threading.Lock(), []

    def work(mine):
        for asks in mine:
            grant = server.call("POST", LOCKS, {"wait_ms": LONG_MS, **asks})
            with guard:
                inside.append(asks)
                assert may(inside), inside
            time.sleep(random.random() / 200)
            with guard:
                inside.remove(asks)
            release(server, grant)

    with ThreadPoolExecutor(len(requests)) as threads:
        list(threads.map(work, requests))
    assert listed(server) == []


def test_nobody_is_in_the_critical_section_with_another(server, tmp_path):
    counter, tokens = tmp_path / "counter", []
    counter.write_text("0")

    def work(at):
        for _ in range(12):
            grant = acquire(server, "counter", owner=f"worker-{at}", wait_ms=LONG_MS)
            read = int(counter.read_text())
            tokens.append(number(grant))
            counter.write_text(str(read + 1))
            release(server, grant)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert int(counter.read_text()) == len(tokens) == 8 * 12
    assert grow(tokens) and listed(server) == []


def test_those_that_wait_are_served_in_the_order_of_their_coming(server):
    grants = [acquire(server, "k", owner="first")]
    waiting = {owner: asked(server, "k", owner=owner) for owner in "abcde"}
    waiting.pop("b").leave()
    waiting.pop("e").leave()
    until(lambda: line(server, "k") == ["a", "c", "d"], "those that went have left the line")
    refused = error(server, LOCKS, {"key": "k", "wait_ms": 200})
    assert (refused["status"], refused["code"], refused["details"]["owner"]) == (409, "lock_held", "first")
    for at, owner in enumerate("acd"):
        release(server, grants[-1])
        grants.append(waiting[owner].grant())
        assert shown(server, "k")["holders"][0]["owner"] == owner
        assert line(server, "k") == ["a", "c", "d"][at + 1 :]
    release(server, grants[-1])
    assert grow([number(grant) for grant in grants]) and listed(server) == []


def test_who_does_not_renew_loses_the_lock_to_the_next(server):
    lost = acquire(server, "k", ttl_ms=500)
    following = Asked(server.url, {"key": "k", "owner": "next", "wait_ms": LONG_MS}).send().grant()
    assert number(following) > number(lost) and is_lost(server, lost)
    assert shown(server, "k")["holders"][0]["owner"] == "next"
    # Renewed in time it goes on beyond its first end, and released once it is free.
    assert renew(server, following, ttl_ms=3_000)["token"] == following["token"]
    ends_at = renew(server, following, ttl_ms=LONG_MS)["expires_at_ms"]
    time.sleep(3.2)
    assert renew(server, following)["expires_at_ms"] > ends_at
    for _ in range(2):
        release(server, following)
    assert error(server, RENEW, {"token": following["token"]})["code"] == "lease_lost"
    assert listed(server) == []


def test_a_broken_lock_is_the_next_ones(server):
    lost = server.call("POST", LOCKS, {"keys": ["k", "j"]})
    waiting = asked(server, "k")
    assert server.call("DELETE", f"{LOCKS}/k") == {"holders": 1}
    assert waiting.grant() and is_lost(server, lost)
    assert listed(server) == ["k"], "a grant for several keys ends as a whole"


def test_readers_share_a_lock_and_a_writer_is_not_starved(server):
    readers = [acquire(server, "k", mode="shared") for _ in range(2)]
    writer = asked(server, "k", owner="writer")
    assert is_held(server, key="k", mode="shared"), "nobody goes past the line"
    late = asked(server, "k", owner="late", mode="shared")
    for reader in readers:
        assert line(server, "k") == ["writer", "late"]
        release(server, reader)
    written = writer.grant()
    assert line(server, "k") == ["late"]
    release(server, written)
    release(server, late.grant())
    modes = ["exclusive", "shared", "shared"]
    requests = [[{"key": "k", "mode": modes[(at + turn) % 3]} for turn in range(8)] for at in range(8)]
    many(server, lambda inside: len(inside) == 1 or all(one["mode"] == "shared" for one in inside), requests)


def test_a_counting_lock_has_no_more_holders_than_its_number(server):
    asks = {"key": "seats", "mode": "counting", "holders": 3}
    many(server, lambda inside: len(inside) <= 3, [[asks] * 6] * 9)
    assert all(acquire(server, **asks) for _ in range(3))
    assert is_held(server, **asks) and is_held(server, key="seats", mode="shared")


def test_several_keys_are_all_held_or_none(server):
    held = acquire(server, "b")
    assert is_held(server, keys=["a", "b"]) and listed(server) == ["b"]
    both = Asked(server.url, {"keys": ["a", "b"], "wait_ms": LONG_MS}).send()
    until(lambda: listed(server) == ["a", "b"], "it waits")
    assert shown(server, "a")["holder_count"] == 0, "who waits holds nothing"
    release(server, held)
    assert both.grant() and shown(server, "a")["holders"][0]["keys"] == 2


def test_key_sets_that_overlap_in_any_order_never_wait_for_each_other(server):
    def are_apart(inside):
        keys = [key for one in inside for key in one["keys"]]
        return len(keys) == len(set(keys))

    counts = [[1 + at % 4 for at in range(6)]] * 10
    many(server, are_apart, [[{"keys": random.sample("abcdef", count)} for count in one] for one in counts])


def test_a_request_that_is_repeated_has_its_grant(server):
    first = acquire(server, "k", request_id="r")
    assert acquire(server, "k", request_id="r")["token"] == first["token"]
    for other in ({"request_id": "s"}, {}, {"request_id": "r", "owner": "another"}):
        assert is_held(server, key="k", **other)
    assert is_held(server, keys=["k", "j"], request_id="r")
    assert acquire(server, "j", request_id="r")["token"] != first["token"]
    release(server, first)
    assert number(acquire(server, "k", request_id="r")) > number(first)


def test_a_repeat_waits_in_the_place_of_the_first_request(server):
    held = acquire(server, "k")
    first = asked(server, "k", owner="a", request_id="a")
    _behind = asked(server, "k", owner="b")
    again = Asked(server.url, {"key": "k", "owner": "a", "request_id": "a", "wait_ms": LONG_MS}).send()
    first.grant(status=503)
    assert line(server, "k") == ["a", "b"]
    release(server, held)
    assert again.grant()["token"] == acquire(server, "k", owner="a", request_id="a")["token"]


def test_who_repeats_a_request_that_was_cut_keeps_what_it_is_given(server):
    # The server may hear only now that the first caller has gone: the lock is the second one's.
    for at in range(60):
        body = {"key": f"k{at}", "request_id": f"r{at}"}
        cut, again = Asked(server.url, body).send(), Asked(server.url, body)
        time.sleep(random.random() / 2_000)
        cut.leave()
        renew(server, again.send().grant())


def test_who_repeats_a_wait_that_was_cut_is_answered(server):
    for at in range(60):
        key = f"k{at}"
        held = acquire(server, key)
        again = Asked(server.url, {"key": key, "request_id": key, "wait_ms": 10_000})
        cut = asked(server, key, request_id=key)
        cut.leave()
        time.sleep(random.random() / 2_000)
        again.send()
        time.sleep(0.003)
        release(server, held)
        renew(server, again.grant())


def test_tokens_grow_and_holders_stay_through_restarts(server):
    first = acquire(server, "k", ttl_ms=600_000)
    seen = [number(first)]
    for end in (server.kill, server.stop, server.kill):
        end()
        server.start()
        assert is_held(server, key="k")
        assert renew(server, first)["fencing_token"] == first["fencing_token"]
        seen.append(number(acquire(server, f"k{len(seen)}")))
    release(server, first)
    assert grow([*seen, number(acquire(server, "k"))])


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_who_asks_again_after_a_restart_has_its_place(server, end):
    held = acquire(server, "k", ttl_ms=600_000)
    _former = [asked(server, "k", owner=owner, request_id=owner) for owner in "ab"]
    getattr(server, end)()
    server.start()
    again = {}
    for owner in "ba":
        body = {"key": "k", "owner": owner, "request_id": owner, "wait_ms": LONG_MS}
        again[owner] = Asked(server.url, body).send()
        until(lambda o=owner: o in line(server, "k"), "it waits again")
    assert line(server, "k") == ["a", "b"]
    release(server, held)
    release(server, again["a"].grant())
    assert number(again["b"].grant()) > number(held)


@pytest.mark.parametrize("waited_s", [0, 5.5])
def test_a_wait_goes_on_through_a_restart_however_long_it_was(server, lock_run, waited_s):
    # Where it is found again.
    server.stop()
    server.listen = f"127.0.0.1:{free_port()}"
    server.start()
    held = acquire(server, "k", ttl_ms=600_000)
    run = lock_run("k", "--owner", "a", "--retry-for", "5s", "--", "true")
    until(lambda: line(server, "k") == ["a"], "it waits")
    time.sleep(waited_s)
    server.kill()
    server.start()
    release(server, held)
    assert run.wait(30) == 0, run.stderr.read()


def test_tokens_grow_through_a_backup(server, tmp_path):
    held = acquire(server, "k", ttl_ms=600_000, request_id="r")
    assert server.sluice("backup", "copy").returncode == 0
    after = [number(acquire(server, f"after{at}")) for at in range(5)]
    server.kill()
    restored = server.sluice("restore", "copy", "restored", "--key-source", "file:data.key")
    assert restored.returncode == 0, restored.stderr
    (tmp_path / "data").rename(tmp_path / "original")
    (tmp_path / "restored").rename(tmp_path / "data")
    server.start()
    assert listed(server) == ["k"]
    assert acquire(server, "k", request_id="r")["token"] == held["token"]
    assert grow([number(held), *after, number(acquire(server, "new"))]), "other systems have seen these"


@pytest.fixture
def lock_run(server):
    """Starts `sluice lock run`; ends what is left of it, with its command."""
    started = []

    def start(*arguments: str) -> subprocess.Popen:
        env = {**server.env, "SLUICE_SERVER": server.url}
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [binary(), "lock", "run", *arguments]
        started.append(subprocess.Popen(command, **pipes, text=True, cwd=server.directory, env=env))
        return started[-1]

    yield start
    for process in started:
        process.terminate()
    for process in started:
        process.communicate(timeout=20)


def script(code: str) -> tuple[str, ...]:
    return "--", "sh", "-c", code


def stays(at_the_end: str) -> tuple[str, ...]:
    """A command that ends by SIGTERM, and does this before."""
    return script(f"trap '{at_the_end}' TERM; echo > begun; while :; do sleep 0.1; done")


def text(server, name: str) -> str:
    path = server.directory / name
    return path.read_text() if path.exists() else ""


def test_commands_run_one_after_the_other(server, lock_run):
    (server.directory / "counter").write_text("0\n")
    work = "n=$(cat counter); sleep 0.05; echo $((n + 1)) > counter; echo $SLUICE_FENCING_TOKEN >> tokens"
    runs = [lock_run("counter", *script(work)) for _ in range(6)]
    assert [run.wait(60) for run in runs] == [0] * 6
    tokens = [int(token) for token in text(server, "tokens").split()]
    assert text(server, "counter") == "6\n" and len(tokens) == 6
    assert grow(tokens) and listed(server) == []


def test_the_command_has_its_grant_and_gives_its_exit_code(server, lock_run):
    renews = f'"{binary()}" lock renew --json "$SLUICE_LOCK_TOKEN"'
    run = lock_run("a", "b", *script(f'{renews}; echo "$SLUICE_FENCING_TOKEN $*"; exit 7'), "sh", "1", "2 3")
    output = run.communicate(timeout=60)[0].splitlines()
    assert run.returncode == 7 and output[1] == f"{json.loads(output[0])['fencing_token']} 1 2 3"
    assert lock_run("a", *script("kill -9 $$")).wait(60) == 128 + 9
    assert lock_run("a", "--ttl", "2s", *script(f"sleep 4; {renews}")).wait(60) == 0, "longer than its time"
    assert listed(server) == []


@pytest.mark.parametrize("is_broken", [True, False])
def test_a_command_whose_lock_is_lost_is_ended(server, lock_run, is_broken):
    run = lock_run("k", "--ttl", "3s", *stays("echo > termed; exit 0"))
    until(lambda: text(server, "begun"), "the command runs")
    if is_broken:
        assert "1 holder" in server.sluice("lock", "break", "k", "--yes").stdout
    else:
        server.kill()
    told = run.communicate(timeout=30)[1]
    assert run.returncode == 4 and "lost" in told and text(server, "termed")


def test_signals_are_passed_on_and_end_a_wait(server, lock_run):
    run = lock_run("k", *stays("exit 5"))
    until(lambda: text(server, "begun"), "the command runs")
    waiting = lock_run("k", *script("echo > ran"))
    until(lambda: shown(server, "k")["waiter_count"] == 1, "another one waits")
    waiting.send_signal(signal.SIGTERM)
    assert waiting.wait(30) == 128 + signal.SIGTERM
    until(lambda: shown(server, "k")["waiter_count"] == 0, "it has left the line")
    run.send_signal(signal.SIGTERM)
    assert run.wait(30) == 5
    assert not text(server, "ran") and listed(server) == []


def test_a_command_that_cannot_start_leaves_no_lock(server, lock_run):
    for at in range(8):
        run = lock_run(f"k{at}", "--", "/no/such/command")
        assert "/no/such/command" in run.communicate(timeout=30)[1] and run.returncode != 0
    time.sleep(0.5)
    assert listed(server) == []


def test_the_command_line_acquires_renews_shows_and_releases(server):
    token = server.sluice("lock", "acquire", "a/1", "a/2", "--owner", "me").stdout.strip()
    rows = server.sluice("lock", "list", "--prefix", "a/", "--json").stdout.splitlines()
    assert [json.loads(row)["key"] for row in rows] == ["a/1", "a/2"]
    for code, verb in ((0, "renew"), (0, "release"), (4, "renew")):
        assert server.sluice("lock", verb, token).returncode == code


def test_recipe_another_leads_when_the_leader_is_killed(server, lock_run):
    leads = script("echo $$ $PPID $SLUICE_FENCING_TOKEN >> led; exec sleep 60")
    for _ in range(3):
        lock_run("leader", "--ttl", "2s", *leads)

    def led():
        return [tuple(map(int, row.split())) for row in text(server, "led").splitlines()]

    until(lambda: len(led()) == 1 and shown(server, "leader")["waiter_count"] == 2, "one leads, two wait")
    # The leader, whose runner releases the lock.
    os.kill(led()[0][0], signal.SIGKILL)
    until(lambda: len(led()) == 2, "another leads")
    # The leader with its runner, as when its machine is gone.
    for process in led()[1][1::-1]:
        os.kill(process, signal.SIGKILL)
    until(lambda: len(led()) == 3, "the last one leads")
    tokens = [token for _, _, token in led()]
    assert grow(tokens) and number(shown(server, "leader")["holders"][0]) == tokens[-1]


def test_recipe_a_job_of_many_machines_runs_once(server, lock_run):
    job = script("echo ran >> ran; until [ -e go ]; do sleep 0.05; done")
    runs = [lock_run("nightly/2026-11-26", "--wait", "0", *job) for _ in range(5)]
    until(lambda: sum(run.poll() is not None for run in runs) == 4, "all but one have ended")
    (server.directory / "go").touch()
    told = sorted((run.wait(30), run.stderr.read()) for run in runs)
    assert told[0] == (0, "") and all(code == 4 and "is held by" in error for code, error in told[1:])
    assert text(server, "ran") == "ran\n" and listed(server) == []


def test_recipe_a_semaphore_lets_so_many_in(server, lock_run):
    stay = script("echo in >> seats; sleep 0.2; echo out >> seats")
    runs = [lock_run("seats", "--holders", "2", *stay) for _ in range(6)]
    assert [run.wait(60) for run in runs] == [0] * 6
    inside = list(itertools.accumulate(1 if row == "in" else -1 for row in text(server, "seats").split()))
    assert len(inside) == 12 and inside[-1] == 0 and max(inside) <= 2


def test_recipe_a_barrier_opens_for_all_at_once(server, lock_run):
    gate = acquire(server, "gate", ttl_ms=600_000)
    pass_gate = script("echo in >> passed; until [ $(wc -l < passed) = 4 ]; do sleep 0.05; done")
    runs = [lock_run("gate", "--shared", *pass_gate) for _ in range(4)]
    until(lambda: shown(server, "gate")["waiter_count"] == 4, "all have come")
    assert not text(server, "passed")
    release(server, gate)
    assert [run.wait(30) for run in runs] == [0] * 4, "each waits for all others to be inside"


def test_locks_outlive_the_leader_of_a_cluster(machines):  # noqa: F811
    one = begun(machines)
    two, three = joined(machines, "two", one), joined(machines, "three", one)
    until(lambda: "voters=[1, 2, 3]" in (one.directory / "log").read_text(), "all nodes vote")
    tls = two.directory / "data-tls"
    context = ssl.create_default_context(cafile=tls / "ca.pem")
    context.load_cert_chain(tls / "admin.pem", tls / "admin.key")

    def owners(machine):
        status, lock = machine.request("GET", f"{LOCKS}/k")
        return [holder["owner"] for holder in lock["holders"] + lock["waiters"]] if status == 200 else None

    def waits(machine, **body) -> Asked:
        return Asked(machine.url, {"key": "k", "wait_ms": LONG_MS, **body}, context).send()

    def stand(*expected: str):
        until(lambda: [owners(two), owners(three)] == [list(expected)] * 2, f"in the line are {expected}")

    request = {"key": "k", "owner": "holder", "request_id": "r", "ttl_ms": 600_000}
    status, held = two.request("POST", LOCKS, request)
    assert status == 200
    stand("holder")
    urls = ",".join(machine.url for machine in (one, two, three))
    command = ("lock", "acquire", "k", "--owner", "a", "--wait", "1m", "--server", urls)
    command_line = ThreadPoolExecutor().submit(two.run, *command)
    stand("holder", "a")
    gone = waits(three, owner="gone")
    stand("holder", "a", "gone")
    _former = waits(three, owner="b", request_id="b")
    stand("holder", "a", "gone", "b")
    gone.leave()
    stand("holder", "a", "b")

    one.kill()
    token = {"token": held["token"]}
    until(lambda: two.request("POST", RENEW, token)[0] == 200, "it is still held")
    assert three.request("POST", LOCKS, request)[1]["token"] == held["token"]
    again = waits(two, owner="b", request_id="b")
    stand("holder", "a", "b")
    assert three.request("POST", RELEASE, token)[0] == 200
    first = {"token": command_line.result().stdout.strip()}
    stand("a", "b")
    tokens = [number(held), number(two.request("GET", f"{LOCKS}/k")[1]["holders"][0])]
    assert three.request("POST", RELEASE, first)[0] == 200
    assert grow([*tokens, number(again.grant())])


def test_a_coordinator_has_the_locks_of_its_keys_and_breaks_none(server):
    server.env["SLUICE_TOKEN"] = server.sluice("token", "create", "root", "--scope", "*=admin").stdout.strip()
    roles = ("coordinator", "observer")
    tokens = [server.sluice("token", "create", role).stdout.strip() for role in roles]
    worker, looker = ({"Authorization": f"Bearer {token}"} for token in tokens)
    server.stop()
    rule = '[[rule]]\nname = "{0}s"\nidentities = ["{0}"]\nrole = "{0}"\nkeys = ["a/*"]\n'
    (server.directory / "policy.toml").write_text("".join(map(rule.format, roles)))
    server.start("--access-policy", "policy.toml")
    grant = server.call("POST", LOCKS, {"key": "a/1"}, worker)
    for keys in ({"key": "b/1"}, {"keys": ["a/2", "b/1"]}, {"key": "a"}, {"key": "b/1", "wait_ms": 1}):
        refused = error(server, LOCKS, keys, worker)
        assert (refused["status"], refused["code"]) == (403, "forbidden")
    assert server.sluice("lock", "acquire", "b/1").returncode == 0
    for method, path in (("DELETE", "/a%2F1"), ("GET", "/a%2F1"), ("GET", "")):
        assert server.request(method, LOCKS + path, None, worker)[0] == 403, (method, path)
    # Who looks sees the same keys, and holds none.
    assert [lock["key"] for lock in server.call("GET", LOCKS, None, looker)["locks"]] == ["a/1"]
    assert server.request("GET", f"{LOCKS}/b%2F1", None, looker)[0] == 403
    for path, body in ((LOCKS, {"key": "a/2"}), (RELEASE, {"token": grant["token"]})):
        assert error(server, path, body, looker)["code"] == "forbidden"
    for path in (RENEW, RELEASE):
        server.call("POST", path, {"token": grant["token"]}, worker)


def test_what_is_wrong_is_refused_by_its_name(server):
    wrong = [("key", {"key": key}) for key in ("", "k" * 256)]
    wrong += [("key", {}), ("key and keys", {"key": "k", "keys": ["j"]}), ("keys[2]", {"keys": [*"kjk"]})]
    values = [("ttl_ms", 0), ("ttl_ms", 1_800_001), ("wait_ms", 86_400_001), ("colour", "red")]
    wrong += [(field, {"key": "k", field: value}) for field, value in values]
    for field, body in [*wrong, ("holders", {"key": "k", "mode": "counting"})]:
        refused = error(server, LOCKS, body)
        assert refused["status"] == 400 and refused["message"].startswith(field), (body, refused)
    for path in (RENEW, RELEASE):
        refused = error(server, path, {"token": "x"})
        assert refused["status"] == 400 and refused["message"].startswith("token"), refused
        assert error(server, path, {"token": "0" * 32})["code"] == "lease_lost"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_keys_that_no_lock_has_are_refused_in_paths(server, method):
    for key in ("", "k" * 256, "a%0Ab"):
        status, answer = server.request(method, f"{LOCKS}/{key}")
        assert status == 400 and b"key: " in answer, (key, status, answer)


def test_keys_are_any_text_and_are_listed_in_their_order(server):
    keys = sorted(["...", "/", "a b", "a/1", "a/2", "a//", "k" * 255, "x?y=%2F&z#", "ü€"], key=str.encode)
    for key in keys:
        acquire(server, key)
        assert shown(server, key)["key"] == key and shown(server, key)["holder_count"] == 1
    pages, after = [], ""
    while after is not None:
        page = server.call("GET", f"{LOCKS}?limit=2&after={quote(after)}")
        pages += [lock["key"] for lock in page["locks"]]
        after = page.get("next")
    assert pages == keys == listed(server)
    assert listed(server, "?prefix=a/") == ["a//", "a/1", "a/2"] == listed(server, "?prefix=a%2F&after=a.")
    for key in keys:
        assert server.sluice("lock", "break", key, "--yes").returncode == 0
    assert listed(server) == []

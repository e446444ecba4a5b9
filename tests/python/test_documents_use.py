"""Documents: rights, recipes, the command line."""

import itertools
import json
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import until
from documents import (
    DOCUMENTS,
    JSON,
    LOCKS,
    RELEASE,
    acquire,
    error,
    get,
    get_raw,
    listed,
    of,
    put,
    put_raw,
    release,
    told,
)


@pytest.fixture
def guarded(server):
    """A server with a policy, and the headers of those that it names."""
    server.env["SLUICE_TOKEN"] = server.sluice("token", "create", "root", "--scope", "*=admin").stdout.strip()
    roles = ("coordinator", "observer", "operator", "producer", "consumer")
    tokens = {role: server.sluice("token", "create", role).stdout.strip() for role in roles}
    for scope in ("r", "w", "rw"):
        tokens[scope] = server.sluice("token", "create", scope, "--scope", f"default={scope}").stdout.strip()
    tokens["root"] = server.env["SLUICE_TOKEN"]
    tokens["queues"] = server.sluice("token", "create", "queues").stdout.strip()
    server.stop()
    rule = '[[rule]]\nname = "{0}s"\nidentities = ["{0}"]\nrole = "{0}"\nkeys = ["a/*"]\n'
    plain = '[[rule]]\nname = "{0}s"\nidentities = ["{0}"]\nrole = "{0}"\n'
    of_queues = '[[rule]]\nname = "queues"\nidentities = ["queues"]\nrole = "observer"\nqueues = ["a*"]\n'
    rules = [*map(rule.format, roles[:3]), *map(plain.format, roles[3:]), of_queues]
    (server.directory / "policy.toml").write_text("".join(rules))
    server.start("--access-policy", "policy.toml")
    return lambda name: {"Authorization": f"Bearer {tokens[name]}"}


def test_rights_are_those_of_the_policy(server, guarded):
    def may(name, method, key, rest=""):
        body = json.dumps({"content": "x"}).encode() if method == "PUT" else None
        status, answer = server.request(method, of(key, rest), body, {**JSON, **guarded(name)})
        assert status < 300 or (status, json.loads(answer)["error"]["code"]) == (403, "forbidden"), answer
        return status < 300

    for key in ("a/1", "a/2", "b"):
        assert may("root", "PUT", key)
    for name, reads, writes in [
        ("coordinator", True, True),
        ("observer", True, False),
        ("operator", True, False),
        ("producer", False, False),
        ("consumer", False, False),
        ("r", False, False),
        ("w", False, False),
        ("queues", False, False),
    ]:
        assert may(name, "PUT", "a/1") == writes, name
        assert may(name, "PUT", "a/1", "/raw") == writes, name
        for rest in ("", "/raw", "/history"):
            assert may(name, "GET", "a/1", rest) == reads, (name, rest)
            assert not may(name, "GET", "b", rest), (name, rest)
        assert not may(name, "PUT", "b") and not may(name, "DELETE", "b"), name
        if writes:
            assert may(name, "DELETE", "a/1") and may(name, "PUT", "a/1")
        else:
            assert not may(name, "DELETE", "a/1"), name
        if reads:
            assert listed(server, "", guarded(name)) == ["a/1", "a/2"], name
        else:
            status = server.request("GET", DOCUMENTS, None, guarded(name))[0]
            assert status == 403 or listed(server, "", guarded(name)) == [], name
    assert may("rw", "PUT", "b") and may("rw", "GET", "b")
    assert listed(server, "", guarded("rw")) == ["a/1", "a/2", "b"]
    assert server.request("GET", of("a/1"))[0] == 401
    # A condition that does not hold tells nothing to who may not write.
    refused = error(server, "PUT", of("b"), {"content": "x", "if_version": 7}, guarded("coordinator"))
    assert refused["code"] == "forbidden"


def added(server, key: str, by: int) -> int:
    """Adds to the number in a document by an optimistic update; the number of times that it was tried."""
    for tries in itertools.count(1):
        read = get_raw(server, key)
        number = int(read.body) if read.status == 200 else 0
        when = {"If_Match": read.etag} if read.status == 200 else {"If_None_Match": "*"}
        written = put_raw(server, key, str(number + by).encode(), **when)
        if written.status < 300:
            return tries
        assert written.error == (412, "version_mismatch"), written.body
        time.sleep(random.random() / 100)


def test_recipe_optimistic_updates_lose_nothing(server):
    with ThreadPoolExecutor(16) as threads:
        tries = list(threads.map(lambda at: added(server, "counter", at), range(1, 97)))
    assert get(server, "counter")["content"] == str(sum(range(1, 97)))
    assert get(server, "counter")["version"] == 96
    assert sum(tries) > 96, "some have met"


def test_recipe_a_lock_and_its_token_lose_nothing(server):
    def add(_):
        token = acquire(server, "counter", wait_ms=60_000)
        status, answer = server.request("GET", of("counter"))
        number = int(json.loads(answer)["content"]) if status == 200 else 0
        put(server, "counter", str(number + 1), token=token)
        release(server, token)

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(add, range(96)))
    assert (get(server, "counter")["content"], get(server, "counter")["version"]) == ("96", 96)


def test_a_late_holder_writes_over_nobody(server):
    late = acquire(server, "k", ttl_ms=300)
    number = put(server, "k", "0", token=late)["version"]
    following = acquire(server, "k", wait_ms=60_000)
    put(server, "k", "following", token=following)
    assert told(server, "k", token=late) == (409, "lease_lost")
    assert (get(server, "k")["content"], get(server, "k")["version"]) == ("following", number + 1)


def test_the_command_line_reads_no_more_than_may_be_sent(server):
    with open(server.directory / "large", "wb") as large:
        large.truncate((4 << 20) + 1)
    for source in ("large", "/dev/zero"):
        wrong = server.sluice("doc", "put", "k", source)
        assert wrong.returncode == 5 and f"{source} has more than 4.0 MiB" in wrong.stderr
    verbs = (["send", "q", "--file"], ["doc", "query", "--where"], ["policy", "set"], ["cert", "show"])
    for verb in (*verbs, ["txn", "commit"]):
        wrong = server.sluice(*verb, "/dev/zero")
        assert wrong.returncode == 5 and "/dev/zero has more than 96.0 MiB" in wrong.stderr, verb
    (server.directory / "most").write_bytes(b"x" * (4 << 20))
    assert server.sluice("doc", "put", "k", "most").returncode == 0


def test_the_command_line_puts_gets_lists_and_deletes(server):
    (server.directory / "order.json").write_text('{"state":"new"}')
    (server.directory / "next.json").write_text('{"state":"paid"}')
    wrote = server.sluice("doc", "put", "orders/17", "order.json", "--history", "2", "--attribute", "by=ann", "--json")
    assert wrote.returncode == 0, wrote.stderr
    assert server.sluice("doc", "get", "orders/17").stdout == '{"state":"new"}'
    assert get(server, "orders/17").items() >= {"attributes": {"by": "ann"}, "content_type": "application/json"}.items()
    etag = json.loads(wrote.stdout)["etag"]
    assert server.sluice("doc", "put", "orders/17", "next.json", "--if-etag", etag).returncode == 0
    late = server.sluice("doc", "put", "orders/17", "next.json", "--if-etag", etag)
    assert late.returncode == 4 and "version 2" in late.stderr
    assert server.sluice("doc", "get", "orders/17", "--version", "1").stdout == '{"state":"new"}'
    assert len(server.sluice("doc", "history", "orders/17", "--json").stdout.splitlines()) == 2
    assert json.loads(server.sluice("doc", "list", "orders/", "--json").stdout)["key"] == "orders/17"
    assert server.sluice("doc", "delete", "orders/17", "--if-version", "1").returncode == 4
    assert server.sluice("doc", "delete", "orders/17", "--if-version", "2").returncode == 0
    assert server.sluice("doc", "get", "orders/17").returncode == 3


def edited(server, editor: str, key="k"):
    server.env["EDITOR"] = editor
    return server.sluice("doc", "edit", key)


def test_the_command_line_edits_and_loses_no_write_of_another(server):
    put(server, "k", "red\n", content_type="text/plain", attributes={"a": "b"}, ttl_ms=600_000, history=1)
    assert edited(server, "sed -i s/red/green/").returncode == 0
    shown = get(server, "k")
    assert shown.items() >= {"content": "green\n", "version": 2, "content_type": "text/plain", "history": 1}.items()
    assert shown["attributes"] == {"a": "b"} and shown["expires_at_ms"] == shown["changed_at_ms"] + 600_000
    for same in ("true", "sed -i s/red/blue/"):
        assert edited(server, same).returncode == 0
    assert edited(server, "false").returncode != 0
    assert get(server, "k")["version"] == 2
    meanwhile = server.directory / "meanwhile"
    other = f"curl -sf -X PUT -H 'If-Match: *' --data-binary other {server.url}{of('k', '/raw')}"
    meanwhile.write_text(f"#!/bin/sh\n{other}\necho mine > $1\n")
    meanwhile.chmod(0o755)
    late = edited(server, str(meanwhile))
    assert late.returncode == 4 and "kept in" in late.stderr, late
    kept = late.stderr.split("kept in ")[1].split()[0].rstrip(".")
    assert open(kept).read() == "mine\n"
    os.remove(kept)
    assert get(server, "k")["content"] == "other"
    assert edited(server, "sh -c 'echo new > $0'", "new").returncode == 0
    assert get(server, "new")["content"] == "new\n"


def test_a_repeat_whose_document_cannot_be_read_leaves_the_first_grant(server):
    server.stop()
    server.start("--http-answers", "6MiB")
    server.request("PUT", "/v1/documents/k/raw", b"x" * (4 << 20), {"Content-Type": "text/plain"})
    asked = {"key": "k", "request_id": "once", "ttl_ms": 60_000}
    first = server.call("POST", LOCKS, asked)
    body = json.dumps({**asked, "with_document": True}).encode()
    status, answer = server.request("POST", LOCKS, body, JSON)
    assert (status, json.loads(answer)["error"]["code"]) == (413, "batch_too_large")
    assert server.call("POST", "/v1/grants/renew", {"token": first["token"]})["token"] == first["token"]
    server.call("POST", RELEASE, {"token": first["token"]})
    # The grant of one that was not told of it goes back.
    body = json.dumps({"key": "k", "with_document": True, "ttl_ms": 60_000}).encode()
    assert server.request("POST", LOCKS, body, JSON)[0] == 413
    until(lambda: server.call("GET", f"{LOCKS}/k")["holder_count"] == 0)

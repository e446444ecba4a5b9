"""Indexes of documents: queries by an index find what they find without one."""

import json
import random

from conftest import until
from documents import JSON, delete, error, of, put
from test_cluster_join import begun, joined, machines  # noqa: F401
from test_document_queries import QUERY, keys, paged, query
from test_transactions_open_kept import answered, leader_of_first_shard
from transactions import adding, commit, putting

INDEXES = "/v1/document-indexes"


def declare(server, name: str, pointer: str) -> dict:
    return server.call("PUT", f"{INDEXES}/{name}", {"pointer": pointer})


def listed(server) -> list[dict]:
    return server.call("GET", INDEXES)["indexes"]


def until_ready(server):
    until(lambda: all(index["state"] == "ready" for index in listed(server)), "indexes are ready")


def by_index(server, where: dict, **fields) -> list[str]:
    """The keys that a query finds by an index, which it comes to know within a second."""
    until(lambda: "index" in query(server, where, **fields), "the index is used")
    return keys(query(server, where, **fields))


def test_a_query_uses_an_index(server):
    for number in range(300):
        put(server, f"orders/{number}", json.dumps({"state": f"s{number % 30}", "n": number}))
    put(server, "orders/text", "no JSON")
    answer = query(server, {"/state": "s7"})
    assert answer["scanned"] == 301 and "index" not in answer
    assert declare(server, "state", "/state") == {"name": "state", "pointer": "/state", "state": "building", "terms": 0}
    until_ready(server)
    assert listed(server) == [{"name": "state", "pointer": "/state", "state": "ready", "terms": 300}]
    found = by_index(server, {"/state": "s7"})
    answer = query(server, {"/state": "s7"})
    assert answer["index"] == "state" and answer["scanned"] == len(found) == 10
    assert keys(query(server, {"/state": {"in": ["s7", "s8"]}, "/n": {"lt": 40}})) == [
        f"orders/{n}" for n in ("37", "38", "7", "8")
    ]
    assert paged(server, {"/state": {"prefix": "s1"}}, limit=7)[0] == sorted(
        f"orders/{n}" for n in range(300) if f"s{n % 30}".startswith("s1")
    )
    sorted_by_n = query(server, {"/state": "s7"}, sort=[{"pointer": "/n", "descending": True}], limit=2)
    assert keys(sorted_by_n) == ["orders/277", "orders/247"] and sorted_by_n["index"] == "state"
    assert "index" not in query(server, {"not": {"/state": "s7"}}), "what has no value matches, too"
    wrong = [({"pointer": "x"}, "invalid_argument"), ({}, "missing_field"), ({"path": "/x"}, "unknown_field")]
    for body, code in wrong:
        assert error(server, "PUT", f"{INDEXES}/x", body)["code"] == code
    assert error(server, "DELETE", f"{INDEXES}/x")["code"] == "index_not_found"
    server.call("DELETE", f"{INDEXES}/state")
    answer = query(server, {"/state": "s7"})
    assert keys(answer) == found and "index" not in answer and listed(server) == []


def test_every_way_to_write_is_indexed_and_restarts_keep_it(server):
    declare(server, "n", "/n")
    until_ready(server)
    put(server, "a", '{"n":1}')
    server.call("PATCH", "/v1/documents/a", {"increment": [{"pointer": "/n", "by": "4"}]})
    server.request("PUT", "/v1/documents/b/raw", b'{"n":5}', JSON)
    commit(server, putting("c", '{"n":5}'), adding("b", 0))
    begun = server.call("POST", "/v1/transactions/begin", {})["transaction"]
    staged = {"operations": [putting("d", '{"n":2}'), adding("d", 3), putting("e", '{"n":[5]}')]}
    server.call("POST", f"/v1/transactions/{begun}/operations", staged)
    server.call("POST", f"/v1/transactions/{begun}/commit")
    put(server, "large", json.dumps({"n": 5, "x": "x" * 100_000}))
    put(server, "soon", '{"n":5}', ttl_ms=700)
    assert by_index(server, {"/n": 5}) == ["a", "b", "c", "d", "large", "soon"]
    assert by_index(server, {"/n": {"contains": 5}}) == ["e"] and by_index(server, {"/n": 1}) == []
    until(lambda: query(server, {"/n": 5})["scanned"] == 5, "one is over")
    delete(server, "c")
    server.kill()
    server.start()
    assert by_index(server, {"/n": 5}) == ["a", "b", "d", "large"]
    put(server, "b", "no JSON")
    put(server, "d", '{"n":6}')
    answer = query(server, {"/n": 5})
    assert keys(answer) == ["a", "large"] and answer["scanned"] == 2


def test_an_index_that_is_built_while_others_write_misses_nothing(server):
    chance = random.Random(5)
    values = {}
    for round_number in range(1_500):
        key = f"k{chance.randrange(400)}"
        values[key] = chance.randrange(20)
        put(server, key, json.dumps({"v": values[key]}))
        if round_number == 700:
            declare(server, "v", "/v")
        if round_number % 100 == 50 and values:
            gone = chance.choice(sorted(values))
            delete(server, gone)
            del values[gone]
    until_ready(server)
    for value in range(20):
        assert by_index(server, {"/v": value}) == sorted(key for key in values if values[key] == value)


def test_indexes_on_the_command_line(server):
    put(server, "a", '{"state":"new"}')
    assert server.sluice("doc", "index", "list").stderr.strip() == "no indexes in namespace default"
    assert server.sluice("doc", "index", "put", "state", "/state").stdout in ("building\n", "ready\n")
    until_ready(server)
    [head, row] = server.sluice("doc", "index", "list").stdout.splitlines()
    assert head.split() == ["NAME", "POINTER", "STATE", "TERMS"] and row.split() == ["state", "/state", "ready", "1"]
    assert server.sluice("doc", "index", "delete", "state").stdout == "deleted\n"
    refused = server.sluice("doc", "index", "delete", "state")
    assert refused.returncode == 3 and "there is no index" in refused.stderr


def test_a_cluster_builds_an_index_and_keeps_it_under_another_leader(machines):  # noqa: F811
    nodes = [begun(machines)]
    nodes += [joined(machines, name, nodes[0]) for name in ("two", "three")]
    until(lambda: "voters=[1, 2, 3]" in (nodes[0].directory / "log").read_text(), "all nodes vote")

    def write(node, numbers):
        for number in numbers:
            assert answered(node, "PUT", of(f"k{number}"), {"content": json.dumps({"v": number % 10})})[0] < 300

    def found(node) -> dict:
        return answered(node, "POST", QUERY, {"where": {"/v": 3}, "content": False})[1]

    write(nodes[1], range(100))
    assert answered(nodes[2], "PUT", f"{INDEXES}/v", {"pointer": "/v"})[0] == 200
    write(nodes[1], range(100, 120))
    until(lambda: found(nodes[0]).get("index") == "v", "the index is used")
    leader = nodes[leader_of_first_shard(nodes[0]) - 1]
    one, other = [node for node in nodes if node is not leader]
    leader.kill()
    write(one, range(120, 140))
    for node in (one, other):
        until(lambda node=node: found(node)["scanned"] == 14, "all terms are told")
        answer = found(node)
        assert answer["index"] == "v" and keys(answer) == sorted(f"k{number}" for number in range(3, 140, 10))

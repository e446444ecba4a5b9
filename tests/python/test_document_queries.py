"""Queries over documents: a query is the list of all documents, filtered and sorted by whoever asks."""

import functools
import json
import operator
import random
import socket
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest
from conftest import until
from documents import DOCUMENTS, JSON, delete, error, put
from test_documents_grpc import contract  # noqa: F401
from test_session_calls import session  # noqa: F401

QUERY = f"{DOCUMENTS}/query"
ORDERS = {
    "orders/1": {"state": "paid", "total": 100, "items": [{"sku": "a"}], "tags": ["new", "vip"]},
    "orders/2": {"state": "new", "total": 99.5, "items": []},
    "orders/3": {"state": "paid", "total": 7, "by": {"name": "Zoë"}},
    "users/1": {"state": "paid", "a/b": {"m~n": 1}},
}


def query(server, where=None, headers=None, **fields) -> dict:
    body = fields if where is None else {"where": where, **fields}
    return server.call("POST", QUERY, body, headers)


def keys(answer: dict) -> list[str]:
    return [one["key"] for one in answer["documents"]]


def paged(server, where=None, **fields) -> tuple[list[str], int]:
    """The keys of all pages, and how many documents were looked at."""
    read, scanned, after = [], 0, ""
    while True:
        page = query(server, where, after=after, **fields)
        read += keys(page)
        scanned += page["scanned"]
        if "next" not in page:
            return read, scanned
        after = page["next"]


def refused(server, where=None, **fields) -> tuple[int, str, str]:
    """Status, code and field of a query that must not succeed."""
    body = fields if where is None else {"where": where, **fields}
    told = error(server, "POST", QUERY, body)
    return told["status"], told["code"], told["details"].get("field", "")


@pytest.fixture
def orders(server):
    for key, content in ORDERS.items():
        put(server, key, json.dumps(content))
    return server


def test_documents_are_found_by_what_is_in_them(orders):
    for where, expected in [
        ({"/state": "paid"}, ["orders/1", "orders/3", "users/1"]),
        ({"/state": {"eq": "paid"}, "/total": {"ge": 100}}, ["orders/1"]),
        ({"/total": {"gt": 7, "lt": 100}}, ["orders/2"]),
        ({"/total": 1e2}, ["orders/1"]),
        ({"/items/0/sku": "a"}, ["orders/1"]),
        ({"/tags": {"contains": "vip"}}, ["orders/1"]),
        ({"/by/name": {"contains": "ë"}}, ["orders/3"]),
        ({"/by/name": {"prefix": "Zo"}}, ["orders/3"]),
        ({"/a~1b/m~0n": 1}, ["users/1"]),
        ({"/by": {"exists": False}}, ["orders/1", "orders/2", "users/1"]),
        ({"/state": {"in": ["new", "sent"]}}, ["orders/2"]),
        ({"or": [{"/total": {"lt": 10}}, {"/items": {"eq": []}}]}, ["orders/2", "orders/3"]),
        ({"not": {"/state": "paid"}}, ["orders/2"]),
        ({"/total": {"not": {"ge": 10}}}, ["orders/3", "users/1"]),
        ({"": {"exists": True}}, list(ORDERS)),
        ({}, list(ORDERS)),
        ({"/state": {"ge": 5}}, []),
    ]:
        answer = query(orders, where)
        assert (keys(answer), answer["scanned"], "next" in answer) == (expected, 4, False), where
    found = query(orders, {"/total": 7})["documents"][0]
    assert json.loads(found["content"]) == ORDERS["orders/3"]
    assert found == orders.call("GET", f"{DOCUMENTS}/orders%2F3")
    bare = query(orders, {"/total": 7}, content=False)["documents"]
    assert bare == [one for one in orders.call("GET", DOCUMENTS)["documents"] if one["key"] == "orders/3"]
    assert keys(query(orders, {"/state": "paid"}, prefix="orders/")) == ["orders/1", "orders/3"]
    assert query(orders, {"/state": "paid"}, prefix="none/") == {"documents": [], "scanned": 0}
    assert keys(orders.call("POST", QUERY, {})) == list(ORDERS)


def test_documents_are_sorted_by_what_is_in_them(orders):
    def sort(*pointers):
        return [{"pointer": one.lstrip("-"), "descending": one.startswith("-")} for one in pointers]

    assert keys(query(orders, sort=sort("/total"))) == ["users/1", "orders/3", "orders/2", "orders/1"]
    assert keys(query(orders, sort=sort("-/total"))) == ["orders/1", "orders/2", "orders/3", "users/1"]
    assert keys(query(orders, sort=sort("/state", "-/total"))) == ["orders/2", "orders/1", "orders/3", "users/1"]
    read, scanned = paged(orders, {"/state": "paid"}, sort=sort("-/total"), limit=1)
    assert (read, scanned) == (["orders/1", "orders/3", "users/1"], 12)
    after = query(orders, sort=sort("/total"), limit=1)["next"]
    assert refused(orders, sort=sort("-/total"), after=after) == (400, "invalid_argument", "after")
    assert refused(orders, after=after) == (400, "invalid_argument", "after")


def test_only_documents_that_are_json_are_found(server):
    contents = {"a": "", "b": "{", "c": "{} x", "d": "1e999", "e": "[" * 200 + "]" * 200, "f": "NaN", "g": "'x'"}
    for key, content in contents.items():
        put(server, key, content)
    server.call("PUT", f"{DOCUMENTS}/h", {"content_base64": "/wA="})
    for key, content in {"i": " 7 ", "j": '"x"', "k": "null", "l": "[1]"}.items():
        put(server, key, content, content_type="text/plain")
    for where in (None, {}, {"not": {"/x": 1}}):
        answer = query(server, where)
        assert (keys(answer), answer["scanned"]) == (["i", "j", "k", "l"], 12)
    for where, key in [({"": 7}, "i"), ({"": {"prefix": "x"}}, "j"), ({"": None}, "k"), ({"/0": 1}, "l")]:
        assert keys(query(server, where)) == [key], where


def test_numbers_are_compared_exactly(server):
    numbers = ["-9223372036854775808", "9007199254740992", "9007199254740993", "9223372036854775807"]
    numbers += ["18446744073709551615", "18446744073709551616", "1e308", "0.1", "0.30000000000000004", "0.3"]
    for number in numbers:
        put(server, number, f'{{"n":{number}}}')
    for number in numbers:
        for name, holds in [("eq", operator.eq), ("lt", operator.lt), ("ge", operator.ge)]:
            # The numbers have to arrive as they are written.
            body = f'{{"where":{{"/n":{{"{name}":{number}}}}}}}'.encode()
            status, answer = server.request("POST", QUERY, body, JSON)
            expected = [one for one in numbers if holds(json.loads(one), json.loads(number))]
            assert (status, sorted(keys(json.loads(answer)))) == (200, sorted(expected)), (name, number)


def test_times_are_relative_to_now(server):
    now = datetime.now(timezone.utc)
    for days in (1, 6, 8):
        at = now - timedelta(days=days)
        put(server, f"text/{days}", json.dumps({"at": at.isoformat()}))
        put(server, f"zone/{days}", json.dumps({"at": at.astimezone(timezone(timedelta(hours=-5))).isoformat()}))
        put(server, f"ms/{days}", json.dumps({"at": int(at.timestamp() * 1000)}))
    week = query(server, {"/at": {"ge": {"now": "-7d"}}})
    assert keys(week) == ["ms/1", "ms/6", "text/1", "text/6", "zone/1", "zone/6"]
    fixed = {"/at": {"lt": {"time": (now - timedelta(days=7)).isoformat()}}}
    assert keys(query(server, fixed)) == ["ms/8", "text/8", "zone/8"]


def order(one, other) -> int:
    return (one > other) - (one < other)


def same(one, other) -> bool:
    """Equality of JSON: true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return type(one) in (int, float) and type(other) in (int, float) and one == other or (
        type(one) is type(other) and one == other
    )


MISSING = object()


def behind(pointer: str, value):
    for token in pointer.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(token, MISSING)
        elif isinstance(value, list) and token.isdigit() and str(int(token)) == token and int(token) < len(value):
            value = value[int(token)]
        else:
            return MISSING
    return value


def kind(value) -> int:
    """The place of a type in the order of all values."""
    if value is None or isinstance(value, bool):
        return 1 + [None, False, True].index(value)
    types = [(int, float), str, list, dict]
    return 0 if value is MISSING else 4 + next(at for at, one in enumerate(types) if isinstance(value, one))


def passes(condition, value) -> bool:
    if not isinstance(condition, dict):
        return value is not MISSING and same(value, condition)
    return all(passes_one(name, operand, value) for name, operand in condition.items())


def passes_one(name, operand, value) -> bool:
    if name == "not":
        return not passes(operand, value)
    if name == "exists":
        return operand == (value is not MISSING)
    if value is MISSING:
        return False
    if name == "eq":
        return same(value, operand)
    if name == "in":
        return any(same(value, one) for one in operand)
    if name == "prefix":
        return isinstance(value, str) and value.startswith(operand)
    if name == "contains":
        if isinstance(value, list):
            return any(same(one, operand) for one in value)
        return isinstance(value, str) and isinstance(operand, str) and operand in value
    if kind(value) != kind(operand):
        return False
    sign = order(value, operand)
    return {"lt": sign < 0, "le": sign <= 0, "gt": sign > 0, "ge": sign >= 0}[name]


def matches(where: dict, value) -> bool:
    words = {"and": all, "or": any}
    return all(
        words[name](matches(one, value) for one in operand)
        if name in words
        else not matches(operand, value)
        if name == "not"
        else passes(operand, behind(name, value))
        for name, operand in where.items()
    )


class Chance:
    """Random documents and filters, which meet often."""

    def __init__(self, seed: int):
        self.of = random.Random(seed)

    def scalar(self):
        numbers = [0, 1, -1, 1.0, 1.5, 2**53 + 1, float(2**53), 2**64 - 1, -(2**63), 1e300]
        common, rare = [0, 1, "a", "ab", True], [None, False, "", "Ä", "ü🙂", "b\u0000", *numbers]
        return self.of.choice(common if self.of.random() < 0.6 else rare)

    def name(self) -> str:
        return self.of.choice(["a", "b"] if self.of.random() < 0.6 else ["a/b", "m~n", "0", "", "ü"])

    def value(self, depth=3):
        match self.of.randrange(3) if depth else 0:
            case 0:
                return self.scalar()
            case 1:
                return [self.value(depth - 1) for _ in range(self.of.randrange(4))]
        return {self.name(): self.value(depth - 1) for _ in range(self.of.randrange(4))}

    def document(self):
        return {self.name(): self.value(2) for _ in range(5)} if self.of.random() < 0.9 else self.value()

    def pointer(self) -> str:
        names = [self.name() for _ in range(self.of.choice([0, 1, 1, 1, 2]))]
        return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)

    def condition(self, depth=1):
        bound = self.of.choice([0, 1, 1.5, 2**53, "", "a", "b"])
        operators = {
            "eq": self.value(1),
            "in": [self.value(1) for _ in range(self.of.randrange(4))],
            self.of.choice(["lt", "le", "gt", "ge"]): bound,
            "prefix": self.of.choice(["", "a", "ü"]),
            "contains": self.scalar(),
            "exists": self.of.random() < 0.5,
        }
        if depth:
            operators["not"] = self.condition(depth - 1)
        names = self.of.sample(sorted(operators), self.of.choice([1, 1, 2]))
        return {name: operators[name] for name in names}

    def filter(self, depth=3) -> dict:
        members = {}
        for _ in range(self.of.choice([0, 1, 1, 2])):
            match self.of.randrange(5) if depth else self.of.randrange(2):
                case 0:
                    members[self.pointer()] = self.scalar()
                case 1:
                    members[self.pointer()] = self.condition()
                case 2:
                    members["not"] = self.filter(depth - 1)
                case _:
                    parts = [self.filter(depth - 1) for _ in range(self.of.randrange(3))]
                    members[self.of.choice(["and", "or"])] = parts
        return members


def test_a_query_is_the_list_of_all_documents_filtered(server):
    chance = Chance(4711)
    documents = {f"k{number:03}": chance.document() for number in range(300)}
    for key, value in documents.items():
        put(server, key, json.dumps(value))
    shares = []
    for _ in range(300):
        where = chance.filter()
        expected = [key for key, value in documents.items() if matches(where, value)]
        limit = chance.of.choice([7, 100, 1000])
        assert paged(server, where, limit=limit, content=False) == (expected, 300), where
        shares.append(len(expected) / 300)
    assert sum(0 < share < 1 for share in shares) > 60, "the filters tell little"


def test_a_sorted_query_is_the_list_of_all_documents_sorted(server):
    chance = Chance(4712)
    documents = {f"k{number:03}": chance.document() for number in range(100)}
    for key, value in documents.items():
        put(server, key, json.dumps(value))

    for _ in range(60):
        sort = [(chance.pointer(), chance.of.random() < 0.5) for _ in range(chance.of.choice([1, 2]))]

        def compare(one, other, sort=sort) -> int:
            for pointer, descending in sort:
                values = [behind(pointer, documents[key]) for key in (one, other)]
                sign = order(*map(kind, values))
                if not sign and kind(values[0]) in (4, 5):
                    sign = order(*values)
                if sign:
                    return -sign if descending else sign
            return order(one, other)

        expected = sorted(documents, key=functools.cmp_to_key(compare))
        asked = [{"pointer": pointer, "descending": descending} for pointer, descending in sort]
        read, _ = paged(server, sort=asked, limit=chance.of.choice([7, 100]), content=False)
        assert read == expected, sort


def test_pages_have_each_document_once_while_others_write(server):
    stays = [f"k{number:04}" for number in range(0, 1_000, 2)]
    for key in stays:
        put(server, key, '{"stays":true,"n":1}')
    is_done = threading.Event()
    failures = []

    def write(seed):
        chance = random.Random(seed)
        try:
            while not is_done.is_set():
                key = f"k{chance.randrange(1, 1_000, 2):04}"
                put(server, key, chance.choice(['{"stays":true}', "{}", "no JSON"]))
                put(server, chance.choice(stays), '{"stays":true,"n":%d}' % chance.randrange(9))
                if chance.random() < 0.5:
                    server.request("DELETE", f"{DOCUMENTS}/{key}")
        except Exception as failure:  # noqa: BLE001
            failures.append(failure)

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(3)]
    for writer in writers:
        writer.start()
    for limit in (7, 50, 333, 1_000):
        read, _ = paged(server, {"/stays": True}, limit=limit)
        assert read == sorted(set(read)), "in order, none twice"
        assert set(stays) <= set(read)
        read, _ = paged(server, {"/stays": True}, limit=limit, sort=[{"pointer": "/stays"}])
        assert len(read) == len(set(read)) and set(stays) <= set(read)
    is_done.set()
    for writer in writers:
        writer.join()
    assert not failures


def test_one_call_looks_at_a_part(server):
    large = json.dumps({"x": "y" * 1_000_000})
    for number in range(40):
        put(server, f"k{number:02}", large)
    first = query(server, {"/x": 1})
    assert first["documents"] == [] and 16 <= first["scanned"] <= 18 and first["next"]
    assert paged(server, {"/x": 1}) == ([], 40)
    page = query(server, {})
    assert keys(page) == ["k00"] and page["next"]
    assert paged(server, {}, limit=1_000)[0] == [f"k{number:02}" for number in range(40)]
    largest = json.dumps({"x": "y" * ((4 << 20) - 10)})
    put(server, "k40", largest)
    assert query(server, prefix="k40")["documents"][0]["content"] == largest


def test_sorting_is_refused_where_it_would_cost_too_much(server):
    body = json.dumps({"x": "y" * 4_000_000})
    for number in range(36):
        put(server, f"k{number:02}", body)
    sort = [{"pointer": "/x"}]
    told = error(server, "POST", QUERY, {"sort": sort})
    assert (told["status"], told["code"]) == (400, "query_too_costly") and "134217728 bytes" in told["message"]
    assert keys(query(server, sort=sort, prefix="k3", content=False)) == [f"k3{number}" for number in range(6)]


def test_faults_are_told_with_their_place(server):
    deep, wide = {"/a": 1}, [{"/a": 1}] * 100
    for _ in range(17):
        deep = {"not": deep}
    bottomless = {}
    for _ in range(150):
        bottomless = {"and": [bottomless]}
    for where, field in [
        ({"state": 1}, "where.state"),
        ({"/~2": 1}, "where./~2"),
        ({"/a": {}}, "where./a"),
        ({"/a": {"$gt": 1}}, "where./a.$gt"),
        ({"or": [{}, {"/a": {"lt": None}}]}, "where.or[1]./a.lt"),
        ({"/a": {"lt": {"now": "yesterday"}}}, "where./a.lt.now"),
        ({"or": wide}, "where.or[99]./a"),
        ({"/a": {"in": list(range(1_001))}}, "where./a.in"),
    ]:
        assert refused(server, where) == (400, "invalid_argument", field), field
    assert refused(server, deep)[:2] == refused(server, bottomless)[:2] == (400, "invalid_argument")
    for fields, code, field in [
        ({"sort": [{"pointer": "total"}]}, "invalid_argument", "sort[0].pointer"),
        ({"sort": [{"pointer": "/" + "x" * 256}]}, "invalid_argument", "sort[0].pointer"),
        ({"sort": [{"descending": True}]}, "missing_field", "sort[0].pointer"),
        ({"sort": [{"pointer": "/a"}] * 9}, "invalid_argument", "sort"),
        ({"after": "x"}, "invalid_argument", "after"),
        ({"after": "e30"}, "invalid_argument", "after"),
        ({"limit": 1_001}, "invalid_argument", "limit"),
        ({"keys": True}, "unknown_field", "keys"),
        ({"where": "text"}, "wrong_type", "where"),
        ({"where": [1]}, "wrong_type", "where"),
    ]:
        assert refused(server, **fields) == (400, code, field), fields
    for body in (b'{"where":{"/a":1,"/a":2}}', b'{"where":{"/a":{"eq":{"x":1,"x":2}}}}'):
        status, answer = server.request("POST", QUERY, body, JSON)
        assert (status, json.loads(answer)["error"]["code"]) == (400, "invalid_argument")
    for body in (b'{"where":{"/a":', b'{"where":{"/a":01}}', b'{"where":{}', b'{"where":{"/a" 1}}'):
        status, answer = server.request("POST", QUERY, body, JSON)
        assert (status, json.loads(answer)["error"]["code"]) == (400, "invalid_json"), body
    status, answer = server.request("POST", QUERY, json.dumps({"where": {"/a": "x" * 70_000}}).encode(), JSON)
    assert (status, json.loads(answer)["error"]["code"]) == (413, "body_too_large")


def test_a_key_named_query_is_a_key_as_any_other(server):
    put(server, "query", "{}")
    assert server.call("GET", f"{DOCUMENTS}/query")["key"] == "query" == keys(query(server))[0]
    delete(server, "query")
    assert keys(query(server)) == []


def test_namespaces_are_searched_by_themselves(server):
    server.call("PUT", "/v1/namespaces/other", {})
    server.call("PUT", "/v1/namespaces/other/documents/k", {"content": "{}"})
    assert keys(query(server)) == []
    assert keys(server.call("POST", "/v1/namespaces/other/documents/query", {})) == ["k"]
    assert error(server, "POST", "/v1/namespaces/none/documents/query", {})["code"] == "namespace_not_found"


def test_nothing_is_told_of_keys_that_the_caller_may_not_read(server):
    server.env["SLUICE_TOKEN"] = server.sluice("token", "create", "root", "--scope", "*=admin").stdout.strip()
    root = {"Authorization": f"Bearer {server.env['SLUICE_TOKEN']}"}
    tokens = {name: server.sluice("token", "create", name).stdout.strip() for name in ("reader", "nobody")}
    reader, nobody = ({"Authorization": f"Bearer {tokens[name]}"} for name in ("reader", "nobody"))
    rules = '[[rule]]\nname = "all"\nidentities = ["root"]\nrole = "admin"\n'
    rules += '[[rule]]\nname = "some"\nidentities = ["reader"]\nrole = "observer"\nkeys = ["b/*"]\n'
    (server.directory / "policy.toml").write_text(rules)
    assert server.sluice("policy", "set", "policy.toml").returncode == 0
    for number in range(300):
        for prefix in "abc":
            server.call("PUT", f"{DOCUMENTS}/{prefix}%2F{number:03}", {"content": '{"n":%d}' % number}, root)
    everything = query(server, {"/n": {"lt": 10}}, root)
    assert (len(keys(everything)), everything["scanned"]) == (30, 900)
    for fields in ({}, {"sort": [{"pointer": "/n"}]}):
        answer = query(server, {"/n": {"lt": 10}}, reader, **fields)
        assert (keys(answer), answer["scanned"]) == ([f"b/{number:03}" for number in range(10)], 300)
        assert query(server, {}, reader, prefix="a/", **fields) == {"documents": [], "scanned": 0}
    status, answer = server.request("POST", QUERY, b"{}", nobody)
    assert (status, json.loads(answer)["error"]["code"]) == (403, "forbidden")
    assert server.request("POST", QUERY, b"{}")[0] == 401


def test_a_client_that_leaves_and_long_scans_hold_up_nobody(server):
    content = json.dumps({"list": list(range(30_000))})
    for number in range(100):
        put(server, f"k{number:02}", content)
    body = json.dumps({"where": {"/list": {"contains": -1}}}).encode()
    head = f"POST {QUERY} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    address = server.url.split("://")[1].split(":")
    for _ in range(20):
        with socket.create_connection((address[0], int(address[1]))) as connection:
            connection.sendall(head.encode() + body)
            time.sleep(0.02)
    scans = [threading.Thread(target=lambda: paged(server, {"/list": {"contains": -1}})) for _ in range(2)]
    for scan in scans:
        scan.start()
    slowest = 0
    while any(scan.is_alive() for scan in scans):
        began = time.monotonic()
        put(server, "other", "x")
        slowest = max(slowest, time.monotonic() - began)
    assert slowest < 2, "a write waits for no scan"
    until(lambda: query(server, {"/list": {"contains": -1}}, prefix="k0")["scanned"] == 10)


def test_queries_go_on_after_a_restart(server):
    for number in range(30):
        put(server, f"k{number:02}", '{"n":%d}' % (number % 3))
    page = query(server, {"/n": 1}, limit=4)
    ranked = query(server, {"/n": 1}, limit=4, sort=[{"pointer": "/n"}])
    server.stop()
    server.start()
    later = query(server, {"/n": 1}, after=page["next"])
    assert keys(page) + keys(later) == [f"k{number:02}" for number in range(1, 30, 3)]
    assert keys(query(server, {"/n": 1}, after=ranked["next"], sort=[{"pointer": "/n"}])) == keys(later)


def test_grpc_finds_what_http_finds(orders, contract):  # noqa: F811
    import grpc

    messages = contract("documents_pb2")
    with grpc.insecure_channel(orders.url.split("://")[1]) as channel:
        stub = contract("documents_pb2_grpc").DocumentsStub(channel)

        def ask(**fields):
            return stub.Query(messages.QueryDocumentsRequest(**fields), timeout=20)

        where, sort = '{"/state": "paid"}', [messages.DocumentSort(pointer="/total", descending=True)]
        found = ask(where=where, sort=sort, limit=1)
        assert ([one.key for one in found.documents], found.scanned) == (["orders/1"], 4)
        assert json.loads(found.documents[0].content) == ORDERS["orders/1"]
        later = ask(where=where, sort=sort, after=found.next, content=False)
        assert [one.key for one in later.documents] == ["orders/3", "users/1"] and later.next == ""
        assert not later.documents[0].HasField("content")
        assert len(ask().documents) == 4
        for wrong, begins in [('{"/a": {"$gt": 1}}', "where./a.$gt: "), ("[]", "where: "), ("{", "where: ")]:
            with pytest.raises(grpc.RpcError) as caught:
                ask(where=wrong)
            assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            assert caught.value.details().startswith(begins), caught.value.details()


def test_a_session_finds_what_http_finds(orders, session, contract):  # noqa: F811
    messages, one = contract("documents_pb2"), session()
    found = one.call("Documents/Query", messages.QueryDocumentsRequest(where='{"/state": "new"}'))
    found = messages.QueryDocumentsResponse.FromString(found.answer)
    assert ([document.key for document in found.documents], found.scanned) == (["orders/2"], 4)
    refused = one.call("Documents/Query", messages.QueryDocumentsRequest(where='{"a": 1}'))
    assert refused.error.code == "invalid_argument" and refused.error.message.startswith("where.a: ")


def test_the_command_line_prints_documents_keys_and_objects(orders):
    def printed(*arguments) -> list[str]:
        ran = orders.sluice("doc", "query", *arguments)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.splitlines()

    put(orders, "multi", '{\n "state":\r\n"paid", "x": "a\\nb"\n}\n')
    paid = [json.loads(line) for line in printed("--where", '{"/state": "paid"}', "--prefix", "orders/")]
    assert paid == [{"key": key, "content": ORDERS[key]} for key in ("orders/1", "orders/3")]
    assert [json.loads(line)["content"] for line in printed("--prefix", "multi")] == [{"state": "paid", "x": "a\nb"}]
    assert printed("--keys", "--sort", "-/total") == ["orders/1", "orders/2", "orders/3", "multi", "users/1"]
    assert printed("--keys", "--sort", "/state,-/total", "--limit", "2") == ["orders/2", "orders/1"]
    (orders.directory / "filter").write_text('{"/total": {"gt": 50}}')
    objects = [json.loads(line) for line in printed("--where", "filter", "--json")]
    assert objects == query(orders, {"/total": {"gt": 50}})["documents"]
    nothing = orders.sluice("doc", "query", "--where", '{"/state": "gone"}')
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert nothing.stderr == "none of 5 documents in namespace default matches\n"
    for wrong in ('{"/a":', "no-such-file", '{"/a": {}}'):
        assert orders.sluice("doc", "query", "--where", wrong).returncode == 2, wrong
    many = [f"many/{number:04}" for number in range(1_100)]
    for key in many:
        put(orders, key, "{}")
    assert printed("--keys", "--prefix", "many/") == many
    assert printed("--keys", "--prefix", "many/", "--limit", "1050") == many[:1_050]

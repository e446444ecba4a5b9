"""Transactions over several namespaces: on two shards of a server, and through its kills."""

import http.client
import itertools
import json
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import Process, Server, needs_faketime, until, wrong_clock
from documents import JSON, LOCKS, get, of, put
from test_cluster_join import free_port
from transactions import (
    LONG_MS,
    TRANSACTIONS,
    acquiring,
    adding,
    checking,
    code,
    commit,
    deleting,
    everything,
    held,
    putting,
    refused,
    releasing,
    send,
    sending,
    settling,
)


class Sharded(Server):
    """A server with two shards, always at the same address."""

    def __init__(self, directory):
        Process.__init__(self, directory, f"127.0.0.1:{free_port()}")
        self.start()

    def start(self, *arguments: str):
        super().start("--shards", "2", *arguments)


class Within:
    """A server as those see it who work in one of its namespaces."""

    def __init__(self, server, namespace: str):
        self.server = server
        self.base = f"/v1/namespaces/{namespace}/"

    def request(self, method, path, body=None, headers=None):
        return self.server.request(method, path.replace("/v1/", self.base, 1), body, headers)

    def call(self, method, path, body=None, headers=None) -> dict:
        path = path if path == "/v1/namespaces" else path.replace("/v1/", self.base, 1)
        return self.server.call(method, path, body, headers)


@pytest.fixture
def server(tmp_path):
    """With the namespace `b`, which lies on the other shard than `default`."""
    started = Sharded(tmp_path)
    started.call("PUT", "/v1/namespaces/b", {"shard": 1})
    yield started
    if started.process.poll() is None:
        assert started.stop() == 0


def there(operation: dict, namespace="b") -> dict:
    """The operation in another namespace than that of the request."""
    return {**operation, "namespace": namespace}


def all_of(server) -> list[dict]:
    """All that is in both namespaces."""
    return [everything(server), everything(Within(server, "b"))]


class Halves:
    """What a worker has at hand in two namespaces."""

    def __init__(self, server):
        self.namespaces = [server, Within(server, "b")]
        self.tokens, self.receipts = [], []
        for namespace in self.namespaces:
            put(namespace, "k", "old")
            put(namespace, "gone", "x")
            put(namespace, "checked", "x")
            self.tokens.append(held(namespace, "l"))
            held(namespace, "busy")
            send(namespace, "job")
            received = namespace.call("POST", "/v1/queues/jobs/receive", {"lease_ms": LONG_MS})
            self.receipts.append(received["messages"][0]["receipt"])

    def operations(self) -> list[dict]:
        """One of each kind in each namespace, by turns."""

        def half(at: int) -> list[dict]:
            return [
                sending(f"follow-up {at}"),
                settling(self.receipts[at]),
                putting("k", f"new {at}", if_version=1),
                deleting("gone"),
                checking("checked", if_version=1),
                acquiring("free"),
                releasing(self.tokens[at]),
            ]

        turns = zip(half(0), map(there, half(1)), strict=True)
        return [operation for turn in turns for operation in turn]


def mail_of(namespace) -> list[str]:
    answer = namespace.call("GET", "/v1/queues/mail/messages?payload=true")
    return [message["payload"] for message in answer["messages"]]


def assert_done(halves: Halves, results: list[dict]):
    """All operations are done, and each has its result at its place."""
    kinds = [sorted(one) for one in results]
    of_one = [["id"], [], ["written"], [], [], ["grant"], []]
    assert kinds == [kind for kind in of_one for _ in range(2)], results
    for at, namespace in enumerate(halves.namespaces):
        own = results[at::2]
        assert get(namespace, "k").items() >= {"content": f"new {at}", **own[2]["written"]}.items()
        assert own[2]["written"]["version"] == 2
        assert mail_of(namespace) == [f"follow-up {at}"]
        assert namespace.call("GET", f"/v1/messages/{own[0]['id']}")["payload"] == f"follow-up {at}"
        assert namespace.call("GET", "/v1/queues/jobs")["totals"]["acked"] == 1
        keys = [one["key"] for one in namespace.call("GET", "/v1/documents")["documents"]]
        assert keys == ["checked", "k"]
        locks = {one["key"]: one["holder_count"] for one in namespace.call("GET", LOCKS)["locks"]}
        assert locks.get("l", 0) == 0 and locks["free"] == 1, locks
        namespace.call("POST", "/v1/grants/release", {"token": own[5]["grant"]["token"]})


def test_refusals_name_the_key_that_was_given_and_the_namespace(server):
    commit(server, putting("k", "1"), there(putting("k", "1")), key="mine")
    told = refused(server, putting("k", "2"), there(putting("k", "2")), key="mine")
    assert told["code"] == "idempotency_mismatch" and told["details"] == {"key": "mine"}, told
    server.call("PUT", "/v1/namespaces/b", {"quotas": {"bytes": 10}})
    told = refused(server, putting("k", "3"), there(putting("big", "x" * 100)))
    assert told["code"] == "quota_exceeded" and told["details"]["namespace"] == "b", told
    assert 'namespace "b": ' in told["message"]


@needs_faketime
@pytest.mark.parametrize("ahead", [[""], ["b"], ["", "b"]])
def test_a_clock_that_is_set_back_refuses_nothing(tmp_path, ahead):
    server = Sharded(tmp_path)
    server.call("PUT", "/v1/namespaces/b", {"shard": 1})
    assert server.stop() == 0
    right = dict(server.env)
    server.env |= wrong_clock("+1h")
    server.start()
    for namespace in ahead:
        put(Within(server, namespace or "default"), "k", "of a time to come")
    assert server.stop() == 0
    server.env = right
    server.start()
    commit(server, putting("k", "new"), there(putting("k", "new")))
    commit(Within(server, "b"), putting("k", "newer"), there(putting("k", "newer"), "default"))
    assert [get(at, "k")["content"] for at in (server, Within(server, "b"))] == ["newer"] * 2
    assert server.stop() == 0


def test_operations_of_two_namespaces_are_done_together(server):
    halves = Halves(server)
    committed = commit(server, *halves.operations())
    assert committed["duplicate"] is False
    assert_done(halves, committed["results"])
    after = all_of(server)
    server.kill()
    server.start()
    assert all_of(server) == after


def test_the_namespace_of_the_request_may_have_no_operation(server):
    committed = commit(server, there(sending("x")), there(putting("k", "x")))
    assert [sorted(one) for one in committed["results"]] == [["id"], ["written"]]
    assert mail_of(Within(server, "b")) == ["x"] and get(Within(server, "b"), "k")["content"] == "x"
    # From the other side, with its own namespace by name.
    path = "/v1/namespaces/b/transactions"
    operations = [there(sending("y")), there(sending("z"), "default"), sending("w")]
    assert len(commit(server, *operations, path=path)["results"]) == 3
    assert mail_of(Within(server, "b")) == ["x", "y", "w"] and mail_of(server) == ["z"]


def test_three_namespaces_on_two_shards_are_one_transaction(server):
    server.call("PUT", "/v1/namespaces/c", {"shard": 1})
    names = ["default", "b", "c"]
    turns = [there(putting(f"k{at}", name), name) for at, name in enumerate(names * 3)]
    assert len(commit(server, *turns)["results"]) == 9
    for at, name in enumerate(names * 3):
        assert get(Within(server, name), f"k{at}")["content"] == name
    turns = [there(putting(f"k{at}", "never"), name) for at, name in enumerate(names * 3)]
    for at in range(9):
        bad = there(putting(f"k{at}", "never", if_version=7), names[at % 3])
        told = refused(server, *turns[:at], bad, *turns[at + 1 :])
        assert (told["code"], told["details"]["operation"]) == ("version_mismatch", at), told
    for at, name in enumerate(names * 3):
        assert get(Within(server, name), f"k{at}")["content"] == name


def test_nothing_is_done_in_either_namespace_if_one_operation_is_refused(server):
    halves = Halves(server)
    for namespace in halves.namespaces:
        namespace.call("PUT", "/v1/queues/mail", {})
        namespace.call("PUT", "/v1/queues/closed", {})
        namespace.call("POST", "/v1/queues/closed/close", {})
    receipts, tokens = halves.receipts, halves.tokens
    before = all_of(server)
    wrong = [
        (putting("checked", if_version=7), "version_mismatch"),
        (putting("checked", if_absent=True), "version_mismatch"),
        (deleting("checked", if_version=7), "version_mismatch"),
        (deleting("none"), "document_not_found"),
        (checking("none", if_exists=True), "version_mismatch"),
        (acquiring("busy"), "lock_held"),
        (releasing("0" * 32), "lease_lost"),
        (sending("x", "closed"), "queue_closed"),
    ]
    for bad, expected in wrong:
        kind = next(iter(bad))
        for place, at in itertools.product((there, dict), (0, 7, 14)):
            operations = halves.operations()
            operations.insert(at, place(bad))
            if kind in ("put", "delete") and bad[kind]["key"] == "checked":
                # A document is named once in a transaction.
                operations = [one for one in operations if "check" not in one]
                at = operations.index(place(bad))
            told = refused(server, *operations)
            assert told["code"] == expected, (bad, at, told)
            assert told["message"].startswith(f"operations[{at}].{kind}"), (bad, at, told)
            assert told["details"]["operation"] == at, (bad, at, told)
            assert all_of(server) == before, (bad, at)
    # Messages of other namespaces wait for none.
    parents = {"depends_on": ["000000800000002001hg"]}
    assert code(server, sending("x", **parents), there(sending("x"))) == (404, "parent_not_found")
    assert code(server, sending("x"), there(sending("x", **parents))) == (400, "invalid_argument")
    # Receipts and tokens are those of a namespace.
    assert code(server, *halves.operations()[:1], there(settling(receipts[0])))[0] == 400
    assert code(server, *halves.operations()[:1], there(releasing(tokens[0]))) == (409, "lease_lost")
    assert all_of(server) == before
    assert_done(halves, commit(server, *halves.operations())["results"])


@pytest.mark.parametrize("place", [there, dict], ids=["there", "here"])
def test_no_queue_is_made_in_vain(server, place):
    before = all_of(server)
    assert code(server, sending("x"), there(sending("x")), place(deleting("none")))[0] == 404
    assert all_of(server) == before


def test_bad_namespaces_are_refused_by_their_field(server):
    put(server, "n", "{}")
    put(Within(server, "b"), "n", "{}")
    before = all_of(server)
    attaching = {"attach": {"key": "n", "name": "a", "upload": "0" * 32}}
    detaching = {"delete_attachment": {"key": "n", "name": "a"}}
    for bad, status, expected in [
        (there(adding("n")), 400, "invalid_argument"),
        (there(attaching), 400, "invalid_argument"),
        (there(detaching), 400, "invalid_argument"),
        (there(sending("x"), "none"), 404, "namespace_not_found"),
        (there(sending("x"), "no/name"), 404, "namespace_not_found"),
        (there(sending("x"), ""), 404, "namespace_not_found"),
        ({**sending("x"), "namespace": 7}, 400, "wrong_type"),
    ]:
        good = [sending("x"), there(sending("y"))]
        for operations in ([bad], [*good, bad], [*good[::-1], bad]):
            at = len(operations) - 1
            told = refused(server, *operations)
            assert (told["status"], told["code"]) == (status, expected), (bad, told)
            assert told["message"].startswith(f"operations[{at}].namespace"), (bad, told)
            assert told["details"].get("operation") == at, (bad, told)
            assert all_of(server) == before, bad
    # A patch goes with no operation of another namespace, since a repeat would patch another content.
    told = refused(server, adding("n"), there(sending("y")))
    assert (told["status"], told["code"]) == (400, "invalid_argument")
    assert told["message"].startswith("operations[0].patch: a patch is for transactions of one namespace")
    assert all_of(server) == before


def test_each_namespace_needs_its_right(server):
    root = server.sluice("token", "create", "root", "--scope", "*=admin").stdout.strip()
    server.env["SLUICE_TOKEN"] = root
    scopes = {"own": ["default=rw"], "other": ["b=rw"]}
    scopes |= {"reads": ["default=rw", "b=r"], "both": ["default=rw", "b=rw"]}
    given = {}
    for name, scope in scopes.items():
        arguments = itertools.chain.from_iterable(("--scope", one) for one in scope)
        made = server.sluice("token", "create", name, *arguments)
        assert made.returncode == 0, made.stderr
        given[name] = {"Authorization": f"Bearer {made.stdout.strip()}"}
    admin = {"Authorization": f"Bearer {root}"}

    def queues() -> list:
        return [
            server.call("GET", f"/v1/namespaces/{name}/{what}", None, admin)[what]
            for name in ("default", "b")
            for what in ("queues", "documents")
        ]

    mixed = [sending("x"), there(putting("k", "x")), putting("k", "x"), there(sending("x"))]
    for name in ("own", "other", "reads"):
        for operations in (mixed, mixed[::-1]):
            told = refused(server, *operations, headers=given[name])
            assert (told["status"], told["code"]) == (403, "forbidden"), (name, told)
            place = told["details"]["operation"]
            assert ("namespace" in operations[place]) == (name != "other"), (name, told)
    # Nobody is told which namespaces there are before it is known that they may work there.
    for name in ("b", "none"):
        whole = [sending("x"), there(sending("x"), name)]
        assert code(server, *whole, headers=given["own"]) == (403, "forbidden"), name
        assert code(server, *whole) == (401, "unauthenticated"), name
        path = f"/v1/namespaces/{name}/transactions"
        assert code(server, sending("x"), path=path, headers=given["own"]) == (403, "forbidden"), name
    # Nor is a key of a namespace taken by who has no right there.
    assert code(server, there(sending("x")), key="r", headers=given["other"]) == (403, "forbidden")
    assert queues() == [[], [], [], []]
    assert len(commit(server, *mixed, headers=given["both"])["results"]) == 4
    assert [len(one) for one in queues()] == [1, 1, 1, 1]


def test_a_repeat_gets_the_first_outcome_and_does_nothing_again(server):
    halves = Halves(server)
    operations = halves.operations()
    first = commit(server, *operations, key="r")
    assert first["duplicate"] is False
    before = all_of(server)
    for end in (lambda: None, server.kill, server.stop):
        end()
        if server.process.poll() is not None:
            server.start()
        assert commit(server, *operations, key="r") == {**first, "duplicate": True}
        assert all_of(server) == before
    others = [operations[:-1], operations[::-1]]
    others += [[*operations, more] for more in (sending("x"), there(sending("x")))]
    # The same operations elsewhere are another request.
    others += [[operations[0]], [there(operations[0])], [sending("follow-up 1"), *operations[1:]]]
    others.append([sending("follow-up 1"), there(sending("follow-up 0")), *operations[2:]])
    for other in others:
        assert code(server, *other, key="r") == (409, "idempotency_mismatch"), other
    assert all_of(server) == before
    assert_done(halves, first["results"])


def test_a_key_is_one_of_the_namespace_of_the_request_alone(server):
    both = [sending("x"), there(sending("x"))]
    path = "/v1/namespaces/b/transactions"
    assert commit(server, sending("y"), key="first", path=path)["duplicate"] is False
    for key in ("first", "second"):
        assert commit(server, *both, key=key)["duplicate"] is False, key
        assert commit(server, *both, key=key)["duplicate"] is True, key
    assert commit(server, sending("y"), key="second", path=path)["duplicate"] is False
    assert mail_of(Within(server, "b")) == ["y", "x", "x", "y"]


def test_what_was_refused_is_not_remembered(server):
    put(Within(server, "b"), "k", "x")
    operations = [sending("x"), there(putting("k", "y", if_version=2))]
    assert code(server, *operations, key="r") == (409, "version_mismatch")
    put(Within(server, "b"), "k", "z")
    assert commit(server, *operations, key="r")["duplicate"] is False
    assert commit(server, *operations, key="r")["duplicate"] is True
    assert mail_of(server) == ["x"] and get(Within(server, "b"), "k")["version"] == 3


def test_repeats_at_the_same_time_do_it_once_over_two_namespaces(server):
    rounds = 8

    def ask(operations, key) -> dict:
        """Repeats as long as the outcome is not known."""
        body, headers = json.dumps({"operations": operations}).encode(), {**JSON, "Idempotency-Key": key}
        while True:
            status, answer = server.request("POST", TRANSACTIONS, body, headers)
            if status == 200:
                return json.loads(answer)
            told = json.loads(answer)["error"]
            assert told["code"] in ("in_doubt", "outcome_unknown"), told
            time.sleep(0.01)

    for at in range(rounds):
        operations = [sending(str(at)), there(sending(str(at)))]
        operations += [there(putting("k", str(at))), acquiring(f"l{at}")]
        with ThreadPoolExecutor(6) as threads:
            done = list(threads.map(lambda _, whole=operations, key=str(at): ask(whole, key), range(6)))
        assert [one["duplicate"] for one in done].count(False) <= 1
        assert all(one["results"] == done[0]["results"] for one in done)
    for namespace in (server, Within(server, "b")):
        assert mail_of(namespace) == [str(at) for at in range(rounds)]
    assert get(Within(server, "b"), "k")["version"] == rounds


NAMES, ACCOUNTS, START = ["default", "b", "c"], 8, 100
# Errors that say that nothing was done, and never will be.
NOTHING = {"in_doubt", "transaction_aborted", "no_leader", "not_leader", "draining", "overloaded"}


class Accounts:
    """Accounts in three namespaces, between which money was moved."""

    def __init__(self, ask):
        # Status and JSON of an answer; None: there was none.
        self.ask = ask

    def answered(self, method, path, body=None) -> dict:
        found = []

        def is_answered() -> bool:
            status, answer = self.ask(method, path, body, {})
            found[:] = [answer]
            return status is not None and status < 300

        until(is_answered, lambda: f"{method} {path} is answered: {found}")
        return found[0]

    def messages(self) -> list[str]:
        found = []
        for name in NAMES:
            path = f"/v1/namespaces/{name}/queues/moved/messages?payload=true&limit=100"
            after = ""
            while True:
                answer = self.answered("GET", path + after)
                found += [message["payload"] for message in answer["messages"]]
                if "next" not in answer:
                    break
                after = f"&cursor={answer['next']}"
        return found

    def sent_wholly(self) -> set[str]:
        """The messages. All accounts can be read soon, and nothing was done by halves."""
        began = time.monotonic()
        accounts = list(itertools.product(NAMES, (f"account{at}" for at in range(ACCOUNTS))))
        for _ in range(2):
            # The first time waits for what is prepared.
            read = [self.answered("GET", of(key, namespace=name)) for name, key in accounts]
        for (name, key), document in zip(accounts, read, strict=True):
            # Those that are prepared could be written neither.
            self.answered("PUT", of(key, namespace=name), {"content": document["content"]})
        assert time.monotonic() - began < 15, "prepared transactions are finished in time"
        held = [json.loads(document["content"]) for document in read]
        sent = self.messages()
        known = [document["version"] - 1 for document in read]
        assert [one["moves"] for one in held] == known, "each account was written once a move"
        assert len(sent) == len(set(sent)), "no message is sent twice"
        assert sum(known) == 2 * len(sent), (sum(known), len(sent))
        assert sum(one["n"] for one in held) == START * len(accounts)
        return set(sent)


class Bank(Accounts):
    """Accounts between which many move money while something is done to the servers."""

    def __init__(self, ask):
        super().__init__(ask)
        self.done = threading.Event()
        self.moved, self.unknown, self.numbers = set(), set(), itertools.count()
        for name, at in itertools.product(NAMES, range(ACCOUNTS)):
            body = {"content": json.dumps({"n": START, "moves": 0})}
            self.answered("PUT", of(f"account{at}", namespace=name), body)
        for name in NAMES:
            self.answered("PUT", f"/v1/namespaces/{name}/queues/moved", {})

    def account(self, name: str, key: str, by: int, namespace: str) -> dict | None:
        """An operation that changes an account; None: it cannot be read just now."""
        status, answer = self.ask("GET", of(key, namespace=name), None, {})
        if status != 200:
            assert status is None or answer["error"]["code"] in NOTHING, answer
            return None
        held = json.loads(answer["content"])
        content = json.dumps({"n": held["n"] + by, "moves": held["moves"] + 1})
        operation = putting(key, content, if_version=answer["version"])
        return operation if name == namespace else there(operation, name)

    def move(self):
        """Moves money between two accounts, and sends a message about it."""
        number = str(next(self.numbers))
        own, other = random.sample(NAMES, 2)
        amount = random.randrange(1, 50)
        operations = [
            self.account(own, f"account{random.randrange(ACCOUNTS)}", -amount, own),
            self.account(other, f"account{random.randrange(ACCOUNTS)}", amount, own),
            there(sending(number, "moved"), other),
        ]
        if None in operations:
            return
        random.shuffle(operations)
        headers = random.choice([{}, {"Idempotency-Key": number}])
        path = f"/v1/namespaces/{own}/transactions"
        while True:
            status, answer = self.ask("POST", path, {"operations": operations}, headers)
            told = answer["error"]["code"] if status not in (None, 200) else None
            if status == 200:
                assert len(answer["results"]) == 3, answer
                self.moved.add(number)
                self.unknown.discard(number)
                return
            if told == "version_mismatch":
                # It was not done before either: the key is remembered.
                self.unknown.discard(number)
                return
            if told not in NOTHING:
                assert told in (None, "outcome_unknown"), answer
                self.unknown.add(number)
            elif number not in self.unknown:
                return
            if not headers or self.done.is_set():
                return
            time.sleep(0.02)

    def work(self):
        while not self.done.is_set():
            self.move()
            time.sleep(random.random() / 50)

    def check(self):
        """Nothing was done by halves, and all that was answered is done."""
        sent = self.sent_wholly()
        assert self.moved <= sent, sorted(self.moved - sent)
        assert sent <= self.moved | self.unknown, sorted(sent - self.moved - self.unknown)


def asking(server):
    """Asks a server, which may not answer."""

    def ask(method, path, body, headers):
        data = None if body is None else json.dumps(body).encode()
        try:
            status, answer = server.request(method, path, data, {**JSON, **headers})
            return status, json.loads(answer)
        except (OSError, http.client.HTTPException):
            time.sleep(0.02)
            return None, None

    return ask


def moving(bank: Bank, disturb):
    """Many move money, while something is done to the servers."""
    with ThreadPoolExecutor(8) as threads:
        movers = [threads.submit(bank.work) for _ in range(8)]
        try:
            disturb()
            before = len(bank.moved)
            until(lambda: len(bank.moved) > before + 10, "it goes on")
        finally:
            bank.done.set()
        for mover in movers:
            mover.result()
    bank.check()


def test_money_is_neither_made_nor_lost_when_a_server_dies_between_two_phases(server):
    server.call("PUT", "/v1/namespaces/c", {"shard": 1})

    def kills():
        for _ in range(6):
            time.sleep(0.3 + random.random())
            server.kill()
            server.start()

    moving(Bank(asking(server)), kills)

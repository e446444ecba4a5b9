"""Receives in open transactions: the commit acks what they have received, and otherwise it goes back."""

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from conftest import until
from documents import JSON, error
from test_documents_grpc import contract  # noqa: F401
from test_session_calls import session  # noqa: F401
from test_transactions_open import Open, begin, content, getting
from transactions import TRANSACTIONS, messages, payloads, putting, receive, send, sending, settling

JOBS = "/v1/queues/jobs/receive"


def received(server, work: Open, queue="jobs", **fields) -> list[dict]:
    body = {"transaction": work.name, **fields}
    return server.call("POST", f"/v1/queues/{queue}/receive", body)["messages"]


def refused(server, work: Open, path=JOBS, **fields) -> dict:
    return error(server, "POST", path, {"transaction": work.name, **fields})


def states(server, queue="jobs") -> dict:
    return {message["payload"]: message["state"] for message in messages(server, queue)}


def attempt(server, queue="jobs") -> tuple[str, int] | None:
    """Payload and attempt of the next message; it is given back."""
    job = receive(server, queue)
    if job is None:
        return None
    server.call("POST", "/v1/release", {"receipt": job["receipt"]})
    return job["payload"], job["attempt"]


def test_a_commit_acks_what_was_received(server):
    for number in range(5):
        send(server, f"{number}")
    work = begin(server, ttl_ms=60_000)
    first = received(server, work, max=2)
    assert [(job["payload"], job["attempt"]) for job in first] == [("0", 1), ("1", 1)]
    left_ms = first[0]["lease_until_ms"] - time.time() * 1e3
    assert 60_000 < left_ms < 70_000, "the lease lasts longer than the transaction"
    second = server.call("POST", "/v1/receive", {"queues": ["jobs"], "max": 2, "transaction": work.name})["messages"]
    assert [job["payload"] for job in second] == ["2", "3"]
    work.stage(sending("done"), putting("state", "4 done"))
    assert states(server) == {"0": "leased", "1": "leased", "2": "leased", "3": "leased", "4": "ready"}
    assert messages(server, "mail") == []
    done = work.commit()
    assert done["results"][2:] == [{}] * 4 and done["results"][0]["id"] and done["results"][1]["written"]
    assert states(server) == {"4": "ready"} and payloads(server) == ["done"]
    assert work.commit() == {**done, "duplicate": True}, "a repeat acks nothing else"
    assert states(server) == {"4": "ready"}
    for job in first + second:
        again = server.call("POST", "/v1/ack", {"receipt": job["receipt"]})
        assert again == {"already_settled": True}


def test_a_rollback_gives_back_without_an_attempt(server):
    send(server, "a")
    for way in ("rollback", "force", "deadline", "failed commit"):
        work = begin(server, ttl_ms=700 if way == "deadline" else 60_000)
        [job] = received(server, work)
        assert job["attempt"] == 1, way
        assert receive(server) is None
        if way == "rollback":
            work.rollback()
        elif way == "force":
            [one] = server.call("GET", "/v1/open-transactions")["transactions"]
            assert one["operation_count"] == 1 and one["bytes"] > 0
            shown = server.call("GET", f"/v1/open-transactions/{one['name']}")
            assert shown["operations"] == [{"operation": "receive", "about": [job["id"]]}]
            server.call("DELETE", f"/v1/open-transactions/{one['name']}")
        elif way == "failed commit":
            work.stage(putting("none", "x", if_version=3), sending("x"))
            assert work.commit_refused()["code"] == "version_mismatch"
        else:
            until(lambda: states(server) == {"a": "ready"}, "the deadline gives it back")
        # It is there at once, for a receive that does not wait.
        assert attempt(server) == ("a", 1), way
        assert work.is_lost()
        assert error(server, "POST", "/v1/ack", {"receipt": job["receipt"]})["code"] == "lease_lost"
        assert states(server) == {"a": "ready"}, f"the receipt is worth nothing any more: {way}"
    assert messages(server, "mail") == []


def test_a_staged_settlement_takes_the_place_of_the_ack(server):
    for payload in ("ack", "nack", "release", "reject", "result"):
        send(server, payload)
    work = begin(server)
    jobs = {job["payload"]: job["receipt"] for job in received(server, work, max=10)}
    assert len(jobs) == 5
    work.stage(
        settling(jobs["nack"], "nack", delay_ms=600_000, error="later"),
        settling(jobs["release"], "release"),
        settling(jobs["reject"], "reject", error="bad"),
        settling(jobs["result"], result="42"),
    )
    [one] = server.call("GET", "/v1/open-transactions")["transactions"]
    assert one["operation_count"] == 5, "each message is one operation"
    assert work.commit()["results"] == [{}] * 5
    assert states(server) == {"nack": "delayed", "release": "ready", "reject": "dead"}
    assert attempt(server) == ("release", 1)
    # What is settled by a staged operation goes back as well.
    work = begin(server)
    [job] = received(server, work)
    work.stage(settling(job["receipt"], "reject"))
    work.rollback()
    assert attempt(server) == ("release", 1)


def test_who_settles_by_themselves_makes_the_commit_fail(server):
    send(server, "a")
    send(server, "b")
    work = begin(server)
    first, second = received(server, work, max=2)
    server.call("POST", "/v1/ack", {"receipt": first["receipt"]})
    told = work.commit_refused()
    assert told["code"] == "already_settled" and told["details"]["receipt"] == first["receipt"]
    assert attempt(server) == ("b", 1) and states(server) == {"b": "ready"}


def test_a_receive_asks_for_no_more_than_fits(server):
    server.call("POST", "/v1/queues/jobs/messages", {"messages": [{"payload": f"{at}"} for at in range(1_005)]})
    work = begin(server, ttl_ms=60_000)
    work.stage(*[sending("x")] * 10)
    assert len(received(server, work, max=1_000)) == 990
    told = refused(server, work)
    assert (told["status"], told["code"]) == (413, "batch_too_large")
    assert (told["details"]["what"], told["details"]["limit"]) == ("operations", 1_000)
    assert work.refused(sending("y"))["code"] == "batch_too_large"
    assert len(work.commit()["results"]) == 1_000
    assert len(messages(server, "jobs")) == 15 and len(payloads(server)) == 10


def has(server, queue: str) -> bool:
    """True if there is a queue, which the first receive from it creates."""
    return queue in {one["name"] for one in server.call("GET", "/v1/queues")["queues"]}


def test_what_a_receive_waits_for_has_room(server):
    work = begin(server, ttl_ms=60_000)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(received, server, work, "first", max=600, wait_ms=20_000)
        until(lambda: has(server, "first"))
        second = pool.submit(received, server, work, "second", max=1_000, wait_ms=20_000)
        until(lambda: has(server, "second"))
        # Both together have asked for all that fits.
        told = refused(server, work, "/v1/queues/third/receive")
        assert (told["status"], told["code"]) == (413, "batch_too_large")
        assert (told["details"]["what"], told["details"]["limit"]) == ("operations", 1_000)
        assert "receive" in told["message"] and not has(server, "third")
        told = work.refused(sending("x"))
        assert told["code"] == "batch_too_large" and "receive" in told["message"], told
        for queue in ("first", "second"):
            many = [{"payload": f"{at}"} for at in range(600)]
            server.call("POST", f"/v1/queues/{queue}/messages", {"messages": many})
        jobs = waiting.result() + second.result()
    assert len(jobs) == 1_000 and {job["deliveries"] for job in jobs} == {1}
    [one] = server.call("GET", "/v1/open-transactions")["transactions"]
    assert one["operation_count"] == 1_000
    assert len(work.commit()["results"]) == 1_000
    assert receive(server, "second")["deliveries"] == 1, "nobody had the others"


def test_room_is_left_for_a_receive_that_waits_and_is_free_again_after_it(server):
    work = begin(server, ttl_ms=60_000)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(received, server, work, "later", max=10, wait_ms=20_000)
        until(lambda: has(server, "later"))
        assert work.refused(*[sending("x")] * 991)["code"] == "batch_too_large"
        work.stage(*[sending("x")] * 990)
        assert work.refused(getting("any"))["code"] == "batch_too_large"
        send(server, "late", "later")
        [job] = waiting.result()
    assert (job["payload"], job["deliveries"]) == ("late", 1)
    assert received(server, work, max=1_000, wait_ms=50) == []
    work.stage(*[sending("y")] * 9)
    told = work.refused(sending("z"))
    assert told["code"] == "batch_too_large" and "receive" not in told["message"]
    assert len(work.commit()["results"]) == 1_000


@pytest.mark.parametrize("way", ["commit", "rollback", "force", "refused"])
def test_the_end_of_a_transaction_gives_nothing_to_receives_that_wait_in_it(server, way):
    for queue in ("a", "b", "c"):
        send(server, "back", queue)
        work = begin(server)
        [job] = received(server, work, queue)
        with ThreadPoolExecutor() as pool:
            path = f"/v1/queues/{queue}/receive"
            waiting = [pool.submit(refused, server, work, path, wait_ms=20_000) for _ in range(3)]
            time.sleep(0.3)
            work.stage(sending("own", queue=queue))
            if way == "commit":
                work.stage(settling(job["receipt"], "release"))
                work.commit()
            elif way == "rollback":
                work.rollback()
            elif way == "force":
                [one] = server.call("GET", "/v1/open-transactions")["transactions"]
                server.call("DELETE", f"/v1/open-transactions/{one['name']}")
            else:
                work.stage(putting("none", "x", if_version=3))
                assert work.commit_refused()["code"] == "version_mismatch"
            assert {each.result()["code"] for each in waiting} == {"transaction_lost"}
        jobs = server.call("POST", path, {"max": 10})["messages"]
        told = sorted((job["payload"], job["deliveries"]) for job in jobs)
        assert told == [("back", 2)] + [("own", 1)] * (way == "commit")


def test_a_receive_that_waits_ends_empty_if_the_commit_can_be_repeated(server):
    server.call("PUT", "/v1/queues/full", {"max_messages": 1})
    send(server, "first", "full")
    work = begin(server)
    work.stage(sending("second", queue="full"))
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(received, server, work, wait_ms=20_000)
        until(lambda: has(server, "jobs"))
        started = time.monotonic()
        assert work.commit_refused()["code"] == "queue_full"
        assert waiting.result() == [] and time.monotonic() - started < 10
    send(server, "a")
    assert [job["deliveries"] for job in received(server, work)] == [1]
    server.call("POST", "/v1/ack", {"receipt": receive(server, "full")["receipt"]})
    work.commit()
    assert payloads(server, "full") == ["second"] and messages(server, "jobs") == []


def test_a_receive_names_the_namespace_that_is_deleted_while_it_waits(server):
    for transaction in (False, True):
        server.call("PUT", "/v1/namespaces/team", {})
        path, body = "/v1/namespaces/team", {"wait_ms": 20_000}
        if transaction:
            body["transaction"] = server.call("POST", f"{path}/transactions/begin")["transaction"]
        with ThreadPoolExecutor() as pool:
            waiting = [pool.submit(error, server, "POST", f"{path}/queues/{name}/receive", body) for name in "ab"]
            waiting.append(pool.submit(error, server, "POST", f"{path}/receive", {**body, "queues": ["a", "b"]}))
            until(lambda: len(server.call("GET", f"{path}/queues")["queues"]) == 2)
            time.sleep(0.2)
            server.call("DELETE", f"{path}?force=true")
            for told in [each.result() for each in waiting]:
                assert (told["code"], told["details"]) == ("namespace_not_found", {"namespace": "team"}), told


def test_a_receive_that_waits_ends_with_its_transaction(server):
    with ThreadPoolExecutor() as pool:
        for way in ("rollback", "deadline", "commit"):
            work = begin(server, ttl_ms=1_000 if way == "deadline" else 60_000)
            started = time.monotonic()
            waiting = pool.submit(refused, server, work, f"/v1/queues/{way}/receive", wait_ms=20_000)
            until(lambda way=way: way in {q["name"] for q in server.call("GET", "/v1/queues")["queues"]})
            if way == "rollback":
                work.rollback()
            elif way == "commit":
                work.commit()
            told = waiting.result()
            assert (told["status"], told["code"]) == (409, "transaction_lost"), way
            assert time.monotonic() - started < 10
            send(server, "a", way)
            time.sleep(0.1)
            assert attempt(server, way) == ("a", 1), f"nobody waits for it any more: {way}"
        # One to which nothing happens ends empty, and leaves the transaction as it is.
        work = begin(server)
        assert received(server, work, wait_ms=50) == []
        waiting = pool.submit(received, server, work, wait_ms=20_000)
        time.sleep(0.2)
        work.stage(sending("x"))
        send(server, "b")
        assert [job["payload"] for job in waiting.result()] == ["b"]
        work.commit()
    assert messages(server, "jobs") == [] and payloads(server) == ["x"]


def test_it_is_of_one_namespace_and_says_what_is_wrong(server):
    server.call("PUT", "/v1/namespaces/other", {})
    send(server, "a")
    work = begin(server)
    away = error(server, "POST", "/v1/namespaces/other/queues/jobs/receive", {"transaction": work.name})
    assert away["code"] == "transaction_lost"
    assert refused(server, work, lease_ms=1_000)["code"] == "conflicting_fields"
    assert refused(server, work, transaction_ttl_ms=1_000)["code"] == "conflicting_fields"
    for body, expected in [
        ({"transaction": "0" * 32}, "transaction_lost"),
        ({"transaction": ""}, "transaction_lost"),
        ({"transaction": 7}, "wrong_type"),
        ({"transaction_ttl_ms": 0}, "invalid_argument"),
        ({"transaction_ttl_ms": 1_800_001}, "invalid_argument"),
        ({"transaction_ttl_ms": 1_000, "lease_ms": 1}, "conflicting_fields"),
    ]:
        assert error(server, "POST", JOBS, body)["code"] == expected, body
    assert attempt(server) == ("a", 1)
    work.rollback()
    assert refused(server, work)["code"] == "transaction_lost"


def test_a_receive_begins_a_transaction_for_what_it_gets(server):
    assert server.call("POST", JOBS, {"transaction_ttl_ms": 60_000}) == {"messages": []}
    assert server.call("GET", "/v1/open-transactions")["transactions"] == []
    for number in range(3):
        send(server, f"{number}")
    answer = server.call("POST", JOBS, {"transaction_ttl_ms": 60_000, "max": 2})
    assert [job["payload"] for job in answer["messages"]] == ["0", "1"]
    assert abs(answer["expires_at_ms"] - time.time() * 1e3 - 60_000) < 5_000
    work = Open(server, answer["transaction"])
    work.stage(sending("done"))
    assert len(received(server, work)) == 1
    assert len(work.commit()["results"]) == 4
    assert messages(server, "jobs") == [] and payloads(server) == ["done"]
    send(server, "x")
    answer = server.call("POST", JOBS, {"transaction_ttl_ms": 300})
    until(Open(server, answer["transaction"]).is_lost)
    until(lambda: attempt(server) == ("x", 1), "it comes back at the deadline")


def test_a_crash_leaves_messages_to_their_leases_and_a_stop_gives_them_back(server):
    send(server, "a")
    work = begin(server, ttl_ms=60_000)
    received(server, work)
    assert server.stop() == 0
    server.start()
    assert attempt(server) == ("a", 1), "a server that stops gives it back"
    work = begin(server, ttl_ms=2_000)
    [job] = received(server, work)
    server.kill()
    server.start()
    assert receive(server) is None and work.is_lost()
    assert work.commit_refused()["code"] == "transaction_lost"
    until(lambda: states(server) == {"a": "ready"}, "the lease ends")
    assert attempt(server) == ("a", 2)


def test_a_commit_outlives_a_crash(server):
    send(server, "a")
    work = begin(server)
    received(server, work)
    done = work.commit()
    server.kill()
    server.start()
    assert work.commit() == {**done, "duplicate": True} and messages(server, "jobs") == []


def test_rules_of_queues_hold_as_for_any_receive(server):
    send(server, "a")
    server.call("POST", "/v1/queues/jobs/pause")
    work = begin(server)
    assert received(server, work) == []
    server.call("POST", "/v1/queues/jobs/resume")
    assert len(received(server, work)) == 1
    work.commit()
    for payload in ("1", "2"):
        send(server, payload, ordering_key="k")
    work = begin(server)
    assert [job["payload"] for job in received(server, work, max=10)] == ["1"]
    assert receive(server) is None, "the next of the key waits for the commit"
    work.rollback()
    work = begin(server)
    assert [job["payload"] for job in received(server, work, max=10)] == ["1"]
    work.commit()
    assert attempt(server) == ("2", 1)


def test_random_transactions_lose_nothing_and_do_nothing_twice(server):
    """Each message is copied to another queue together with its ack, by transactions that end in all ways."""
    count = 300
    sent = [f"{number}" for number in range(count)]
    server.call("POST", "/v1/queues/jobs/messages", {"messages": [{"payload": one} for one in sent]})

    def work_on(seed: int):
        chance = random.Random(seed)
        while states(server):
            begins = chance.random() < 0.5
            if begins:
                answer = server.call("POST", JOBS, {"transaction_ttl_ms": 5_000, "max": chance.randrange(1, 9)})
                if not answer["messages"]:
                    time.sleep(0.01)
                    continue
                work, jobs = Open(server, answer["transaction"]), answer["messages"]
            else:
                work = begin(server, ttl_ms=chance.choice([50, 5_000]))
                body = json.dumps({"transaction": work.name, "max": chance.randrange(1, 9), "wait_ms": 20}).encode()
                status, answer = server.request("POST", JOBS, body, JSON)
                assert status == 200 or json.loads(answer)["error"]["code"] == "transaction_lost", answer
                jobs = json.loads(answer)["messages"] if status == 200 else []
            copies = [sending(job["payload"], queue="copies") for job in jobs]
            if jobs and chance.random() < 0.3:
                copies[-1] = settling(jobs[-1]["receipt"], "release")
            body = json.dumps({"operations": copies}).encode()
            status, answer = server.request("POST", f"{work.path}/operations", body, JSON) if jobs else (409, b"")
            end = chance.choice(["commit", "commit", "rollback", "leave"])
            if end == "rollback":
                server.request("POST", f"{work.path}/rollback")
            elif end == "commit" and status == 200:
                server.request("POST", f"{work.path}/commit")
                server.request("POST", f"{work.path}/commit")

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(work_on, seed) for seed in range(6)]:
            done.result()
    assert sorted(payloads(server, "copies"), key=int) == sent
    assert max(message["attempts"] for message in messages(server, "copies")) <= 1


@pytest.fixture
def calls(server, contract):  # noqa: F811
    """Calls of gRPC: `calls("Transactions", "Begin", "BeginTransactionRequest", ...)`."""
    pb = {"Transactions": "transactions", "Messages": "messages"}
    with grpc.insecure_channel(server.url.split("://")[1]) as channel:

        def call(service: str, method: str, request: str, **fields):
            stub = getattr(contract(f"{pb[service]}_pb2_grpc"), f"{service}Stub")(channel)
            return getattr(stub, method)(getattr(contract(f"{pb[service]}_pb2"), request)(**fields), timeout=20)

        yield call


def test_grpc_and_the_command_line_receive_in_transactions(server, calls):
    for number in range(4):
        send(server, f"{number}")
    name = calls("Transactions", "Begin", "BeginTransactionRequest", ttl_ms=60_000).transaction
    jobs = [{"name": "jobs"}]
    got = calls("Messages", "Receive", "ReceiveRequest", queues=jobs, max=2, transaction=name)
    assert [job.payload for job in got.messages] == [b"0", b"1"] and not got.HasField("transaction")
    assert len(calls("Transactions", "Close", "CloseTransactionRequest", transaction=name).results) == 2
    got = calls("Messages", "Receive", "ReceiveRequest", queues=jobs, transaction_ttl_ms=60_000)
    assert [job.payload for job in got.messages] == [b"2"] and got.expires_at_ms > 0
    with pytest.raises(grpc.RpcError) as caught:
        calls("Messages", "Receive", "ReceiveRequest", queues=jobs, transaction="x")
    assert dict(caught.value.trailing_metadata())["sluice-code"] == "transaction_lost"
    work = Open(server, got.transaction)
    told = server.sluice("receive", "jobs", "--transaction", work.name, "--ack")
    assert told.returncode == 2 and "the commit of the transaction acks" in told.stderr, told
    told = server.sluice("receive", "jobs", "--transaction", work.name)
    assert (told.returncode, told.stdout) == (0, "3\n"), told
    assert states(server) == {"2": "leased", "3": "leased"}, "the commit acks them"
    assert server.sluice("receive", "jobs", "--transaction", work.name, "--lease", "1s").returncode == 2
    assert server.sluice("txn", "commit", "--transaction", work.name).returncode == 0
    assert messages(server, "jobs") == [] and content(server, "any") is None
    assert TRANSACTIONS in work.path


def test_a_transaction_over_a_session_receives(server, session, contract):  # noqa: F811
    pb, transactions = contract("messages_pb2"), contract("transactions_pb2")
    one = session()
    waits = pb.ReceiveRequest(queues=[{"name": "jobs"}], transaction_ttl_ms=60_000, wait_ms=20_000)
    waiting = one.begin("Messages/Receive", waits)
    time.sleep(0.2)
    send(server, "a")
    got = pb.ReceiveResponse.FromString(one.result(waiting).answer)
    assert [job.payload for job in got.messages] == [b"a"]
    close = transactions.CloseTransactionRequest(transaction=got.transaction)
    done = transactions.CommitTransactionResponse.FromString(one.call("Transactions/Close", close).answer)
    assert len(done.results) == 1 and messages(server, "jobs") == []
    # One that waits when its session ends takes nothing.
    one.begin("Messages/Receive", waits)
    time.sleep(0.2)
    one.end()
    send(server, "b")
    until(lambda: attempt(server) == ("b", 1), "it is there for others")
    assert server.call("GET", "/v1/open-transactions")["transactions"] == []

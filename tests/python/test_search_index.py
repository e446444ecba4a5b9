"""Indexes of messages: searches by tag and by error look at few of many messages, and find the same."""

import json

from conftest import until

NEEDLE = {"/tags": {"contains": "needle"}}


def search(server, where, queue="jobs") -> dict:
    return server.call("POST", f"/v1/queues/{queue}/search", {"where": where})


def until_known(server, queue="jobs") -> None:
    """Waits until the index knows all messages."""

    def is_known() -> bool:
        page = search(server, {"/tags": {"contains": "none"}, "/error": "none"}, queue)
        return page.get("index") is not None and page["scanned"] == 0 and "next" not in page

    until(is_known, "the index knows all messages")


def test_a_tag_and_an_error_are_found_among_many_by_the_index_and_without(server):
    tagged = [{"payload": str(n), "tags": ["needle"] if n == 777 else ["hay"]} for n in range(2_000)]
    server.call("POST", "/v1/queues/jobs/messages", {"messages": tagged})
    failing = server.call("POST", "/v1/queues/jobs/messages", {"payload": "x", "priority": 9})["id"]
    [taken] = server.call("POST", "/v1/queues/jobs/receive", {"max": 1})["messages"]
    server.call("POST", "/v1/nack", {"receipt": taken["receipt"], "error": "no host 12345", "delay_ms": 86_400_000})
    before = search(server, NEEDLE)
    assert (before["scanned"], before.get("index")) == (2_001, None)
    queue = server.call("PATCH", "/v1/queues/jobs", {"search_index": "tags_and_errors"})
    assert queue["settings"]["search_index"] == "tags_and_errors"
    until_known(server)
    by_tag = search(server, NEEDLE)
    assert (by_tag["messages"], by_tag["scanned"], by_tag["index"]) == (before["messages"], 1, "tags")
    by_error = search(server, {"/error": "no host 12345"})
    assert ([one["id"] for one in by_error["messages"]], by_error["index"]) == ([failing], "errors")
    shown = server.sluice("message", "search", "jobs", "--where", json.dumps(NEEDLE))
    assert shown.stdout.count(by_tag["messages"][0]["id"]) == 1
    assert shown.stderr == "messages looked at: 1, by the index of tags\n"
    none = server.sluice("message", "search", "jobs", "--where", '{"/tags": {"contains": "none"}}')
    assert (none.returncode, none.stdout) == (0, "")
    assert none.stderr == "no message in jobs matches\nmessages looked at: 0, by the index of tags\n"
    # Without an index for it: the rest of the filter decides.
    assert "index" not in search(server, {"/payload": 777})
    server.sluice("queue", "set", "jobs", "--search-index", "none")
    assert "index" not in search(server, NEEDLE)


def test_the_groups_of_dead_letters_tell_the_fingerprints_by_which_they_are_found(server):
    server.call("PUT", "/v1/queues/jobs", {"search_index": "errors"})
    for error in ("timeout after 3012 ms", "timeout after 59999 ms", "no such user"):
        server.call("POST", "/v1/queues/jobs/messages", {"payload": "x"})
        [taken] = server.call("POST", "/v1/queues/jobs/receive", {"max": 1})["messages"]
        server.call("POST", "/v1/reject", {"receipt": taken["receipt"], "error": error})
    until_known(server)
    groups = server.call("GET", "/v1/queues/jobs/dead/errors")["errors"]
    of = {group["error"]: group["fingerprint"] for group in groups}
    assert of["timeout after 3012 ms"] == of["timeout after 59999 ms"] != of["no such user"]
    found = search(server, {"/error_fingerprint": of["timeout after 3012 ms"]})
    assert (len(found["messages"]), found["index"]) == (2, "errors")


def test_an_index_is_there_after_a_restart_and_a_wrong_one_is_refused(server):
    server.call("PUT", "/v1/queues/jobs", {"search_index": "tags"})
    server.call("POST", "/v1/queues/jobs/messages", {"payload": "x", "tags": ["needle"]})
    until_known(server)
    server.kill()
    server.start()
    page = search(server, NEEDLE)
    assert (len(page["messages"]), page["index"]) == (1, "tags")
    wrong, headers = b'{"search_index":"payload"}', {"Content-Type": "application/json"}
    status, body = server.request("PATCH", "/v1/queues/jobs", wrong, headers)
    assert status == 400 and b"tags_and_errors" in body

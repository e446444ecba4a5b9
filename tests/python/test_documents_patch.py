"""Changes of documents whose content is JSON, in the place where they lie."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from documents import JSON, error, get, of, put

MERGE = {"Content-Type": "application/merge-patch+json"}
PATCH = {"Content-Type": "application/json-patch+json"}


def content(server, key: str):
    return json.loads(get(server, key)["content"])


def patch(server, key: str, **fields) -> dict:
    return server.call("PATCH", of(key), fields)


def refused(server, key: str, **fields) -> tuple[int, str]:
    told = error(server, "PATCH", of(key), fields)
    return told["status"], told["code"]


def raw(server, key: str, body, headers) -> tuple[int, dict]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    status, answer = server.request("PATCH", of(key, "/raw"), data, headers)
    return status, json.loads(answer)


@pytest.fixture
def order(server):
    put(server, "o", json.dumps({"state": "new", "items": [1], "draft": True}), attributes={"by": "ann"},
        content_type="application/json", history=3, ttl_ms=60_000)
    return get(server, "o")


def test_a_merge_patch_changes_members_and_leaves_the_rest_of_the_document(server, order):
    written = patch(server, "o", merge_patch='{"state":"paid","draft":null}')
    assert content(server, "o") == {"state": "paid", "items": [1]}
    after = get(server, "o")
    assert after["version"] == 2 and after["etag"] == written["etag"]
    for field in ("content_type", "attributes", "history", "expires_at_ms"):
        assert after[field] == order[field], field
    status, written = raw(server, "o", {"items": None}, MERGE)
    assert status == 200 and written["version"] == 3 and content(server, "o") == {"state": "paid"}


def test_a_json_patch_is_done_as_a_whole_or_not_at_all(server, order):
    good = [{"op": "test", "path": "/state", "value": "new"}, {"op": "add", "path": "/items/-", "value": 2}]
    assert raw(server, "o", good, PATCH)[0] == 200
    half = [{"op": "add", "path": "/items/-", "value": 3}, {"op": "remove", "path": "/none"}]
    status, told = raw(server, "o", half, PATCH)
    assert (status, told["error"]["code"], told["error"]["details"]["field"]) == (409, "patch_failed", "[1]")
    assert content(server, "o")["items"] == [1, 2] and get(server, "o")["version"] == 2


def test_increments_of_many_callers_all_count(server):
    put(server, "n", "{}")
    with ThreadPoolExecutor(8) as callers:
        list(callers.map(lambda _: patch(server, "n", increment=[{"pointer": "/a"}]), range(160)))
    patch(server, "n", increment=[{"pointer": "/a", "by": "-60"}, {"pointer": "/b", "by": "0.5"}])
    assert content(server, "n") == {"a": 100, "b": 0.5} and get(server, "n")["version"] == 162


def test_a_repeat_changes_nothing(server):
    put(server, "n", "{}")
    first = patch(server, "n", increment=[{"pointer": "/a"}], request_id="r")
    assert patch(server, "n", increment=[{"pointer": "/a"}], request_id="r") == first
    assert content(server, "n") == {"a": 1}


def test_conditions_hold_for_patches(server, order):
    assert refused(server, "o", merge_patch="{}", if_version=2) == (409, "version_mismatch")
    assert refused(server, "o", merge_patch="{}", if_etag="1") == (409, "version_mismatch")
    assert raw(server, "o", {}, {**MERGE, "If-Match": '"1"'})[0] == 412
    assert raw(server, "o", {}, {**MERGE, "If-Match": f'"{order["etag"]}"'})[0] == 200
    token = server.call("POST", "/v1/locks", {"key": "o"})["token"]
    assert patch(server, "o", merge_patch="{}", token=token)["version"] == 3
    server.call("POST", "/v1/grants/release", {"token": token})
    assert refused(server, "o", merge_patch="{}", token=token) == (409, "lease_lost")


def test_a_patch_that_cannot_be_made_says_why_and_changes_nothing(server, order):
    put(server, "text", "hello")
    put(server, "long", '{"n":123456789012345678901}')
    bad = (400, "invalid_argument")
    assert refused(server, "none", merge_patch="{}") == (404, "document_not_found")
    assert refused(server, "text", merge_patch="{}") == bad
    assert refused(server, "long", merge_patch="{}") == bad
    assert refused(server, "o") == (400, "missing_field")
    assert refused(server, "o", merge_patch="{}", json_patch="[]") == (400, "conflicting_fields")
    assert refused(server, "o", merge_patch="{") == bad
    assert refused(server, "o", json_patch='[{"op":"grow"}]') == bad
    assert refused(server, "o", increment=[{"pointer": "state"}]) == bad
    assert refused(server, "o", increment=[{"pointer": "/n", "by": "1e999"}]) == bad
    assert refused(server, "o", increment=[{"pointer": "/state"}]) == (409, "patch_failed")
    assert refused(server, "o", increment=[{"pointer": "/n"}] * 1_001) == bad
    assert refused(server, "o", json_patch=json.dumps([{"op": "remove", "path": "/x"}] * 1_001)) == bad
    assert refused(server, "o", json_patch="[" * 1_000 + "]" * 1_000) == bad
    grow = [{"op": "copy", "from": "", "path": "/items/-"}] * 64
    assert refused(server, "o", json_patch=json.dumps(grow)) == bad
    assert raw(server, "o", {}, JSON)[0] == 400
    assert raw(server, "o", {}, {**MERGE, "Sluice-Ttl-Ms": "5"})[0] == 400
    assert get(server, "o") == order


def test_a_patch_from_the_command_line(server, order):
    def doc(*words):
        return server.sluice("doc", "patch", *words)

    assert doc("o", "--merge", '{"state":"sent"}').stdout.startswith("changed, version 2, etag ")
    assert doc("o", "--increment", "/n", "--increment", "/m=5").returncode == 0
    assert doc("o", "--json-patch", '[{"op":"remove","path":"/draft"}]').returncode == 0
    assert content(server, "o") == {"state": "sent", "items": [1], "n": 1, "m": 5}
    failed = doc("o", "--json-patch", '[{"op":"remove","path":"/none"}]')
    assert failed.returncode == 4 and "/none" in failed.stderr
    assert doc("o").returncode == 2


def test_fields_that_a_patch_would_pass_over_are_refused(server, order):
    assert raw(server, "o", {}, {**MERGE, "Sluice-Attribute-A": "1"})[0] == 400
    assert raw(server, "o", {}, {**MERGE, "If-None-Match": "*"})[0] == 400
    assert get(server, "o") == order


def test_a_patch_of_a_large_document_and_patches_that_are_too_long(server):
    put(server, "large", json.dumps({"list": [1] * 1_000_000}))
    assert patch(server, "large", merge_patch='{"n":1}')["version"] == 2
    long = json.dumps({"x": "y" * (1 << 20)})
    assert refused(server, "large", merge_patch=long) == (400, "invalid_argument")
    assert raw(server, "large", long.encode(), MERGE)[0] == 400


def test_a_patch_cannot_nest_without_end(server):
    """Each copy doubles the depth: the server has a stack of a few MiB."""
    put(server, "deep", '{"a":{}}')
    copies = [{"op": "copy", "from": "/a", "path": "/a" + "/c" * (2**at)} for at in range(14)]
    told = error(server, "PATCH", of("deep"), {"json_patch": json.dumps(copies)})
    assert (told["code"], told["details"]["field"]) == ("invalid_argument", "[6]"), told
    assert json.loads(get(server, "deep")["content"]) == {"a": {}}
    # What is as deep as may be is patched again.
    server.call("PATCH", of("deep"), {"json_patch": json.dumps(copies[:6])})
    server.call("PATCH", of("deep"), {"increment": [{"pointer": "/n"}]})

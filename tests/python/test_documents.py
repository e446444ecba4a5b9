"""Documents: who writes over whom, and what is read."""

import base64
import http.client
import json
import random
import time
from urllib.parse import quote

import pytest
from conftest import until
from documents import (
    DOCUMENTS,
    LOCKS,
    BYTES_MAX,
    KEYS,
    JSON,
    Raw,
    acquire,
    delete,
    error,
    get,
    get_raw,
    grow,
    is_gone,
    listed,
    of,
    put,
    put_raw,
    release,
    told,
    versions,
)


def test_a_document_is_written_read_and_deleted(server):
    status, answer = server.request("PUT", of("k"), json.dumps({"content": "grün"}).encode(), JSON)
    first = json.loads(answer)
    assert (status, first["version"]) == (201, 1)
    shown = get(server, "k")
    assert shown == {**first, "key": "k", "content": "grün", "content_bytes": 5, "history": 0}
    assert abs(shown["changed_at_ms"] / 1_000 - time.time()) < 60
    # A write replaces all of it.
    put(server, "k", "x", content_type="text/plain", attributes={"a": "b"})
    assert get(server, "k").items() >= {"content_type": "text/plain", "attributes": {"a": "b"}}.items()
    status, answer = server.request("PUT", of("k"), json.dumps({"content": "y"}).encode(), JSON)
    assert (status, json.loads(answer)["version"]) == (200, 3)
    assert not {"content_type", "attributes"} & get(server, "k").keys()
    assert delete(server, "k") == {}
    assert is_gone(server, "k") and listed(server) == []
    again = put(server, "k", "z")
    assert again["version"] == 1 and int(again["etag"]) > int(first["etag"])


def test_a_write_is_made_only_if_its_conditions_hold(server):
    changed = (409, "version_mismatch")
    for fields in ({"if_version": 1}, {"if_etag": "1"}, {"if_exists": True}):
        assert told(server, "k", **fields) == changed
    first = put(server, "k", "1", if_absent=True)
    second = put(server, "k", "2", if_version=1, if_exists=True, if_absent=False)
    third = put(server, "k", "3", if_etag=second["etag"], if_version=2)
    wrong = [{"if_absent": True}, {"if_version": 2}, {"if_version": 4}, {"if_etag": first["etag"]}]
    wrong += [{"if_etag": third["etag"], "if_version": 2}, {"if_etag": second["etag"], "if_version": 3}]
    for fields in wrong:
        refused = error(server, "PUT", of("k"), {"content": "never", **fields})
        assert (refused["status"], refused["code"]) == changed, fields
        assert refused["details"] == {"key": "k", "version": 3} and "version 3" in refused["message"]
    for query in ("?if_version=2", f"?if_etag={second['etag']}", f"?if_version=3&if_etag={first['etag']}"):
        assert error(server, "DELETE", of("k", query))["code"] == "version_mismatch"
    assert get(server, "k")["content"] == "3"
    delete(server, "k", f"?if_version=3&if_etag={third['etag']}")
    assert error(server, "DELETE", of("k", "?if_version=3"))["code"] == "version_mismatch"
    # Another document with the same version is not the same.
    put(server, "k", "again")
    assert told(server, "k", if_etag=first["etag"]) == changed


def test_headers_are_conditions_of_a_raw_write(server):
    refused = (412, "version_mismatch")
    assert put_raw(server, "k", b"1", If_Match="*").error == refused
    first = put_raw(server, "k", b"1", If_None_Match="*")
    assert first.status == 201 and first.etag == f'"{json.loads(first.body)["etag"]}"'
    assert put_raw(server, "k", b"2", If_None_Match="*").error == refused
    second = put_raw(server, "k", b"2", If_Match=first.etag)
    assert second.status == 200 and json.loads(second.body)["version"] == 2
    assert put_raw(server, "k", b"3", If_Match=first.etag).error == refused
    assert put_raw(server, "k", b"3", If_Match="*").status == 200
    for tag in ("", "7", '""', '"7', '"a"', '"-1"', '"99999999999999999999"'):
        assert put_raw(server, "k", b"x", If_Match=tag).error == (400, "invalid_argument"), tag
    for headers in ({"If_None_Match": '"7"'}, {"If_None_Match": "*", "If_Match": "*"}):
        assert put_raw(server, "k", b"x", **headers).status == 400, headers
    assert get_raw(server, "k").body == b"3"


def test_a_condition_is_never_passed_over(server):
    etag = put_raw(server, "k", b"1").etag
    body = json.dumps({"content": "x"}).encode()
    for method, rest, content, more in [("DELETE", "", None, {}), ("PUT", "", body, JSON)]:
        for headers in ({"If-Match": '"7"'}, {"If-None-Match": "*"}):
            answer = Raw(server, method, "k", content, rest, **headers, **more)
            assert answer.status in (400, 412), (method, headers, answer.body)
            assert get_raw(server, "k").etag == etag
    for headers in ({"If_Match": ["*", '"7"']}, {"If_Match": [etag, '"7"']}, {"If_None_Match": ["*", '"7"']}):
        assert put_raw(server, "k", b"x", **headers).status in (400, 412), headers
    assert get_raw(server, "k", If_Match='"7"').status == 412


def test_a_raw_document_comes_back_with_its_headers(server):
    binary = bytes(range(256))
    sent = {"Content_Type": "image/png", "Sluice_Attribute_Lang": "de", "Sluice_Attribute_Title": "Grün €"}
    first = put_raw(server, "k", binary, **sent, Sluice_History="3", Sluice_TTL_Ms="600000")
    read = get_raw(server, "k")
    assert (read.status, read.body, read.etag) == (200, binary, first.etag)
    assert read.headers["Content-Type"] == "image/png" and read.headers["Sluice-Version"] == "1"
    assert read.attributes() == {"lang": "de", "title": "Grün €"}
    lives_ms = int(read.headers["Sluice-Expires-At-Ms"]) - int(read.headers["Sluice-Changed-At-Ms"])
    shown = get(server, "k")
    assert lives_ms == 600_000 == shown["expires_at_ms"] - shown["changed_at_ms"]
    assert base64.b64decode(shown["content_base64"]) == binary and "content" not in shown
    assert shown["attributes"] == read.attributes() and shown["history"] == 3
    head = Raw(server, "HEAD", "k")
    assert (head.status, head.etag, head.body) == (200, first.etag, b"")
    assert head.headers["Content-Length"] == "256"
    put_raw(server, "k", b"")
    read = get_raw(server, "k")
    assert (read.body, read.headers["Sluice-Version"], read.attributes()) == (b"", "2", {})
    assert read.headers["Content-Type"] == "application/octet-stream"
    assert get_raw(server, "k", "?version=1").body == binary


def test_who_has_the_version_is_told_so(server):
    etag = put_raw(server, "k", b"1", Sluice_History="1").etag
    for tags in (etag, f"W/{etag}", "*", f'"7", {etag}', ['"7"', etag]):
        known = get_raw(server, "k", If_None_Match=tags)
        assert (known.status, known.body, known.etag) == (304, b"", etag), tags
    assert get_raw(server, "k", If_None_Match='"7"').status == 200
    changed = put_raw(server, "k", b"2").etag
    assert get_raw(server, "k", If_None_Match=etag).etag == changed
    assert get_raw(server, "k", "?version=1", If_None_Match=etag).status == 304


def test_attributes_are_any_text(server):
    attributes = {"by": "ann", "grün": "€ 🙂", "with space": "a\nb", "Upper": "", "a=b": "c:d", "emoji 🙂": " x "}
    put(server, "k", attributes=attributes)
    assert get(server, "k")["attributes"] == attributes
    assert get_raw(server, "k").attributes() == attributes
    # Headers of HTTP have no capitals, and what is read and put again is the same.
    put(server, "k", attributes={"X": "1", "x": "2"})
    assert get_raw(server, "k").attributes() == {"X": "1", "x": "2"}
    many = {f"a{at}": "v" for at in range(64)}
    put(server, "k", attributes=many)
    assert get_raw(server, "k").attributes() == many == get(server, "k")["attributes"]
    most = {"a": "v" * ((16 << 10) - 1)}
    put(server, "k", attributes=most)
    assert get_raw(server, "k").attributes() == most == get(server, "k")["attributes"]
    for wrong in ({**many, "b": ""}, {"a": "v" * (16 << 10)}, {"": "nameless"}, {"a": 1}, {"a": None}):
        refused = error(server, "PUT", of("k"), {"content": "x", "attributes": wrong})
        assert refused["status"] == 400 and "attributes" in refused["message"], refused


def test_an_attribute_that_is_given_twice_is_refused_as_a_header_of_a_message_is(server):
    assert put_raw(server, "k", b"x", Sluice_Attribute_A=["1", "2"]).error == (400, "duplicate_field")
    twice = b'{"content":"x","attributes":{"a":"1","a":"2"}}'
    status, answer = server.request("PUT", of("k"), twice, JSON)
    assert status == 400 and b"duplicate_field" in answer


def test_contents_have_any_bytes_up_to_their_limit(server):
    largest = random.randbytes(BYTES_MAX)
    put(server, "empty", "")
    assert get(server, "empty")["content"] == "" and get_raw(server, "empty").body == b""
    server.call("PUT", of("binary"), {"content_base64": base64.b64encode(b"\xff\0").decode()})
    assert get_raw(server, "binary").body == b"\xff\0"
    assert put_raw(server, "raw", largest).status == 201 and get_raw(server, "raw").body == largest
    server.call("PUT", of("json"), {"content_base64": base64.b64encode(largest).decode()})
    assert get_raw(server, "json").body == largest
    assert base64.b64decode(get(server, "raw")["content_base64"]) == largest
    put(server, "text", "x" * BYTES_MAX)
    assert get(server, "text")["content"] == "x" * BYTES_MAX
    assert [one["content_bytes"] for one in server.call("GET", DOCUMENTS)["documents"]] == [2, 0, *[BYTES_MAX] * 3]
    too_large = put_raw(server, "raw", largest + b"x")
    assert too_large.error == (413, "body_too_large")
    assert told(server, "raw", content="x" * (BYTES_MAX + 1)) == (413, "payload_too_large")
    assert get_raw(server, "raw").body == largest


def test_bad_input_of_the_typed_call_is_refused_by_its_name(server):
    content = {"content": "x"}
    wrong = [("content", {}), ("content", {"content": 7}), ("content", {"content": None})]
    wrong += [("content and content_base64", {**content, "content_base64": ""})]
    wrong += [("content_base64", {"content_base64": base}) for base in ("eA", "e===", "-_==", "ü")]
    fields = [("if_version", 0), ("if_version", -1), ("if_version", "1"), ("if_version", 1 << 53)]
    fields += [("if_etag", tag) for tag in ("", "x", '"7"', "-7", "+7", " 7", "7" * 21, 7)]
    fields += [("ttl_ms", 0), ("ttl_ms", 316_224_000_001), ("history", 101), ("history", -1), ("history", "1")]
    fields += [("token", ""), ("token", "x"), ("token", "0" * 31), ("if_exists", 1), ("colour", "red")]
    fields += [("content_type", "x" * 256), ("attributes", [])]
    wrong += [(field, {**content, field: value}) for field, value in fields]
    wrong += [("if_absent and", {**content, "if_absent": True, other: value})
              for other, value in (("if_exists", True), ("if_version", 1), ("if_etag", "7"))]
    for begins, body in wrong:
        refused = error(server, "PUT", of("k"), body)
        assert refused["status"] == 400 and refused["message"].startswith(begins), (body, refused)
    for query in ("?version=0", "?version=x", "?colour=red", "?stale=perhaps"):
        assert error(server, "GET", of("k", query))["status"] == 400, query
    for query in ("?if_version=0", "?if_etag=x", "?token=x", "?if_exists=true", "?colour=red"):
        assert error(server, "DELETE", of("k", query))["status"] == 400, query
    for query in ("?limit=0", "?limit=1001", "?colour=red"):
        assert error(server, "GET", DOCUMENTS + query)["status"] == 400, query
    assert listed(server) == []


def test_bad_input_of_the_raw_call_is_refused_by_its_name(server):
    headers = [("Sluice_TTL_Ms", value) for value in ("0", "-1", "1s", "", "316224000001")]
    headers += [("Sluice_History", value) for value in ("101", "-1", "x")]
    headers += [("Sluice_Colour", "red"), ("Sluice_Attribute_", "nameless")]
    headers += [("Sluice_Attributes_Base64", "e30="), ("Sluice_Attribute_A", b"\xff"), ("Content_Type", b"\xff")]
    headers += [("Sluice_Attribute_A", ["1", "2"]), ("Sluice_History", ["1", "2"])]
    headers += [("Idempotency_Key", value) for value in ("", "x" * 257, "ü", ["1", "2"])]
    for name, value in headers:
        refused = put_raw(server, "k", b"x", **{name: value})
        shown = json.loads(refused.body)["error"]["message"].lower()
        assert refused.status == 400 and shown.startswith(name.replace("_", "-").lower()), (name, value, shown)
    assert put_raw(server, "k", b"x", Content_Encoding="gzip").status == 415
    assert Raw(server, "PUT", "k", b"x", "/raw?history=1").status == 400
    assert get_raw(server, "k", "?colour=red").status == 400
    assert listed(server) == []


def test_an_error_names_the_headers_that_were_sent(server):
    for headers in ({"Sluice_Lock_Token": "x"}, {"If_Match": "*", "If_None_Match": "*"}):
        refused = put_raw(server, "k", b"x", **headers)
        message = json.loads(refused.body)["error"]["message"].lower()
        assert refused.status == 400
        assert all(name.replace("_", "-").lower() in message for name in headers), message


def test_keys_that_a_path_would_not_keep_are_refused(server):
    for key in [".", ".."]:
        refused = error(server, "POST", "/v1/transactions", {"operations": [{"put": {"key": key, "content": ""}}]})
        assert refused["code"] == "invalid_argument" and "by a path" in refused["message"], refused
        refused = error(server, "POST", "/v1/locks", {"key": key, "ttl_ms": 1_000})
        assert refused["code"] == "invalid_argument" and "by a path" in refused["message"], refused
    assert listed(server) == []


def test_keys_are_any_text_and_are_listed_in_their_order(server):
    keys = sorted(KEYS, key=str.encode)
    for key in keys:
        put(server, key, key)
        assert get(server, key)["key"] == key and get_raw(server, key).body == key.encode()
        assert versions(server, key) == [1]
    pages, after = [], ""
    while after is not None:
        page = server.call("GET", f"{DOCUMENTS}?limit=5&after={quote(after)}")
        pages += [one["key"] for one in page["documents"]]
        assert not any("content" in one for one in page["documents"])
        after = page.get("next")
    assert pages == keys == listed(server)
    assert listed(server, "?prefix=a/") == ["a//", "a/1", "a/2"] == listed(server, "?prefix=a%2F&after=a.")
    assert listed(server, "?prefix=a/&after=a/1") == ["a/2"] and listed(server, "?prefix=b") == []
    for key in keys:
        delete(server, key)
    assert listed(server) == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_keys_that_no_document_has_are_refused_in_paths(server, method):
    body = {"content": "x"} if method == "PUT" else None
    for key in ("", "k" * 256, "ü" * 128, "a%0Ab", "a%00b", "%7F", "%C2%85"):
        refused = error(server, method, f"{DOCUMENTS}/{quote(key, safe='%')}", body)
        assert refused["status"] == 400 and refused["message"].startswith("key: "), (key, refused)
    for key in ("%FF", "a/b"):
        assert error(server, method, f"{DOCUMENTS}/{key}", body)["status"] in (400, 404), key


def test_former_versions_are_kept_as_far_as_asked(server):
    etags = [put(server, "k", "1", content_type="a/b", attributes={"n": "1"}, history=2)["etag"]]
    etags += [put(server, "k", str(number))["etag"] for number in (2, 3, 4)]
    assert grow(etags) and versions(server, "k") == [4, 3, 2]
    history = get(server, "k", "/history")["versions"]
    assert [one["etag"] for one in history] == etags[:0:-1]
    assert not any("content" in one for one in history)
    assert [get(server, "k", f"?version={number}")["content"] for number in (2, 3, 4)] == ["2", "3", "4"]
    for number in (1, 5):
        for rest in (f"?version={number}", f"/raw?version={number}"):
            refused = error(server, "GET", of("k", rest))
            assert (refused["status"], refused["code"]) == (404, "document_not_found")
            assert refused["details"]["latest"] == 4
    put(server, "k", "5", history=1)
    assert versions(server, "k") == [5, 4]
    put(server, "k", "6", history=100)
    assert versions(server, "k") == [6, 5, 4]
    for number in range(7, 110):
        put(server, "k", str(number))
    assert versions(server, "k") == list(range(109, 8, -1))
    # A version that was overwritten keeps its type and attributes, and a restart keeps it.
    first = put(server, "j", "1", content_type="a/b", attributes={"n": "1"}, history=1)
    put(server, "j", "2")
    server.kill()
    server.start()
    former = get(server, "j", "?version=1")
    assert former.items() >= {**first, "content": "1", "content_type": "a/b", "attributes": {"n": "1"}}.items()
    put(server, "j", "3", history=0)
    assert versions(server, "j") == [3]
    delete(server, "k")
    assert error(server, "GET", of("k", "?version=108"))["code"] == "document_not_found"


def test_a_document_ends_with_its_time(server):
    first = put(server, "k", "1", ttl_ms=700, history=5)
    put(server, "stays", "1", ttl_ms=500)
    put(server, "stays", "2")
    assert first["changed_at_ms"] + 700 == get(server, "k")["expires_at_ms"]
    put(server, "k", "2", ttl_ms=700, if_etag=first["etag"])
    assert versions(server, "k") == [2, 1]
    until(lambda: server.request("GET", of("k"))[0] == 404, "its time is over")
    assert is_gone(server, "k") and listed(server) == ["stays"]
    assert told(server, "k", if_version=2) == (409, "version_mismatch")
    assert put(server, "k", "3", if_absent=True)["version"] == 1 and versions(server, "k") == [1]
    assert "expires_at_ms" not in get(server, "stays")
    # Time goes on while the server is down.
    put(server, "down", "1", ttl_ms=1_000)
    server.kill()
    time.sleep(1.1)
    server.start()
    assert is_gone(server, "down") and listed(server) == ["k", "stays"]


def test_a_repeat_writes_once(server):
    body = {"request_id": "r", "attributes": {"a": "b"}}
    first = put(server, "k", "1", **body, if_absent=True)
    assert put(server, "k", "1", **body, if_absent=True) == first, "although there is a document now"
    for other in ({"request_id": "s"}, {"attributes": {"a": "c"}}, {"content_type": "x/y"}):
        assert told(server, "k", **{"content": "1", **body, "if_absent": True, **other})[0] == 409
    assert put(server, "j", "1", **body, if_absent=True)["version"] == 1, "another key"
    second = put(server, "k", "2", request_id="s", if_version=1)
    server.kill()
    server.start()
    assert put(server, "k", "2", request_id="s", if_version=1) == second
    assert get(server, "k")["version"] == 2
    # The version that was written first is not the current one any more.
    assert told(server, "k", content="1", **body, if_absent=True) == (409, "version_mismatch")
    headers = {"Idempotency_Key": "r", "If_None_Match": "*"}
    first = put_raw(server, "raw", b"1", **headers)
    again = put_raw(server, "raw", b"1", **headers)
    assert (first.status, first.body, first.etag) == (201, again.body, again.etag)
    assert put_raw(server, "raw", b"2", **headers).error == (412, "version_mismatch")


def test_who_repeats_a_write_that_was_cut_writes_once(server):
    address = server.url.split("://")[1]
    for at in range(40):
        body = json.dumps({"content": str(at), "request_id": f"r{at}", **({"if_version": at} if at else {})})
        cut = http.client.HTTPConnection(address, timeout=20)
        cut.request("PUT", of("k"), body.encode(), JSON)
        time.sleep(random.random() / 500)
        cut.close()
        assert server.call("PUT", of("k"), json.loads(body))["version"] == at + 1
    assert get(server, "k")["version"] == 40


def test_a_token_writes_only_while_its_lock_is_held(server):
    lost = (409, "lease_lost")
    held = server.call("POST", LOCKS, {"keys": ["k", "j"], "ttl_ms": 600_000})["token"]
    put(server, "k", "1", token=held)
    put(server, "j", "1", token=held, if_absent=True)
    assert put_raw(server, "k", b"2", Sluice_Lock_Token=held).status == 200
    assert told(server, "other", token=held) == lost, "of another key"
    elsewhere = error(server, "PUT", of("k", namespace="default"), {"content": "x", "token": "0" * 32})
    assert (elsewhere["status"], elsewhere["code"]) == lost, "of nobody"
    assert told(server, "k", token=held, if_version=1) == (409, "version_mismatch")
    # Without a token the lock is not asked for.
    put(server, "k", "3")
    release(server, held)
    assert told(server, "k", token=held) == lost
    assert put_raw(server, "k", b"x", Sluice_Lock_Token=held).error == lost
    assert error(server, "DELETE", of("k", f"?token={held}"))["code"] == "lease_lost"
    short = acquire(server, "k", ttl_ms=300)
    until(lambda: server.request("PUT", of("k"), json.dumps({"content": "4", "token": short}).encode(), JSON)[0] == 409)
    assert told(server, "k", token=short) == lost, "its time is over"
    broken = acquire(server, "k")
    server.call("DELETE", f"{LOCKS}/k")
    following = acquire(server, "k", ttl_ms=600_000)
    assert told(server, "k", token=broken) == lost
    server.kill()
    server.start()
    put(server, "k", "5", token=following)
    delete(server, "k", f"?token={following}")
    assert is_gone(server, "k")


def test_revisions_and_fencing_tokens_are_of_one_sequence(server):
    def fence():
        grant = server.call("POST", LOCKS, {"key": "k"})
        release(server, grant["token"])
        return grant["fencing_token"]

    assert grow([put(server, "k")["etag"], fence(), put(server, "k")["etag"], fence()])


def test_a_condition_that_is_blank_is_refused_and_not_left_out(server):
    put(server, "k", "1")
    for query in ("?if_etag=", "?if_version=", "?token="):
        assert error(server, "DELETE", of("k", query))["status"] == 400, query
    for flag in ("--if-etag", "--token"):
        assert server.sluice("doc", "delete", "k", flag, "").returncode == 2, flag
    assert get(server, "k")["version"] == 1


def test_a_repeat_is_known_in_whatever_order_its_attributes_come(server):
    def write(*names):
        headers = {f"Sluice-Attribute-{name}": name for name in names}
        status, answer = server.request("PUT", of("k", "/raw"), b"x", {**headers, "Idempotency-Key": "one"})
        return status, answer

    first = write("a", "b", "c")
    assert first[0] == 201 and write("c", "a", "b") == first


def test_a_part_of_a_content_is_not_written_as_the_whole(server):
    put(server, "k", "0123456789")
    status, _ = server.request("PUT", of("k", "/raw"), b"5", {"Content-Range": "bytes 5-5/10"})
    assert status == 400 and get(server, "k")["content"] == "0123456789"


def test_too_many_attributes_are_refused_before_they_are_compared(server):
    many = {f"name-{number}": "" for number in range(300_000)}
    assert told(server, "k", attributes=many) == (400, "invalid_argument")
    put(server, "k", "x", attributes={f"name-{number}": "" for number in range(64)})

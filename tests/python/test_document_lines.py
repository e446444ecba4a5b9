"""Pages of document queries as lines."""

import json
import subprocess
import urllib.request

QUERY = "/v1/documents/query"
LINES = "application/x-ndjson"


def page(server, accept: str, **asks) -> tuple[dict, str]:
    """Headers and body of a page."""
    headers = {"Content-Type": "application/json", "Accept": accept}
    request = urllib.request.Request(server.url + QUERY, json.dumps(asks).encode(), headers, method="POST")
    with urllib.request.urlopen(request, timeout=20) as answer:
        return dict(answer.headers.items()), answer.read().decode()


def test_a_page_is_a_document_a_line(server):
    for at in range(25):
        content = json.dumps({"at": at, "text": "a\n],[{" * (at % 3)})
        server.call("PUT", f"/v1/documents/k{at:02}", {"content": content})
    asks = {"where": {"/at": {"ge": 3}}, "sort": [{"pointer": "/at", "descending": True}], "limit": 10}
    found, after = [], {}
    while True:
        headers, lines = page(server, LINES, **asks, **after)
        whole = json.loads(page(server, "application/json", **asks, **after)[1])
        headers = {name.lower(): value for name, value in headers.items()}
        assert headers["content-type"] == LINES and headers["sluice-scanned"] == str(whole["scanned"])
        assert [json.loads(line) for line in lines.splitlines()] == whole["documents"]
        assert lines == "" or lines.endswith("\n")
        found += [document["key"] for document in whole["documents"]]
        assert headers.get("sluice-next") == whole.get("next")
        if "next" not in whole:
            break
        after = {"after": headers["sluice-next"]}
    assert found == [f"k{at:02}" for at in range(24, 2, -1)]


def test_json_stays_the_default_and_errors_are_json(server):
    server.call("PUT", "/v1/documents/k", {"content": "{}"})
    for accept in ("*/*", "application/json", f"{LINES};q=0.1, application/json"):
        headers, body = page(server, accept)
        types = [value for name, value in headers.items() if name.lower() == "content-type"]
        assert types[0].startswith("application/json")
        assert [document["key"] for document in json.loads(body)["documents"]] == ["k"]
    assert page(server, LINES, prefix="none")[1] == ""
    headers = {"Content-Type": "application/json", "Accept": LINES}
    status, told = server.request("POST", QUERY, b'{"limit":0}', headers)
    assert status == 400 and json.loads(told)["error"]["code"]


def test_curl_gives_lines(server):
    server.call("PUT", "/v1/documents/a", {"content": '{"n":1}'})
    server.call("PUT", "/v1/documents/b", {"content": '{"n":2}'})
    headers = ["-H", f"Accept: {LINES}", "-H", "Content-Type: application/json"]
    command = ["curl", "-s", *headers, "-d", "{}", server.url + QUERY]
    lines = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.splitlines()
    assert [json.loads(json.loads(line)["content"])["n"] for line in lines] == [1, 2]

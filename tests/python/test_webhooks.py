"""Messages that a server pushes to an HTTPS endpoint."""

import base64
import http.server
import json
import re
import ssl
import subprocess
import threading
import time

import pytest
from conftest import ROOT, Server, binary, until
from test_cluster_across import Three
from test_cluster_join import begun, machines  # noqa: F401

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + base64.b64encode(bytes(32)).decode()
HOOKS = "/v1/queues/hooks"


def documented() -> dict:
    """What the Python code of the documentation defines."""
    found = {}
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs/webhooks.md").read_text(), flags=re.S)
    exec(code.group(1), found)
    return found


verify = documented()["verify"]


class Endpoint:
    """An HTTPS server with a certificate of a CA of its own. `status` is what it answers, after `takes_s`."""

    def __init__(self, directory):
        tls = directory / "endpoint-tls"
        for made in (["ca"], ["server", "127.0.0.1"]):
            subprocess.run([binary(), "cert", *made, "--dir", tls], check=True, capture_output=True)
        self.ca = tls / "ca.pem"
        self.status, self.headers, self.requests, self.takes_s = 200, {}, [], 0
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                endpoint.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
                time.sleep(endpoint.takes_s)
                answer = b"told by the endpoint"
                self.send_response(endpoint.status)
                for name, value in {**endpoint.headers, "content-length": str(len(answer))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls / "server.pem", tls / "server.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}/hooks"

    def settings(self) -> list:
        return ["--push-ca", str(self.ca), "--push-allowed-addresses", "127.0.0.0/8"]

    def environment(self) -> dict:
        return {"SLUICE_PUSH_CA": str(self.ca), "SLUICE_PUSH_ALLOWED_ADDRESSES": "127.0.0.0/8"}

    def bodies(self) -> list:
        return [body for _, body in self.requests]


class Pushing(Server):
    """A server that may push to this machine."""

    def __init__(self, directory, *settings):
        self.settings = settings
        super().__init__(directory)

    def start(self, *arguments):
        log = open(self.directory / "log", "a")
        self.url = json.loads(self.spawn(*self.settings, *arguments, log=log))["url"]


@pytest.fixture
def endpoint(tmp_path):
    opened = Endpoint(tmp_path)
    yield opened
    opened.server.shutdown()


@pytest.fixture
def pushing(tmp_path, endpoint):
    started = Pushing(tmp_path, *endpoint.settings())
    yield started
    if started.process.poll() is None:
        assert started.stop() == 0


def hooks(server, endpoint, **settings):
    return server.call("PUT", HOOKS, {"push_url": endpoint.url, "push_secrets": [SECRET], **settings})


def send(server, payload, **message):
    return server.call("POST", f"{HOOKS}/messages", {"payload": payload, **message})["id"]


def refused(server, settings) -> str:
    """What the error says."""
    status, answer = server.request("PUT", HOOKS, json.dumps(settings).encode(), {"content-type": "application/json"})
    assert status == 400, answer
    return json.loads(answer)["error"]["message"]


def totals(server) -> dict:
    return server.call("GET", HOOKS)["totals"]


def pushes(server, count) -> list:
    """The latest pushes, as soon as there are so many: their entries follow their settlements."""
    listed = []

    def are_there() -> bool:
        listed[:] = server.call("GET", f"{HOOKS}/pushes")["pushes"]
        return len(listed) >= count

    until(are_there, f"{count} pushes are listed")
    return listed


def test_a_message_is_pushed_and_verified_as_the_documentation_says(pushing, endpoint):
    hooks(pushing, endpoint, push_headers={"x-env": "test"})
    id = send(pushing, '{"order":7}', content_type="application/json", headers={"traceparent": "00-a-b-01"})
    until(lambda: totals(pushing)["acked"] == 1, "it is acked")
    ((headers, body),) = endpoint.requests
    assert body == b'{"order":7}' and headers["webhook-id"] == id
    assert verify(SECRET, headers, body)
    assert not verify(OTHER, headers, body) and not verify(SECRET, headers, body + b" ")
    assert not verify(SECRET, {**headers, "webhook-signature": "v1,\u00e4"}, body)
    told = {name: headers[name] for name in ("content-type", "traceparent", "x-env", "sluice-attempt")}
    assert told == {
        "content-type": "application/json", "traceparent": "00-a-b-01", "x-env": "test", "sluice-attempt": "1"
    }
    (push,) = pushes(pushing, 1)
    assert (push["id"], push["attempt"], push["outcome"], push["status"]) == (id, 1, "acked", 200)
    listed = pushing.sluice("queue", "pushes", "hooks")
    assert id in listed.stdout and "acked" in listed.stdout, listed
    metrics = pushing.request("GET", "/metrics")[1].decode()
    assert 'sluice_pushes_total{outcome="acked"} 1' in metrics and "sluice_push_queues 1" in metrics


def test_secrets_are_told_by_nobody_and_rotated_by_their_fingerprints(pushing, endpoint, tmp_path):
    shown = hooks(pushing, endpoint)["settings"]
    (fingerprint,) = shown["push_secrets"]
    assert fingerprint.startswith("sha256:")
    # What is shown can be set again.
    assert pushing.call("PATCH", HOOKS, shown)["settings"] == shown
    secrets = tmp_path / "secrets"
    secrets.write_text(f"{OTHER}\n{fingerprint}\n")
    done = pushing.sluice("queue", "set", "hooks", "--push-secrets-file", str(secrets))
    assert done.returncode == 0 and fingerprint in done.stdout, done

    def signed_with_both() -> bool:
        send(pushing, "both")
        until(lambda: totals(pushing)["acked"] == totals(pushing)["sent"], "it is acked")
        headers, body = endpoint.requests[-1]
        return verify(SECRET, headers, body) and verify(OTHER, headers, body)

    # A change counts within a second.
    until(signed_with_both, "it is signed with both secrets")
    assert len(endpoint.requests[-1][0]["webhook-signature"].split(" ")) == 2
    pushing.call("PUT", "/v1/queue-defaults/new.*", {"push_secrets": [SECRET]})
    told = [pushing.request("GET", path)[1].decode() for path in (HOOKS, "/v1/queue-defaults", "/metrics")]
    told.append(refused(pushing, {"push_secrets": [SECRET, "whsec_short"]}))
    told += [done.stdout, (tmp_path / "log").read_text()]
    for text in told:
        assert SECRET[6:20] not in text and OTHER[6:20] not in text, text
    assert "no secret with the fingerprint" in refused(pushing, {"push_secrets": ["sha256:0000000000000000"]})


def test_what_fails_follows_the_rules_of_the_queue(pushing, endpoint):
    backoff = {"kind": "fixed", "base_ms": 10, "cap_ms": 10}
    hooks(pushing, endpoint, max_attempts=2, backoff=backoff, dead_letter_queue="buried")
    endpoint.status = 500
    id = send(pushing, "m")
    until(lambda: totals(pushing)["died"] == 1, "it is a dead letter")
    listed = pushes(pushing, 2)
    assert [(push["attempt"], push["outcome"]) for push in listed] == [(2, "failed"), (1, "failed")]
    assert {push["status"] for push in listed} == {500}
    assert pushing.call("GET", f"{HOOKS}/pushes?limit=1")["pushes"] == listed[:1]
    message = pushing.call("GET", f"/v1/messages/{id}")
    assert message["queue"] == "buried"
    assert "told by the endpoint" in json.dumps(message), message
    assert len({headers["webhook-id"] for headers, _ in endpoint.requests}) == 1


def test_a_certificate_of_an_unknown_ca_is_refused(tmp_path, endpoint):
    server = Pushing(tmp_path, "--push-allowed-addresses", "127.0.0.0/8")
    hooks(server, endpoint, max_attempts=1)
    send(server, "m")
    until(lambda: totals(server)["died"] == 1, "it is a dead letter")
    (push,) = pushes(server, 1)
    assert "certificate" in push["error"] and "status" not in push and not endpoint.requests
    assert server.stop() == 0


def test_addresses_of_the_own_network_are_refused_unless_they_are_opened(server, endpoint):
    for url, why in (
        (endpoint.url, "is refused (loopback)"),
        ("https://169.254.169.254/latest", "metadata services"),
        ("http://example.com/", "expected https://"),
        ("https://me:secret@example.com/", "no name and password"),
        ("nothing", "expected an address such as"),
    ):
        assert why in refused(server, {"push_url": url})
    # A name is looked at when it is used.
    server.call("PUT", HOOKS, {"push_url": endpoint.url.replace("127.0.0.1", "localhost"), "max_attempts": 1})
    send(server, "m")
    until(lambda: totals(server)["died"] == 1, "it is a dead letter")
    (push,) = pushes(server, 1)
    assert "is refused (" in push["error"] and not endpoint.requests
    assert "authorization cannot be set" in refused(server, {"push_headers": {"authorization": "x"}})


def test_a_message_is_pushed_again_after_the_server_was_killed(pushing, endpoint):
    hooks(pushing, endpoint, push_paused=True)
    for number in range(50):
        send(pushing, f"{number}")
    pushing.call("PATCH", HOOKS, {"push_paused": False, "push_rate": 40})
    until(lambda: len(endpoint.requests) > 5, "some are pushed")
    pushing.kill()
    pushing.start()
    until(lambda: totals(pushing)["acked"] >= 45, "the rest is pushed")
    until(lambda: len(set(endpoint.bodies())) == 50, "each came")


def test_a_server_that_stops_begins_no_push_and_gives_back_what_waits(pushing, endpoint):
    hooks(pushing, endpoint, push_concurrency=2, push_paused=True)
    for number in range(20):
        send(pushing, f"{number}")
    endpoint.takes_s = 1
    pushing.call("PATCH", HOOKS, {"push_paused": False})
    until(lambda: len(endpoint.requests) == 2, "two are pushed at a time")
    assert pushing.stop() == 0
    begun_before = len(endpoint.requests)
    assert begun_before <= 4
    endpoint.takes_s = 0
    pushing.start()
    until(lambda: totals(pushing)["acked"] == 20, "the rest is pushed")
    assert len(endpoint.requests) == 20, "each was pushed once"


def test_an_endpoint_that_is_gone_pauses_its_queue_which_the_audit_log_tells(machines, endpoint):  # noqa: F811
    def make(name):
        machine = machines(name)
        machine.env |= endpoint.environment()
        return machine

    one = begun(make)
    assert one.request("PUT", HOOKS, {"push_url": endpoint.url, "push_secrets": [SECRET]})[0] == 201
    endpoint.status = 410
    one.request("POST", f"{HOOKS}/messages", {"payload": "m"})
    until(lambda: one.request("GET", HOOKS)[1]["settings"].get("push_paused"), "it is paused")
    assert one.request("GET", HOOKS)[1]["totals"]["died"] == 0

    def noted() -> bool:
        entries = one.run("audit", "--json").stdout
        assert SECRET[6:20] not in entries
        return "push_gone" in entries

    until(noted, "the audit log tells it")
    assert "push_gone" in one.run("audit").stdout
    endpoint.status = 204
    assert one.run("queue", "set", "hooks", "--push-paused=false").returncode == 0
    until(lambda: one.request("GET", HOOKS)[1]["totals"]["acked"] == 1, "it is pushed again")


def test_pushes_go_on_with_another_leader(machines, endpoint):  # noqa: F811
    def make(name):
        machine = machines(name)
        machine.env |= endpoint.environment()
        return machine

    cluster = Three(make)

    def ask(method, path, body=None):
        answers = []

        def answered() -> bool:
            answers[:] = cluster.ask(method, path, body)
            return answers[0] in (200, 201)

        until(answered, f"{method} {path} is answered")
        return answers[1]

    ask("PUT", HOOKS, {"push_url": endpoint.url, "push_secrets": [SECRET], "push_rate": 40})
    payloads = {f"{number}".encode() for number in range(120)}
    ask("POST", f"{HOOKS}/messages", {"messages": [{"payload": payload.decode()} for payload in payloads]})
    until(lambda: len(endpoint.requests) > 5, "some are pushed")
    killed = cluster.leader_of(0)
    killed.kill()
    time.sleep(1)
    until(lambda: cluster.leader_of(0) is not killed, "another node leads")
    until(lambda: set(endpoint.bodies()) == payloads, "each came")
    # Those that were on their way when the leader was lost come again; nobody pushes them all twice.
    assert len(endpoint.requests) < 2 * len(payloads)
    killed.start()


def test_a_leader_that_hands_over_settles_its_pushes_and_begins_no_other(machines, endpoint):  # noqa: F811
    def make(name):
        machine = machines(name)
        machine.env |= endpoint.environment()
        return machine

    cluster = Three(make)
    cluster.let_lead(0, cluster.nodes[0])
    settings = {"push_url": endpoint.url, "push_concurrency": 8, "push_paused": True}
    assert cluster.ask("PUT", HOOKS, settings)[0] == 201
    messages = [{"payload": f"{number}"} for number in range(80)]
    assert cluster.ask("POST", f"{HOOKS}/messages", {"messages": messages})[0] == 201
    endpoint.takes_s = 1
    assert cluster.ask("PATCH", HOOKS, {"push_paused": False})[0] == 200
    until(lambda: len(endpoint.requests) >= 12, "the second eight are on their way")
    cluster.let_lead(0, cluster.nodes[1])
    until(lambda: len(set(endpoint.bodies())) == 80, "each came")

    def acked() -> bool:
        status, queue = cluster.ask("GET", HOOKS)
        return status == 200 and queue["totals"]["acked"] == 80

    until(acked, "each is settled")
    twice = len(endpoint.requests) - 80
    assert twice == 0, f"{twice} were pushed twice"

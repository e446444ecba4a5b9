"""Traces, metrics and the log, as a collector of OTLP gets them."""

import json
import re
import time

import pytest
from collector import Collector, attributes
from conftest import ROOT, Server, until

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def collector():
    opened = Collector()
    yield opened
    opened.close()


class Telling(Server):
    """A server with telemetry."""

    def __init__(self, directory, *settings):
        self.settings = settings
        super().__init__(directory)

    def start(self, *arguments):
        log = open(self.directory / "log", "a")
        self.url = json.loads(self.spawn(*self.settings, *arguments, log=log))["url"]


@pytest.fixture
def telling(tmp_path):
    started = []

    def start(url, *settings) -> Telling:
        started.append(Telling(tmp_path, "--telemetry-endpoint", url, *settings))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            assert server.stop() == 0


def traced(flag: str) -> dict:
    return {"traceparent": f"00-{TRACE}-{SPAN}-{flag}"}


def send(server, queue="mail", **message) -> str:
    return server.call("POST", f"/v1/queues/{queue}/messages", {"payload": "x", **message})["id"]


def receive(server, queue="mail", **asked) -> dict:
    (message,) = server.call("POST", f"/v1/queues/{queue}/receive", {"wait_ms": 5_000, **asked})["messages"]
    return message


def by_phase(spans) -> dict:
    """Spans by the first word of their names, of which each is there once."""
    found = {span.name.split()[0]: span for span in spans}
    assert len(found) == len(spans), [span.name for span in spans]
    return found


def test_the_life_of_a_message_is_a_trace(collector, telling):
    server = telling(collector.url, "--telemetry-sampling", "0%")
    send(server, headers=traced("00"))
    send(server)
    sent = send(server, headers=traced("01"))
    for _ in range(3):
        message = receive(server)
        time.sleep(0.05)
        server.call("POST", "/v1/ack", {"receipt": message["receipt"]})
    until(lambda: len(collector.spans()) >= 4, "spans come")
    time.sleep(1.5)
    spans = by_phase(collector.spans())
    assert set(spans) == {"send", "wait", "work", "settle"}
    for span in spans.values():
        assert span.trace_id.hex() == TRACE and span.name.endswith(" mail")
        described = attributes(span.attributes)
        assert described["messaging.message.id"] == sent
        assert (described["messaging.system"], described["messaging.destination.name"]) == ("sluice", "mail")
        assert span.start_time_unix_nano <= span.end_time_unix_nano
    assert len({span.span_id for span in spans.values()}) == 4
    assert {spans[name].parent_span_id.hex() for name in ("send", "wait", "work")} == {SPAN}
    assert spans["settle"].parent_span_id == spans["work"].span_id
    work = spans["work"]
    assert work.end_time_unix_nano - work.start_time_unix_nano >= 50_000_000
    assert attributes(work.attributes) | {"sluice.attempt": 1, "sluice.outcome": "ack"} == attributes(work.attributes)
    # Work begins when the wait ends.
    assert work.start_time_unix_nano == spans["wait"].end_time_unix_nano
    resource = collector.requests[-1][1]
    (of,) = getattr(resource, "resource_spans", None) or getattr(resource, "resource_logs", None)
    described = attributes(of.resource.attributes)
    assert described["service.name"] == "sluice" and described["service.instance.id"] in server.url


def test_messages_without_a_trace_begin_one_and_failures_are_told(collector, telling):
    server = telling(collector.url, "--telemetry-sampling", "100%")
    sent = send(server, backoff={"kind": "fixed", "base_ms": 1})
    first = receive(server)
    server.call("POST", "/v1/nack", {"receipt": first["receipt"], "error": "no route <b>"})
    second = receive(server)
    server.call("POST", "/v1/ack", {"receipt": second["receipt"]})
    until(lambda: len(collector.spans()) >= 6, "spans come")
    spans = collector.spans()
    assert len({span.trace_id for span in spans}) == 1
    root = next(span for span in spans if span.name == "send mail")
    assert root.parent_span_id == b"" and attributes(root.attributes)["messaging.message.id"] == sent
    works = [span for span in spans if span.name == "work mail"]
    assert {span.parent_span_id for span in works} == {root.span_id}
    by_attempt = {attributes(span.attributes)["sluice.attempt"]: span for span in works}
    assert (by_attempt[1].status.code, by_attempt[1].status.message) == (2, "no route <b>")
    assert by_attempt[2].status.code == 0
    assert len([span for span in spans if span.name == "wait mail"]) == 1


def test_deliveries_over_sessions_are_traced_as_well(collector, telling):
    server = telling(collector.url, "--telemetry-sampling", "0%")
    header = f"traceparent: {traced('01')['traceparent']}"
    assert server.sluice("send", "mail", "x", "--header", header).returncode == 0
    command = ["sh", "-c", "echo bad >&2; exit 65"]
    done = server.sluice("work", "mail", "--transport", "session", "--until-empty", "--", *command)
    assert done.returncode == 0, done.stderr
    until(lambda: len(collector.spans()) >= 4, "spans come")
    spans = by_phase(collector.spans())
    assert {span.trace_id.hex() for span in spans.values()} == {TRACE}
    assert (spans["work"].status.code, spans["work"].status.message) == (2, "exit code 65: bad")
    assert attributes(spans["settle"].attributes)["sluice.outcome"] == "reject"


def test_one_in_a_hundred_is_sampled_and_keeps_its_trace_over_a_restart(collector, telling):
    server = telling(collector.url)
    ids = []
    for _ in range(20):
        messages = [{"payload": "x"}] * 1_000
        ids += server.call("POST", "/v1/queues/mail/messages", {"messages": messages})["ids"]
    until(lambda: len(collector.spans()) > 100, "spans come")
    time.sleep(1.5)
    sends = {attributes(span.attributes)["messaging.message.id"]: span for span in collector.spans()}
    assert 150 < len(sends) < 250 and set(sends) <= set(ids)
    assert server.stop() == 0
    server.start()
    server.call("POST", "/v1/queues/mail/receive", {"max": 1_000})
    until(lambda: any(span.name == "wait mail" for span in collector.spans()), "waits come")
    for wait in [span for span in collector.spans() if span.name == "wait mail"]:
        begun = sends[attributes(wait.attributes)["messaging.message.id"]]
        assert (wait.trace_id, wait.parent_span_id) == (begun.trace_id, begun.span_id)


def test_metrics_are_those_of_the_page(collector, telling):
    server = telling(collector.url, "--telemetry-interval", "1s", "--telemetry-headers", "X-Key=a=b")
    send(server)
    until(lambda: "sluice_queue_messages" in collector.metrics(), "metrics come")
    _, page = server.request("GET", "/metrics")
    families = dict(re.findall(r"^# TYPE (\S+) (\S+)", page.decode(), flags=re.M))
    metrics = collector.metrics()
    with_samples = {name for name in families if re.search(rf"^{name}(_count)?[ {{]", page.decode(), flags=re.M)}
    assert set(metrics) <= with_samples and len(metrics) > 30
    for name, metric in metrics.items():
        kind = {"gauge": "gauge", "counter": "sum", "histogram": "histogram"}[families[name]]
        assert metric.WhichOneof("data") == kind and metric.description, name
    points = metrics["sluice_queue_messages"].gauge.data_points
    states = {attributes(point.attributes)["state"]: point.as_int for point in points}
    assert states["ready"] == 1
    latency = metrics["sluice_http_request_seconds"].histogram.data_points[0]
    assert sum(latency.bucket_counts) == latency.count
    assert len(latency.bucket_counts) == len(latency.explicit_bounds) + 1
    assert metrics["sluice_shard_records_total"].sum.is_monotonic
    assert all(headers["x-key"] == "a=b" for headers in collector.headers)
    until(lambda: 'sluice_telemetry_sent_total{signal="metrics"}' in server.request("GET", "/metrics")[1].decode())


def test_the_log_is_told(collector, telling):
    server = telling(collector.url, "--log-level", "debug")
    server.request("GET", "/v1/none")
    until(lambda: any(event.body.string_value == "GET /v1/none" for event in collector.logs()), "events come")
    event = next(event for event in collector.logs() if event.body.string_value == "GET /v1/none")
    assert (event.severity_text, attributes(event.attributes)["status"]) == ("DEBUG", 404)
    targets = {attributes(event.attributes)["target"] for event in collector.logs()}
    assert not [target for target in targets if target.startswith("sluice_telemetry")]


@pytest.mark.parametrize("behave", [Collector.hanging, Collector.busy, None])
def test_the_server_goes_on_without_a_collector(telling, behave):
    """One that hangs, one that is busy, and one that is not there."""
    collector = Collector(behave)
    if behave is None:
        collector.close()
    server = telling(collector.url, "--telemetry-sampling", "100%", "--telemetry-interval", "1s")
    begun = time.monotonic()
    for _ in range(60):
        server.call("POST", "/v1/queues/mail/messages", {"messages": [{"payload": "x"}] * 1_000})
    assert time.monotonic() - begun < 15

    def count(name: str, signal: str) -> int:
        page = server.request("GET", "/metrics")[1].decode()
        return int(re.search(rf'^sluice_telemetry_{name}_total{{signal="{signal}"}} (\d+)', page, flags=re.M)[1])

    # More than the bound is dropped at once.
    assert count("dropped", "traces") > 1_000
    if behave is not Collector.hanging:
        until(lambda: count("failed", "metrics") >= 3, "metrics fail")
    begun = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - begun < 10
    log = (server.directory / "log").read_text()
    assert len(re.findall("telemetry: metrics do not reach", log)) <= 1, log
    if behave is not Collector.hanging:
        assert len(re.findall("telemetry: traces do not reach", log)) == 1, log
        collector.close() if behave else None


def test_its_metrics_are_explained(collector, telling):
    _, page = telling(collector.url).request("GET", "/metrics")
    served = set(re.findall(r"^# TYPE (sluice_telemetry_\S+)", page.decode(), flags=re.M))
    explained = set(re.findall(r"`(sluice_telemetry_\w+)", (ROOT / "docs/operations.md").read_text()))
    assert served == explained and len(served) == 3


def test_settings_that_make_no_sense_are_refused(tmp_path, server):
    for settings, told in [
        (["--telemetry-endpoint", "localhost:4317"], "expected http://HOST:PORT"),
        (["--telemetry-endpoint", "http://a:b@localhost"], "no name, password or query"),
        (["--telemetry-sampling", "2"], "expected a percentage"),
        (["--telemetry-signals", "spans"], "expected some of traces, metrics and logs"),
        (["--telemetry-headers", "x"], "expected NAME=VALUE"),
        (["--telemetry-ca", "x.pem"], "telemetry.endpoint is no https:// address"),
        (["--telemetry-endpoint", "https://localhost", "--telemetry-ca", "none.pem"], "cannot read none.pem"),
    ]:
        done = server.sluice("serve", "--memory", "--listen", "127.0.0.1:0", *settings)
        assert done.returncode == 2 and told in done.stderr, (settings, done.stderr)

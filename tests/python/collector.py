"""A small collector of OTLP over HTTP, which keeps what it is sent."""

import http.server
import threading
import time

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
}


def attributes(of) -> dict:
    """Names and values."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in of}


class Collector:
    """Listens until it is closed. `behave(handler)` answers a request; as it stands, with 200."""

    def __init__(self, behave=None):
        self.requests, self.headers = [], []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                assert self.headers["content-type"] == "application/x-protobuf"
                collector.headers.append(dict(self.headers))
                collector.requests.append((self.path, KINDS[self.path].FromString(body)))
                (behave or Collector.well)(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    @staticmethod
    def well(handler):
        handler.send_response(200)
        handler.send_header("content-length", "0")
        handler.end_headers()

    @staticmethod
    def hanging(handler):
        time.sleep(60)

    @staticmethod
    def busy(handler):
        handler.send_response(503)
        handler.send_header("content-length", "0")
        handler.end_headers()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def spans(self) -> list:
        """All spans so far."""
        sent = [request for path, request in list(self.requests) if path == "/v1/traces"]
        return [span for one in sent for of in one.resource_spans for scope in of.scope_spans for span in scope.spans]

    def metrics(self) -> dict:
        """The metrics of the latest export, by their names."""
        sent = [request for path, request in list(self.requests) if path == "/v1/metrics"]
        if not sent:
            return {}
        scopes = [scope for of in sent[-1].resource_metrics for scope in of.scope_metrics]
        return {one.name: one for scope in scopes for one in scope.metrics}

    def logs(self) -> list:
        """All events of the log so far."""
        sent = [request for path, request in list(self.requests) if path == "/v1/logs"]
        scopes = [scope for request in sent for of in request.resource_logs for scope in of.scope_logs]
        return [one for scope in scopes for one in scope.log_records]

"""A connection of HTTP/2 whose every frame is the test's own, over TLS: `h2` keeps the books."""

import contextlib
import dataclasses
import socket

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes, Settings
from hpack import Encoder
from hyperframe.frame import ContinuationFrame, HeadersFrame


@dataclasses.dataclass
class Answer:
    """What has come on a stream so far."""

    interim: list = dataclasses.field(default_factory=list)
    status: int = 0
    headers: dict = dataclasses.field(default_factory=dict)
    body: bytearray = dataclasses.field(default_factory=bytearray)
    trailers: dict | None = None
    ended: bool = False
    reset: int | None = None

    @property
    def over(self) -> bool:
        return self.ended or self.reset is not None


class Raw:
    """`credit`: whether what comes is given back as window at once."""

    def __init__(self, stack, credit: bool = True, settings: dict[SettingCodes, int] | None = None):
        tcp = socket.create_connection(("localhost", stack.port), timeout=20)
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = stack.context().wrap_socket(tcp, server_hostname="localhost")
        assert self.socket.selected_alpn_protocol() == "h2"
        # Wrong requests are some of the tests' own, and are not to be mended on the way.
        loose = {"validate_outbound_headers": False, "normalize_outbound_headers": False}
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8", **loose))
        self.authority = f"localhost:{stack.port}"
        self.credit = credit
        self.answers: dict[int, Answer] = {}
        # Codes and last streams of GOAWAY frames.
        self.closing: list[tuple[int, int]] = []
        self.pongs = 0
        # Whether our settings hold, and theirs.
        self.settled = self.greeted = False
        self.h2.local_settings = Settings(client=True, initial_values=settings or {})
        self.h2.initiate_connection()
        self.flush()
        self.until(lambda: self.settled and self.greeted)

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def begin(self, path: str, method: str = "GET", end: bool = True, more=()) -> int:
        """Sends the head of a request; its stream."""
        stream = self.h2.get_next_available_stream_id()
        self.answers[stream] = Answer()
        pseudo = [(":method", method), (":scheme", "https"), (":authority", self.authority), (":path", path)]
        fields = [field for field in more if field[0].startswith(":")] + [
            field for field in more if not field[0].startswith(":")
        ]
        self.h2.send_headers(stream, [*pseudo, *fields], end_stream=end)
        self.flush()
        return stream

    def send(self, stream: int, body: bytes, end: bool = False):
        """Sends a piece of a body, as the windows open."""
        while body:
            self.until(lambda: self.answers[stream].over or self.h2.local_flow_control_window(stream) > 0)
            if self.answers[stream].over:
                return
            size = min(len(body), self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            self.h2.send_data(stream, body[:size], end_stream=end and size == len(body))
            self.flush()
            body = body[size:]

    def end(self, stream: int):
        """Ends a request."""
        self.h2.end_stream(stream)
        self.flush()

    def open_by(self, step: int, stream: int):
        """Opens the windows of `step` bytes again each time that they are closed, until the answer is whole."""
        while not self.answers[stream].over:
            window = self.h2.remote_flow_control_window(stream)
            assert 0 < window <= step
            self.until(lambda: self.h2.remote_flow_control_window(stream) == 0 or self.answers[stream].over)
            if not self.answers[stream].over:
                for place in (None, stream):
                    self.h2.increment_flow_control_window(step, place)
                self.flush()

    def wait(self, stream: int) -> Answer:
        """The whole answer."""
        self.until(lambda: self.answers[stream].over)
        return self.answers[stream]

    def ask(self, path: str, body: bytes | None = None, **more) -> Answer:
        stream = self.begin(path, method="GET" if body is None else "POST", end=not body, **more)
        if body:
            self.send(stream, body, end=True)
        return self.wait(stream)

    def until(self, reached):
        """Takes what comes, until then; the socket's time limit ends a test that waits in vain."""
        while not reached():
            assert self.take(), f"the connection has ended: {self.closing}"

    def take(self) -> bool:
        """Takes what comes next; whether anything did."""
        received = self.socket.recv(1 << 16)
        for event in self.h2.receive_data(received) if received else []:
            self.note(event)
        self.flush()
        return bool(received)

    def note(self, event):
        answer = self.answers.get(getattr(event, "stream_id", None))
        match event:
            case events.InformationalResponseReceived():
                answer.interim.append(int(dict(event.headers)[":status"]))
            case events.ResponseReceived():
                answer.headers = dict(event.headers)
                answer.status = int(answer.headers[":status"])
            case events.DataReceived():
                answer.body += event.data
                if self.credit and event.flow_controlled_length:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case events.TrailersReceived():
                answer.trailers = dict(event.headers)
            case events.StreamEnded():
                answer.ended = True
            case events.StreamReset():
                answer.reset = int(event.error_code)
            case events.ConnectionTerminated():
                self.closing.append((int(event.error_code), event.last_stream_id))
            case events.PingAckReceived():
                self.pongs += 1
            case events.SettingsAcknowledged():
                self.settled = True
            case events.RemoteSettingsChanged():
                self.greeted = True

    def close(self):
        self.socket.close()


def flood_of_continuations(connection: Raw) -> int | None:
    """Sends a header block in 2,000 frames and one; with what the server ends the connection."""
    stream = connection.h2.get_next_available_stream_id()
    piece = Encoder().encode([("x", "y")])
    frames = [HeadersFrame(stream, piece)] + [ContinuationFrame(stream, piece)] * 2_000
    with contextlib.suppress(OSError):  # What is left when the server closes goes nowhere.
        connection.socket.sendall(b"".join(frame.serialize() for frame in frames))
    with contextlib.suppress(OSError):
        while connection.take():
            pass
    return connection.closing[-1][0] if connection.closing else None

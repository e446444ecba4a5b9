"""Python's grpcio, against the gRPC front of `sluice serve`."""

import hashlib
import importlib
import itertools
import pathlib
import queue
import sys
import time

import grpc
import pytest
from grpc_tools import protoc

from conftest import ROOT, begin_to_serve, ended


@pytest.fixture(scope="module")
def contract(tmp_path_factory):
    """The modules that protoc makes of the contract: `contract("session_pb2")`."""
    folder = tmp_path_factory.mktemp("contract")
    files = sorted(str(path) for path in (ROOT / "proto" / "sluice" / "v1").glob("*.proto"))
    outputs = [f"--python_out={folder}", f"--grpc_python_out={folder}"]
    assert protoc.main(["protoc", f"-I{ROOT / 'proto'}", *outputs, *files]) == 0
    sys.path.insert(0, str(folder))
    yield lambda module: importlib.import_module(f"sluice.v1.{module}")
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def channel(server):
    trusted = grpc.ssl_channel_credentials(pathlib.Path(server.ca).read_bytes())
    with grpc.secure_channel(f"localhost:{server.port}", trusted) as channel:
        yield channel


def test_calls(contract, channel):
    messages, common = contract("messages_pb2"), contract("common_pb2")
    stub = contract("messages_pb2_grpc").MessagesStub(channel)
    payload = bytes(range(256)) * 100
    send = messages.SendRequest(queue="calls", messages=[common.Message(payload=payload) for _ in range(3)])
    ids = stub.Send(send, timeout=20).ids
    assert len(ids) == 3
    receive = messages.ReceiveRequest(queues=[messages.WeightedQueue(name="calls")], max=3, wait_ms=5_000)
    got = stub.Receive(receive, timeout=20).messages
    assert [(message.id, message.payload) for message in got] == [(id, payload) for id in ids]
    with pytest.raises(grpc.RpcError) as refused:
        stub.Get(messages.GetMessageRequest(id="nonsense"), timeout=20)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT, refused.value


def test_two_hundred_receives_are_cancelled_and_take_nothing_with_them(contract, channel):
    messages, common = contract("messages_pb2"), contract("common_pb2")
    stub = contract("messages_pb2_grpc").MessagesStub(channel)
    receive = messages.ReceiveRequest(queues=[messages.WeightedQueue(name="cancelled")], wait_ms=20_000)
    for _ in range(200):
        stub.Receive.future(receive).cancel()
    stub.Send(messages.SendRequest(queue="cancelled", messages=[common.Message(payload=b"the first")]), timeout=20)
    got = stub.Receive(receive, timeout=20).messages
    assert [(message.payload, message.attempt) for message in got] == [(b"the first", 1)]


def test_a_session(contract, channel):
    session, common = contract("session_pb2"), contract("common_pb2")
    stub = contract("session_pb2_grpc").SessionsStub(channel)
    frames, numbers = queue.Queue(), iter(range(1, 1_000))

    def tell(**frame):
        frames.put(session.ClientFrame(number=next(numbers), **frame))

    tell(open=session.Open())
    tell(attach=session.Attach(consumer=1, queues=["session"], credit=10))
    payloads = [bytes([number]) * 2_000 for number in range(100)]
    tell(send=session.SendMany(queue="session", messages=[common.Message(payload=payload) for payload in payloads]))
    got = []
    for frame in stub.Session(iter(frames.get, None), timeout=30):
        assert not frame.result.HasField("error"), frame
        delivered = frame.deliveries.messages
        got += [message.payload for message in delivered]
        if delivered:
            tell(settle=session.SettleMany(acks=[message.receipt for message in delivered]))
        if len(got) == len(payloads):
            frames.put(None)
    assert got == payloads


def resident_mib(pid: int) -> int:
    """Memory of a process, in MiB."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmRSS"))


def test_consumers_of_a_session_that_is_not_read_take_no_more_than_fits(contract, tmp_path):
    session, messages, common = contract("session_pb2"), contract("messages_pb2"), contract("common_pb2")
    process, port = begin_to_serve(tmp_path)
    with ended(process), grpc.insecure_channel(f"localhost:{port}") as channel:
        send = contract("messages_pb2_grpc").MessagesStub(channel).Send
        batch = [common.Message(payload=bytes(1_000_000)) for _ in range(3)]
        for _ in range(12):
            send(messages.SendRequest(queue="large", messages=batch), timeout=20)
        frames, numbers = queue.Queue(), itertools.count(1)
        frames.put(session.ClientFrame(number=next(numbers), open=session.Open()))
        for consumer in range(1_000):
            attach = session.Attach(consumer=consumer, queues=["large"], credit=10)
            frames.put(session.ClientFrame(number=next(numbers), attach=attach))
        before = resident_mib(process.pid)
        # Nobody iterates over what comes.
        call = contract("session_pb2_grpc").SessionsStub(channel).Session(iter(frames.get, None))
        most = before
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            most = max(most, resident_mib(process.pid))
            time.sleep(0.02)
        call.cancel()
        frames.put(None)
        assert most - before < 12, f"{before} MiB before, {most} with the session"


def test_an_attachment_comes_and_goes_as_a_stream(contract, channel):
    attachments, documents = contract("attachments_pb2"), contract("documents_pb2")
    contract("documents_pb2_grpc").DocumentsStub(channel).Put(
        documents.PutDocumentRequest(key="k", content=b"x"), timeout=20
    )
    stub = contract("attachments_pb2_grpc").AttachmentsStub(channel)
    content = bytes(range(256)) * 20_000
    chunks = [content[at : at + (1 << 20)] for at in range(0, len(content), 1 << 20)]
    first = attachments.UploadAttachmentRequest(
        key="k", name="f", content_type="a/b", sha256=hashlib.sha256(content).hexdigest()
    )
    messages = [first, *(attachments.UploadAttachmentRequest(content=chunk) for chunk in chunks)]
    written = stub.Upload(iter(messages), timeout=20)
    assert written.version == 1

    def download(**asked):
        head, *pieces = stub.Download(
            attachments.DownloadAttachmentRequest(key="k", name="f", **asked), timeout=20
        )
        return head.attachment, b"".join(piece.content for piece in pieces)

    attachment, whole = download()
    assert whole == content and (attachment.etag, attachment.bytes) == (written.etag, len(content))
    assert download(offset=1_048_570, bytes=12, if_etag=written.etag)[1] == content[1_048_570:1_048_582]
    with pytest.raises(grpc.RpcError) as refused:
        download(if_etag="1")
    assert refused.value.code() == grpc.StatusCode.ABORTED, refused.value
    with pytest.raises(grpc.RpcError) as refused:
        stub.Upload(iter([first, attachments.UploadAttachmentRequest(content=b"other")]), timeout=20)
    assert "digest_mismatch" in str(refused.value.trailing_metadata()), refused.value
    assert not stub.Uploads(attachments.ListUploadsRequest(key="k", name="f"), timeout=20).uploads
    # A caller that cancels leaves nothing, and a reader that stops early holds up nobody.
    waiting = stub.Upload.future(itertools.chain(messages, iter(queue.Queue().get, None)))
    reading = stub.Download(attachments.DownloadAttachmentRequest(key="k", name="f"))
    next(reading)
    waiting.cancel()
    reading.cancel()
    deadline = time.monotonic() + 20
    while stub.Uploads(attachments.ListUploadsRequest(key="k", name="f"), timeout=20).uploads:
        assert time.monotonic() < deadline, "the upload of a caller that has gone away stays"
        time.sleep(0.02)
    assert stub.List(attachments.ListAttachmentsRequest(key="k"), timeout=20).attachments[0].version == 1

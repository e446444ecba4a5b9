"""Python's grpcio, against the gRPC front of `sluice serve`."""

import importlib
import pathlib
import queue
import sys

import grpc
import pytest
from grpc_tools import protoc

from conftest import ROOT


@pytest.fixture(scope="module")
def contract(tmp_path_factory):
    """The modules that protoc makes of the contract: `contract("session_pb2")`."""
    folder = tmp_path_factory.mktemp("contract")
    files = sorted(str(path) for path in (ROOT / "proto" / "sluice" / "v1").glob("*.proto"))
    assert protoc.main(["protoc", f"-I{ROOT / 'proto'}", f"--python_out={folder}", f"--grpc_python_out={folder}", *files]) == 0
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
    # A receive that is left takes nothing with it, and the connection goes on.
    waits = stub.Receive.future(messages.ReceiveRequest(queues=receive.queues, wait_ms=20_000))
    waits.cancel()
    assert len(stub.Send(send, timeout=20).ids) == 3


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

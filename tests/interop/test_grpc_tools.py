"""gRPC's own tools of Python, grpcio-health-checking and grpcio-reflection, against `sluice serve`."""

import pathlib
import sys

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_tools import protoc

from conftest import ROOT, begin_to_serve

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture(scope="module")
def channel(server):
    trusted = grpc.ssl_channel_credentials(pathlib.Path(server.ca).read_bytes())
    with grpc.secure_channel(f"localhost:{server.port}", trusted) as channel:
        yield channel


def test_health(channel):
    stub = health_pb2_grpc.HealthStub(channel)
    for service in ["", "sluice.v1.Messages", "grpc.health.v1.Health"]:
        assert stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=20).status == SERVING
    with pytest.raises(grpc.RpcError) as refused:
        stub.Check(health_pb2.HealthCheckRequest(service="none"), timeout=20)
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND, refused.value
    statuses = stub.List(health_pb2.HealthListRequest(), timeout=20).statuses
    assert {"", "sluice.v1.Locks"} <= set(statuses) and {one.status for one in statuses.values()} == {SERVING}
    unknown = stub.Watch(health_pb2.HealthCheckRequest(service="none"), timeout=20)
    assert next(unknown).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    unknown.cancel()


def test_health_is_watched_until_the_server_stops(tmp_path):
    process, port = begin_to_serve(tmp_path)
    with grpc.insecure_channel(f"localhost:{port}") as channel:
        watched = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=30)
        assert next(watched).status == SERVING
        process.terminate()
        assert [told.status for told in watched] == [NOT_SERVING]
    assert process.wait(40) == 0


def test_a_call_is_made_by_reflection_alone(channel):
    database = ProtoReflectionDescriptorDatabase(channel)
    services = database.get_services()
    assert {"sluice.v1.Messages", "sluice.v1.Sessions", "grpc.health.v1.Health"} <= set(services)
    pool = DescriptorPool(database)
    for service in services:
        for method in pool.FindServiceByName(service).methods:
            assert method.input_type.full_name and method.output_type.full_name
    send = pool.FindServiceByName("sluice.v1.Messages").FindMethodByName("Send")
    request, answer = GetMessageClass(send.input_type), GetMessageClass(send.output_type)
    call = channel.unary_unary(
        "/sluice.v1.Messages/Send",
        request_serializer=request.SerializeToString,
        response_deserializer=answer.FromString,
    )
    message = request(queue="reflected")
    message.messages.add(payload=b"x")
    assert len(call(message, timeout=20).ids) == 1
    with pytest.raises(KeyError):
        pool.FindMessageTypeByName("sluice.v1.None")


def test_the_newer_version_of_reflection_says_the_same(channel, tmp_path):
    contract = ROOT / "crates" / "proto" / "standard"
    outputs = [f"--python_out={tmp_path}", f"--grpc_python_out={tmp_path}"]
    assert protoc.main(["protoc", f"-I{contract}", *outputs, "grpc/reflection/v1/reflection.proto"]) == 0
    # The folder `grpc` is no part of the library of that name.
    sys.path.insert(0, str(tmp_path / "grpc" / "reflection" / "v1"))
    import reflection_pb2

    sys.path.pop(0)
    stream = channel.stream_stream(
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    asked = reflection_pb2.ServerReflectionRequest(list_services="*")
    (answer,) = stream(iter([asked]), timeout=20)
    named = [service.name for service in answer.list_services_response.service]
    assert named == sorted(ProtoReflectionDescriptorDatabase(channel).get_services())
    assert answer.original_request == asked

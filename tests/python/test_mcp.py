"""`sluice mcp`, as a client of the protocol that others have written sees it."""

import contextlib
import json
import subprocess
import time
import urllib.error
import urllib.request

import anyio
import pytest
from conftest import binary, until
from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

POLICY = """
[[rule]]
name = "works"
identities = ["agent"]
role = "consumer"
queues = ["research", "mail"]

[[rule]]
name = "proposes"
identities = ["agent"]
role = "proposer"
queues = ["mail"]
"""


class Guarded:
    """A server whose callers must authenticate, with an administrator and an agent."""

    def __init__(self, server):
        self.server = server
        self.admin = server.sluice("token", "create", "root", "--scope", "*=admin").stdout.strip()
        server.env["SLUICE_TOKEN"] = self.admin
        self.agent = server.sluice("token", "create", "agent").stdout.strip()
        (server.directory / "policy.toml").write_text(POLICY)
        assert server.sluice("policy", "set", "policy.toml").returncode == 0


@pytest.fixture
def guarded(server):
    return Guarded(server)


@contextlib.asynccontextmanager
async def over_stdio(server, token=None, *arguments):
    env = {name: value for name, value in server.env.items() if name != "SLUICE_TOKEN"}
    env |= {"SLUICE_TOKEN": token} if token else {}
    command = StdioServerParameters(
        command=binary(), args=["mcp", "--server", server.url, *arguments], env=env, cwd=server.directory
    )
    async with stdio_client(command) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


@contextlib.asynccontextmanager
async def over_http(url, token=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        create_mcp_http_client(headers=headers) as http,
        streamable_http_client(url, http_client=http) as (read, write, *_),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


async def call(session, tool, **arguments) -> dict:
    """The answer of a call that goes well."""
    result = await session.call_tool(tool, arguments)
    assert not result.is_error, result.content[0].text
    return json.loads(result.content[0].text)


async def refusal(session, tool, **arguments) -> dict:
    """The error of a call that is refused."""
    result = await session.call_tool(tool, arguments)
    assert result.is_error, result.content[0].text
    return json.loads(result.content[0].text)["error"]


@contextlib.contextmanager
def serving(server, **env):
    """`sluice mcp --http` for a server; its URL."""
    process = subprocess.Popen(
        [binary(), "mcp", "--http", "127.0.0.1:0", "--server", server.url],
        stderr=subprocess.PIPE, text=True, env={**server.env, **env}, cwd=server.directory,
    )
    try:
        yield process.stderr.readline().split()[4]
    finally:
        process.terminate()
        assert process.wait(10) == 0


def test_an_agent_works_with_every_kind_of_tool(server):
    async def scenario():
        async with over_stdio(server) as agent:
            tools = {tool.name: tool for tool in (await agent.list_tools()).tools}
            assert {"send", "receive", "extend", "ack", "document_patch", "lock_renew", "result_show"} <= set(tools)
            assert tools["queue_list"].annotations.read_only_hint and not tools["send"].annotations.read_only_hint

            sent = await call(agent, "send", queue="jobs", payload="think", result_ttl_ms=60_000)
            [message] = (await call(agent, "receive", queue="jobs"))["messages"]
            assert (message["id"], message["payload"]) == (sent["id"], "think")
            await call(agent, "extend", receipt=message["receipt"], lease_ms=600_000, progress={"percent": 40})
            assert (await call(agent, "result_show", id=sent["id"]))["state"] == "pending"
            await call(agent, "ack", receipt=message["receipt"], result="42")
            assert (await call(agent, "result_show", id=sent["id"], wait_ms=5_000))["result"] == "42"
            assert (await call(agent, "receive", queue="jobs"))["messages"] == []

            await call(agent, "document_put", key="notes/a", content='{"n":1}', content_type="application/json")
            await call(agent, "document_patch", key="notes/a", merge_patch='{"m":2}')
            assert json.loads((await call(agent, "document_show", key="notes/a"))["content"]) == {"n": 1, "m": 2}
            taken = await refusal(agent, "document_put", key="notes/a", content="x", if_absent=True)
            assert taken["code"] == "version_mismatch"
            found = await call(agent, "document_query", where={"/n": 1})
            assert [document["key"] for document in found["documents"]] == ["notes/a"]

            lock = await call(agent, "lock_acquire", key="deploy", owner="agent", ttl_ms=60_000)
            assert (await refusal(agent, "lock_acquire", key="deploy"))["code"] == "lock_held"
            await call(agent, "lock_renew", token=lock["token"])
            await call(agent, "lock_release", token=lock["token"])
            assert (await refusal(agent, "lock_renew", token=lock["token"]))["code"] == "lease_lost"

            await call(agent, "send", queue="jobs", payload="x", namespace="default")
            assert (await refusal(agent, "queue_show", queue="jobs", namespace="no"))["code"] == "namespace_not_found"
            assert (await call(agent, "queue_show", queue="jobs"))["counts"]["ready"] == 1

    anyio.run(scenario)


def test_what_is_wrong_is_told_so_that_the_agent_can_correct_it(server):
    async def scenario():
        async with over_stdio(server) as agent:
            for tool, arguments, told in [
                ("send", {"payload": "a"}, "queue is missing"),
                ("send", {"queue": "q", "colour": "red"}, '"colour" is no argument of send'),
                ("send", {"queue": "q", "payload": "a", "priority": 11}, "expected a number from 0 to 9"),
                ("send", {"queue": "a/b" * 200, "payload": "a"}, "queue name"),
                ("receive", {"queue": "q", "max": 5_000}, "max"),
                ("receive", {"queue": "q", "wait_ms": 600_000}, "expected at most 60000"),
                ("ack", {"receipt": "rubbish\u001b[2J"}, "receipt"),
                ("ack", {"receipt": 7}, "receipt"),
                ("message_show", {"id": "../status"}, "id"),
                ("queue_list", {"limit": {"a": 1}}, "limit: expected"),
            ]:
                error = await refusal(agent, tool, **arguments)
                assert told in error["message"], (tool, error)
            for tool in ("queue_purge", "message_approve", "token_create", "", "x" * 10_000):
                with pytest.raises(MCPError, match="is no tool"):
                    await agent.call_tool(tool, {})

    anyio.run(scenario)


def test_long_payloads_do_not_fill_the_context(server):
    server.request("POST", "/v1/queues/jobs/messages/raw", b"x" * 500_000, {"Content-Type": "text/plain"})

    async def scenario():
        async with over_stdio(server) as agent:
            answer = await call(agent, "receive", queue="jobs")
            assert len(answer["messages"][0]["payload"]) == 32 << 10
            assert answer["cut"] == [{"at": "/messages/0/payload", "bytes": 500_000, "kept_bytes": 32 << 10}]
            await call(agent, "ack", receipt=answer["messages"][0]["receipt"])

    anyio.run(scenario)


def test_a_session_outlives_its_server(server):
    port = server.url.rsplit(":", 1)[1]

    async def scenario():
        async with over_stdio(server) as agent:
            sent = await call(agent, "send", queue="jobs", payload="a")
            server.kill()
            server.listen = f"127.0.0.1:{port}"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.to_thread.run_sync, server.start)
                [message] = (await call(agent, "receive", queue="jobs", wait_ms=1_000))["messages"]
            assert message["id"] == sent["id"]
            assert server.stop() == 0
            server.start()
            await call(agent, "ack", receipt=message["receipt"])

    anyio.run(scenario)
    with_none = subprocess.run(
        [binary(), "mcp", "--server", "http://127.0.0.1:1"], input="", capture_output=True, text=True, timeout=30
    )
    assert (with_none.returncode, with_none.stdout) == (0, "")


def test_lines_that_are_no_requests_harm_nobody(server):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        "rubbish", "[]", "{}", "null", '{"jsonrpc":"2.0"', '{"jsonrpc":"1.0","id":9,"method":"tools/list"}',
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        "\x00\x01", '{"jsonrpc":"2.0","id":{"a":1},"method":"tools/call"}',
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "no/such/method"}),
        json.dumps({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": 7}}),
        json.dumps({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "whoami", "arguments": []}}),
        json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "whoami"}}),
    ]
    process = subprocess.Popen(
        [binary(), "mcp", "--server", server.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=server.env,
    )
    process.stdin.write("\n".join(lines) + "\n")
    process.stdin.flush()
    answers = {}
    while 5 not in answers:
        answer = json.loads(process.stdout.readline())
        answers[answer.get("id")] = answer
    assert "result" in answers[1] and answers[2]["error"]["code"] == -32601
    for wrong in (3, 4):
        assert answers[wrong]["error"]["code"] == -32602 and "`name`" in answers[wrong]["error"]["message"]
    assert json.loads(answers[5]["result"]["content"][0]["text"])["name"] == "anybody"
    process.stdin.close()
    assert process.wait(10) == 0


def test_what_waits_ends_with_the_input_and_takes_nothing(server):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    receive = {"name": "receive", "arguments": {"queue": "jobs", "wait_ms": 30_000}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": receive},
    ]
    server.call("POST", "/v1/queues/jobs/messages", {"payload": "a"})
    server.sluice("receive", "jobs", "--ack")
    process = subprocess.Popen(
        [binary(), "mcp", "--server", server.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=server.env,
    )
    process.stdin.write("".join(json.dumps(line) + "\n" for line in lines))
    process.stdin.flush()
    process.stdout.readline()
    time.sleep(0.5)
    began = time.monotonic()
    process.stdin.close()
    assert process.wait(10) == 0
    assert time.monotonic() - began < 15, "it does not wait for the message"
    answer = json.loads(process.stdout.readline())
    assert answer["id"] == 2 and "end of the input" in answer["error"]["message"]
    server.call("POST", "/v1/queues/jobs/messages", {"payload": "b"})
    # The server may hear of the end a moment later.
    until(lambda: server.call("GET", "/v1/queues/jobs")["counts"]["ready"] == 1, "the message is there")


def test_an_agent_has_its_own_rights_and_no_others(guarded):
    async def scenario():
        async with over_stdio(guarded.server, guarded.agent) as agent:
            assert (await call(agent, "whoami"))["name"] == "agent"
            for tool, arguments in [
                ("send", {"queue": "research", "payload": "a"}),
                ("receive", {"queue": "salaries"}),
                ("queue_list", {}),
                ("document_put", {"key": "a", "content": "b"}),
                ("lock_acquire", {"key": "a"}),
                ("message_list", {"queue": "mail", "namespace": "$sys"}),
            ]:
                error = await refusal(agent, tool, **arguments)
                assert error["code"] == "forbidden", (tool, error)
            assert (await call(agent, "receive", queue="research"))["messages"] == []
        async with over_stdio(guarded.server) as nobody:
            assert (await refusal(nobody, "receive", queue="research"))["code"] == "unauthenticated"

    anyio.run(scenario)


def test_a_person_approves_what_the_policy_names(guarded):
    server = guarded.server

    async def scenario():
        async with over_stdio(server, guarded.agent) as agent:
            told = await call(agent, "send", queue="mail", payload="I know it", hold=True)
            assert told["held"] and told["id"] in told["waits_for"]
            assert server.sluice("message", "deny", told["id"]).returncode == 0
            sent = await call(agent, "send", queue="mail", payload="Dear all", result_ttl_ms=60_000)
            assert sent["held"] and f"sluice message approve {sent['id']}" in sent["waits_for"]
            assert (await call(agent, "receive", queue="mail"))["messages"] == []
            assert (await call(agent, "result_show", id=sent["id"]))["state"] == "pending"
            # The same token does not get around it, nor does it approve.
            bearer = {"Authorization": f"Bearer {guarded.agent}", "Content-Type": "application/json"}
            plain = server.request("POST", "/v1/queues/mail/messages", b'{"payload":"a"}', bearer)
            assert plain[0] == 403 and json.loads(plain[1])["error"]["code"] == "approval_needed"
            assert server.request("POST", f"/v1/messages/{sent['id']}/approve", b"{}", bearer)[0] == 403

            listed = server.sluice("message", "list", "mail", "--state", "held")
            assert sent["id"] in listed.stdout
            assert server.sluice("message", "approve", sent["id"], "--by", "ann").returncode == 0
            [message] = (await call(agent, "receive", queue="mail"))["messages"]
            await call(agent, "ack", receipt=message["receipt"], result="sent")
            assert (await call(agent, "result_show", id=sent["id"]))["result"] == "sent"

            other = await call(agent, "send", queue="mail", payload="Dear none", result_ttl_ms=60_000)
            assert server.sluice("message", "deny", other["id"], "--why", "no").returncode == 0
            assert (await call(agent, "result_show", id=other["id"]))["state"] == "dead"

    anyio.run(scenario)


def test_over_http_each_caller_has_the_rights_of_its_own_token(guarded):
    async def scenario(url):
        async with over_http(url, guarded.agent) as agent, over_http(url, guarded.admin) as root:
            assert (await call(agent, "whoami"))["name"] == "agent"
            assert (await call(root, "whoami"))["name"] == "root"
            assert (await call(agent, "send", queue="mail", payload="a"))["held"]
            assert "held" not in await call(root, "send", queue="mail", payload="a")
            assert (await refusal(agent, "queue_list"))["code"] == "forbidden"
        for token in (None, "sluice_rubbish", "a b"):
            async with over_http(url, token) as nobody:
                assert (await nobody.list_tools()).tools
                assert (await refusal(nobody, "whoami"))["code"] == "unauthenticated"

    # The process has an administrator's token in its environment, and lends it to nobody.
    with serving(guarded.server, SLUICE_TOKEN=guarded.admin) as url:
        anyio.run(scenario, url)


def status(url, body, **headers) -> int:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    request = urllib.request.Request(url, body, {name.replace("_", "-"): it for name, it in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_http_refuses_pages_names_and_bodies_that_are_none(server):
    listing = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    with serving(server) as url:
        assert status(url, listing) == 200
        assert status(url, listing, Origin="https://evil.example") == 403
        assert status(url, listing, Origin="null") == 403
        assert status(url, listing, Host="evil.example") == 403
        assert status(url, listing, Content_Type="text/plain") == 415
        for body in (b"rubbish", b"[]", b"{}", b"\xff", listing[:-1]):
            assert 400 <= status(url, body) < 500, body
        assert status(url, b" " * (5 << 20)) == 413
        assert status(url, listing) == 200


def test_http_stays_on_this_machine_unless_it_is_told_otherwise(server):
    refused = server.sluice("mcp", "--http", "0.0.0.0:0")
    assert refused.returncode == 2 and "tokens come in clear text" in refused.stderr
    assert "--http" in server.sluice("mcp", "--origin", "https://a.example").stderr

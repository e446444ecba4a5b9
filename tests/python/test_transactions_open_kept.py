"""Open transactions in a cluster: any node takes their calls, and they end with the node that leads."""

from conftest import until
from documents import of
from test_cluster_join import begun, joined, machines  # noqa: F401
from transactions import TRANSACTIONS, putting, sending


def answered(machine, method, path, body=None):
    """The answer, once there is one."""
    found = []

    def is_answered() -> bool:
        found[:] = machine.request(method, path, body)
        return found[0] is not None and found[0] < 500

    until(is_answered, f"{method} {path} is answered")
    return found


def leader_of_first_shard(machine) -> int:
    return answered(machine, "GET", "/v1/cluster/status")[1]["shards"][0]["leader"]


def test_what_is_open_ends_with_the_node_that_leads(machines):  # noqa: F811
    nodes = [begun(machines)]
    nodes += [joined(machines, name, nodes[0]) for name in ("two", "three")]
    until(lambda: "voters=[1, 2, 3]" in (nodes[0].directory / "log").read_text(), "all nodes vote")
    leader = nodes[leader_of_first_shard(nodes[0]) - 1]
    one, other = [node for node in nodes if node is not leader]

    def begin(*operations) -> str:
        """A transaction that both others have staged operations in; its path."""
        path = f"{TRANSACTIONS}/{answered(one, 'POST', f'{TRANSACTIONS}/begin', {})[1]['transaction']}"
        for node, operation in zip((one, other), operations, strict=True):
            assert answered(node, "POST", f"{path}/operations", {"operations": [operation]})[0] == 200
        return path

    done = begin(putting("a", "1"), sending("x"))
    status, outcome = answered(other, "POST", f"{done}/commit")
    assert status == 200 and outcome["duplicate"] is False and len(outcome["results"]) == 2
    # The same node leads again in between, and the transaction stays lost.
    left = begin(putting("a", "2"), sending("y"))
    for node in (one, leader):
        number = nodes.index(node) + 1
        assert answered(other, "POST", "/v1/cluster/transfer", {"node": number})[0] == 200
        until(lambda number=number: leader_of_first_shard(other) == number, f"node {number} leads")
        status, told = answered(other, "POST", f"{left}/commit")
        assert (status, told["error"]["code"]) == (409, "transaction_lost"), told
    left = begin(putting("a", "2"), sending("y"))
    leader.kill()
    for node, method in ((one, "commit"), (other, "commit"), (one, "rollback")):
        status, told = answered(node, "POST", f"{left}/{method}")
        assert (status, told["error"]["code"]) == (409, "transaction_lost"), told
    assert answered(one, "POST", f"{done}/commit") == [200, {**outcome, "duplicate": True}]
    assert answered(other, "GET", of("a"))[1]["content"] == "1"
    sent = answered(one, "GET", "/v1/queues/mail/messages?payload=true")[1]["messages"]
    assert [message["payload"] for message in sent] == ["x"]
    again = begin(putting("a", "2"), sending("y"))
    assert answered(other, "POST", f"{again}/commit")[0] == 200
    assert answered(one, "GET", of("a"))[1]["content"] == "2"

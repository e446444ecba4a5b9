"""A node whose wall clock is wrong: what ends by the time of day ends by the clock of the cluster."""

import ssl
import time
import urllib.error
import urllib.request

from conftest import needs_faketime, until, wrong_clock
from test_cluster_join import begun, joined, machines, numbers  # noqa: F401

HOUR_MS = 3_600_000


def status_with(machine, token):
    """What a node says to a caller who shows a token."""
    context = ssl.create_default_context(cafile=machine.directory / "data-tls" / "ca.pem")
    request = urllib.request.Request(machine.url + "/v1/queues", headers={"authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=20, context=context) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def created(machine, name):
    body = {"name": name, "scopes": ["sluice://ns/default?perm=observer"], "ttl_ms": HOUR_MS}
    status, token = machine.request("POST", "/v1/tokens", body)
    assert status == 201, token
    return token


@needs_faketime
def test_a_node_whose_clock_is_days_ahead_takes_and_makes_tokens_as_the_others_do(machines):  # noqa: F811
    one = begun(machines)
    two, hasty = joined(machines, "two", one), joined(machines, "hasty", one)
    until(lambda: numbers(one) == [1, 2, 3], "all nodes are listed")
    token = created(one, "of-one")
    assert hasty.stop() == 0
    hasty.env |= wrong_clock("+2d")
    hasty.start()
    until(lambda: hasty.request("GET", "/v1/queues")[0] == 200, "the node answers")
    assert [status_with(machine, token["token"]) for machine in (one, two, hasty)] == [200] * 3

    made = created(hasty, "of-hasty")
    assert abs(made["expires_at_ms"] - HOUR_MS - time.time() * 1_000) < 60_000
    assert [status_with(machine, made["token"]) for machine in (one, two, hasty)] == [200] * 3
    # The clock is not that of the cluster when the node leads, either.
    assert one.request("POST", "/v1/cluster/transfer", {"node": 3})[0] == 200
    until(lambda: one.members().get(3), "the node leads")
    led = created(hasty, "of-leader")
    assert abs(led["expires_at_ms"] - HOUR_MS - time.time() * 1_000) < 60_000
    assert [status_with(machine, token["token"]) for machine in (one, two, hasty)] == [200] * 3

"""The manifest for KEDA asks for what the server answers."""

import json
import re
import urllib.parse

import pytest
import yaml
from conftest import ROOT

MANIFEST = ROOT / "deploy" / "keda" / "mail-workers.yaml"


@pytest.fixture
def objects():
    """The objects of the manifest, by their kind."""
    return {one["kind"]: one for one in yaml.safe_load_all(MANIFEST.read_text())}


def value_at(answer: dict, location: str):
    """The value at a path of GJSON without modifiers."""
    for name in location.split("."):
        answer = answer[name]
    return answer


def measured(server, objects, token: str) -> dict:
    """What each trigger measures, by its name."""
    found = {}
    for trigger in objects["ScaledObject"]["spec"]["triggers"]:
        metadata = trigger["metadata"]
        assert (trigger["type"], metadata["authMode"]) == ("metrics-api", "bearer")
        assert trigger["authenticationRef"]["name"] == objects["TriggerAuthentication"]["metadata"]["name"]
        path = urllib.parse.urlsplit(metadata["url"]).path
        status, answer = server.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        assert status == 200, answer
        found[trigger["name"]] = value_at(json.loads(answer), metadata["valueLocation"])
    return found


def test_each_trigger_finds_a_number(server, objects):
    root = server.call("POST", "/v1/tokens", {"name": "root", "scopes": ["sluice://ns/*?perm=admin"]})["token"]
    command = re.search(r"sluice token create (\S+) --scope (\S+)=(\S+)", MANIFEST.read_text())
    scope = f"sluice://ns/{command[2]}?perm={command[3]}"
    admin = {"Authorization": f"Bearer {root}"}
    token = server.call("POST", "/v1/tokens", {"name": command[1], "scopes": [scope]}, admin)["token"]
    server.call("PUT", "/v1/queues/mail", {}, admin)
    assert measured(server, objects, token) == {"ready": 0, "leased": 0}
    server.call("POST", "/v1/queues/mail/messages", {"messages": [{"payload": "x"}] * 7}, admin)
    server.call("POST", "/v1/queues/mail/receive", {"max": 3}, admin)
    found = measured(server, objects, token)
    # KEDA takes numbers alone.
    assert found == {"ready": 4, "leased": 3} and all(type(value) is int for value in found.values())
    spec = objects["ScaledObject"]["spec"]
    # The formula has names of triggers only, of which each is there once.
    assert sorted(spec["advanced"]["scalingModifiers"]["formula"].split(" + ")) == sorted(found)
    assert len(spec["triggers"]) == len(found)


def test_the_secret_is_where_the_triggers_look(objects):
    (reference,) = objects["TriggerAuthentication"]["spec"]["secretTargetRef"]
    secret = objects["Secret"]
    assert (reference["name"], reference["parameter"]) == (secret["metadata"]["name"], "token")
    assert reference["key"] in secret["stringData"]

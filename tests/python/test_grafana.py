"""Dashboards and alert rules are about metrics that there are, and the rules do what their tests say."""

import importlib.machinery
import importlib.util
import json
import re
import shutil
import subprocess
import urllib.request

import pytest
import yaml
from conftest import ROOT
from test_cluster import cluster  # noqa: F401

GRAFANA = ROOT / "deploy/grafana"
RULES = [rule for group in yaml.safe_load((GRAFANA / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]
# A metric with its labels, as far as they are one value. `up` is Prometheus' own.
SELECTOR = re.compile(r"(sluice_[a-z_]+)(?:\{([^}]*)\})?")
LABEL = re.compile(r'(\w+)="([^"$]*)"')


def expressions() -> list[str]:
    found = [rule["expr"] for rule in RULES]
    for file in GRAFANA.glob("*.json"):
        board = json.loads(file.read_text())
        found += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
        found += [variable["query"] for variable in board["templating"]["list"]]
    return found


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
@pytest.mark.parametrize("verb", [("check", "rules", "alerts.yaml"), ("test", "rules", "alerts.test.yaml")])
def test_each_alert_is_sound_and_fires_when_it_should(verb):
    done = subprocess.run(["promtool", *verb], cwd=GRAFANA, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboards_are_those_of_the_script():
    loader = importlib.machinery.SourceFileLoader("dashboards", str(ROOT / "scripts/grafana-dashboards"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("dashboards", loader))
    loader.exec_module(module)
    for name in module.DASHBOARDS:
        written = module.dashboard(name)
        assert written == (GRAFANA / f"{name}.json").read_text(), "run: scripts/grafana-dashboards"


def test_every_alert_has_a_test():
    tested = {test["name"] for test in yaml.safe_load((GRAFANA / "alerts.test.yaml").read_text())["tests"]}
    assert tested - {"texts"} == {rule["alert"] for rule in RULES}


def test_every_metric_and_label_is_one_that_a_server_has(cluster):  # noqa: F811
    leader = cluster.leader()
    status, _ = cluster.request(leader, "POST", "/v1/queues/jobs/messages", {"payload": "x"})
    assert status == 201
    with urllib.request.urlopen(leader["url"] + "/metrics", context=cluster.tls) as answer:
        page = answer.read().decode()
    served = {}
    for name, labels in re.findall(r"^(sluice_\w+)(?:\{(.*)\})? ", page, flags=re.M):
        served.setdefault(name, set()).update(re.findall(r'(\w+)="([^"]*)"', labels))
    unknown = []
    for text in expressions():
        for name, labels in SELECTOR.findall(text):
            if name not in served:
                unknown.append(name)
            # Which statuses there are depends on what was asked.
            unknown += [f"{name}: {pair}" for pair in LABEL.findall(labels) if pair[0] != "status" and
                        pair not in served.get(name, ())]
    assert not unknown


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_is_wrong_and_what_to_do(rule):
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert set(rule["annotations"]) == {"summary", "description"}

"""The documentation says what is there."""

import pathlib
import re

from conftest import ROOT

FOLDERS = ("docs/**", "", "deploy/**", "examples/**")
PAGES = [page for folder in FOLDERS for page in sorted(ROOT.glob(f"{folder}/*.md".lstrip("/")))]


def anchors(page: pathlib.Path) -> set:
    """The places in a page that a link can name, as GitHub makes them from its headings."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    found = set()
    for heading in re.findall(r"^#+ (.+)$", text, flags=re.M):
        plain = re.sub(r"[^\w\- ]", "", heading.lower())
        found.add(plain.replace(" ", "-"))
    return found


def test_every_link_leads_somewhere():
    broken = []
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)]+)\)", text):
            if target.startswith(("https://", "http://")):
                continue
            file, _, anchor = target.partition("#")
            to = (page.parent / file) if file else page
            if not to.exists() or (anchor and anchor not in anchors(to)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken


# Beginnings of the names of metrics that only nodes of a cluster have.
IN_CLUSTERS = ("sluice_replica_", "sluice_passed_on_")


def test_every_metric_is_explained(server):
    server.call("POST", "/v1/queues/jobs/messages", {"payload": "x"})
    _, page = server.request("GET", "/metrics")
    served = set(re.findall(r"^# TYPE (\S+)", page.decode(), flags=re.M))
    explained = set(re.findall(r"`(sluice_\w+)", (ROOT / "docs/operations.md").read_text()))
    # Those of a cluster are held against one in test_cluster.py, those of telemetry in test_telemetry.py.
    assert served == {name for name in explained if not name.startswith((*IN_CLUSTERS, "sluice_telemetry_"))}


def test_every_verb_has_a_line_in_the_reference(server):
    """`sluice --help` and docs/cli.md name the same verbs."""
    help_ = server.sluice("--help").stdout
    verbs = set(re.findall(r"^  ([a-z]+)  ", help_.split("Commands:")[1].split("Options:")[0], flags=re.M)) - {"help"}
    reference = (ROOT / "docs/cli.md").read_text()
    assert len(verbs) > 10
    assert not [verb for verb in verbs if f"sluice {verb}" not in reference]

"""Node's http2: the checks are in client.mjs."""

import pytest

from conftest import HERE, need, run

CHECKS = ["requests", "streamed_bodies", "trailers", "continued", "downloads", "small_windows", "resets",
          "early_answers", "broken_answers", "tunnels"]


@pytest.mark.parametrize("check", CHECKS)
def test_node(check, stack):
    run(need("node"), HERE / "client.mjs", check, stack.url, stack.ca)


def test_every_check_runs():
    assert run(need("node"), HERE / "client.mjs").decode().split() == CHECKS

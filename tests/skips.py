"""With CI set, a test that is skipped is a failure: nobody would see that something is not tested."""

import os

import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} is skipped, which with CI set is a failure: {call.excinfo.value}"
    return report

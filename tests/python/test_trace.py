"""No reply before the fdatasync that covers it: the system calls of a real server, and a checker that can fail."""

import json
import re
import subprocess
import sys

import pytest
from conftest import ROOT, binary, strace_is_missing

sys.path.insert(0, str(ROOT / "scripts"))
from trace_durability import check  # noqa: E402

LOG = "/d/000000000001.log"
SOCKET = "TCP:[127.0.0.1:1->127.0.0.1:2]"
# A manifest that names the open segment 1 and nothing else.
MANIFEST = b"SLUICEMF\x09\0\0\0".ljust(16 + 61 + 21 + 36 + 4, b"\0") + b"\1\0\0\0\1".ljust(28 + 4 + 1 + 8, b"\0")
REQUESTS = [{"id": "r1", "what": "send", "needles": [b"mark".hex()]}]
SOUND = [
    f'openat(AT_FDCWD</>, "{LOG}", O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0600) = 5<{LOG}>',
    "fsync(6</d>) = 0",
    'openat(AT_FDCWD</>, "/d/manifest.tmp", O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0600) = 7</d/manifest.tmp>',
    f'pwrite64(7</d/manifest.tmp>, "{"".join(f"{chr(92)}{byte:03o}" for byte in MANIFEST)}", 150, 0) = 150',
    "fdatasync(7</d/manifest.tmp>) = 0",
    'rename("/d/manifest.tmp", "/d/manifest") = 0',
    "fsync(8</d>) = 0",
    f'recvfrom(9<{SOCKET}>, "POST / HTTP/1.1", 99, 0, NULL, NULL) = 15',
    f'pwrite64(5<{LOG}>, "\\0\\1mark\\377", 7, 0) = 7',
    f"fdatasync(5<{LOG}>) = 0",
    f'sendto(9<{SOCKET}>, "HTTP/1.1 201 Created\\r\\nx-request-id: r1\\r\\n", 40, MSG_NOSIGNAL, NULL, 0) = 40',
]


def problems(calls) -> list[str]:
    return check([f"1 17.0 {call}" for call in calls], REQUESTS).problems


def test_a_sound_trace_passes():
    assert problems(SOUND) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda calls: calls.insert(9, calls.pop()), "before an fdatasync covered"),
        (lambda calls: calls.insert(8, calls.pop(9)), "before an fdatasync covered"),
        (lambda calls: calls.__setitem__(9, calls[9].replace("= 0", "= -1 EIO")), "before an fdatasync covered"),
        (lambda calls: calls.pop(8), "no write to the log"),
        (lambda calls: calls.pop(1), "whose name was not synced"),
        (lambda calls: calls.pop(4), "the manifest was not synced"),
        (lambda calls: calls.pop(6), "before a durable manifest named"),
        (lambda calls: calls.pop(), "no 2xx reply"),
        (lambda calls: calls.append(f'unlink("{LOG}") = 0'), "removed while the durable manifest names it"),
        (lambda calls: calls.insert(0, 'mkdir("/d", 0700) = 0'), "before the name of /d was synced"),
    ],
)
def test_a_doctored_trace_fails(change, expected):
    calls = list(SOUND)
    change(calls)
    assert expected in "\n".join(problems(calls))


def test_a_sync_that_was_still_running_covers_nothing():
    calls = [f"1 17.0 {call}" for call in SOUND]
    begun, ended = f"2 17.0 fdatasync(5<{LOG}> <unfinished ...>", "2 17.0 <... fdatasync resumed>) = 0"
    reply = calls.pop()
    assert check([*calls[:9], begun, ended, reply], REQUESTS).problems == []
    assert "before an fdatasync covered" in check([*calls[:9], begun, reply, ended], REQUESTS).problems[0]


def test_a_thread_that_was_killed_before_its_call_began_has_made_none():
    calls = [f"1 17.0 {call}" for call in SOUND]
    assert check([*calls, "2 17.0 ???( <unfinished ...>"], REQUESTS).problems == []


def test_no_reply_leaves_before_the_fdatasync_that_covers_it(tmp_path):
    if why := strace_is_missing():
        pytest.skip(why)
    workload = [sys.executable, str(ROOT / "scripts" / "trace_workload.py"), binary(), str(tmp_path)]
    subprocess.run([*workload, "--rounds", "5", "--bulk", "12"], check=True, timeout=240)
    requests = json.loads((tmp_path / "requests.json").read_text())
    lines = (tmp_path / "trace.txt").read_text(encoding="latin-1").splitlines()
    checker = check(lines, requests)
    assert checker.problems == []
    assert len(checker.trace.manifests) >= 4, "segments began and ended"

    # The same trace, with the syncs of the log said to have failed: every reply is found.
    doctored = [re.sub(r"^(.*fdatasync.*) = 0$", r"\1 = -1 EIO (Input/output error)", line) for line in lines]
    found = [problem for problem in check(doctored, requests).problems if "before an fdatasync covered" in problem]
    assert len(found) >= len(requests)

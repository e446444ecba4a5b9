"""Reads a system call trace of a server (strace -f -ttt -yy) and proves what durability `always` promises.

    python3 scripts/trace_durability.py TRACE REQUESTS.json

REQUESTS.json lists what the clients did: `{"id": x-request-id, "what": word, "needles": [hex, ...]}`, where the needles
are bytes that the request's record holds and that no earlier record of that client holds. Proved is, for each request:

- a write to the log that holds its record came after the request, and the reply began only after an fdatasync of that
  file, begun after the write was done, had returned without an error;
- the name of that file, the manifest that names the file, and the directories above were synced before the reply.

And for each manifest that was put in place:

- its bytes were synced before, and so were all files that it names, with their names, but for the segments that are
  still written;
- no file was removed while a manifest that names it was the durable one.

The order of the trace's lines is the order of events: strace prints the end of a call before the process can go on,
and the beginning before the kernel acts.
"""

import bisect
import collections
import json
import os.path
import re
import struct
import sys

LINE = re.compile(r"^(\d+) +\d+\.\d+ (.*)$")
RESUMED = re.compile(r"^<\.\.\. (\w+) resumed>(.*)$")
CALL = re.compile(r"^(\w+)\((.*)$", re.DOTALL)
RESULT = re.compile(r"^(.*)\) += (-?\d+|\?)(<[^>]*>)?(?: .*)?$", re.DOTALL)
FIRST_FD = re.compile(r"^\d+<(.*?)> *(?:,|$|\))")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(\.\.\.)?')
ESCAPE = re.compile(r"\\([0-7]{1,3}|.)")
REQUEST_ID = re.compile(rb"\r\nx-request-id: *([^\r\n]+)", re.IGNORECASE)
NUMBERED = re.compile(r"^(\d+)\.(log|table|blobs|snapshot)$")

RECEIVING = {"recvfrom", "recvmsg", "read", "readv"}
SENDING = {"sendto", "sendmsg", "write", "writev"}
SYNCING = {"fsync", "fdatasync"}
FOR_EVER = float("inf")

Call = collections.namedtuple("Call", "name fd strings cut flags result start end")


def unescape(text: str) -> bytes:
    plain = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f"}

    def one(match):
        code = match.group(1)
        return chr(int(code, 8)) if code[0] in "01234567" else plain.get(code, code)

    return ESCAPE.sub(one, text).encode("latin-1")


def call_of(text: str, start: int, end: float) -> Call:
    """Makes a call of its text: `name(arguments) = result`."""
    name, rest = CALL.match(text).groups()
    done = RESULT.match(rest)
    arguments, result = (done.group(1), done.group(2)) if done else (rest, "?")
    fd = FIRST_FD.match(arguments)
    strings = [unescape(match.group(1)) for match in STRING.finditer(arguments)]
    cut = any(match.group(2) for match in STRING.finditer(arguments))
    flags = STRING.sub("", arguments)
    return Call(name, fd and fd.group(1), strings, cut, flags, int(result) if result != "?" else None, start, end)


def parse(lines) -> list[Call]:
    """The calls of a trace, in the order in which they began. One that never returned ends at infinity."""
    calls, open_calls = [], {}
    for number, line in enumerate(lines):
        match = LINE.match(line.rstrip("\n"))
        if not match:
            continue
        pid, text = match.groups()
        resumed = RESUMED.match(text)
        if resumed:
            begun = open_calls.pop(pid, None)
            if begun:
                calls.append(call_of(begun[1] + resumed.group(2), begun[0], number))
        elif text.endswith("<unfinished ...>") and CALL.match(text):
            # Of a thread that was killed before its call began strace knows no name: `???(`.
            open_calls[pid] = (number, text.removesuffix("<unfinished ...>"))
        elif CALL.match(text):
            calls.append(call_of(text, number, number))
    calls += [call_of(text, start, FOR_EVER) for start, text in open_calls.values()]
    return sorted(calls, key=lambda call: call.start)


class Named:
    """What a manifest says: format version 9, of crates/journal/src/log/manifest.rs."""

    def __init__(self, data: bytes):
        magic, version = struct.unpack_from("<8sI", data)
        if magic != b"SLUICEMF" or version != 9:
            raise ValueError(f"not a manifest of format 9: {data[:12]!r}")
        self.data, self.at = data, 16 + 61 + 17
        hard_state = self.take("I")
        self.at += hard_state + 36
        self.sealed, self.tables = [], []
        for _ in range(self.take("I")):
            number, table_len = self.take("Q72xQQI")[::2][:2]
            self.sealed.append(number)
            if table_len:
                self.tables.append(number)
        self.open = [self.take("QQQ")[0] for _ in range(self.take("I"))]
        self.blobs = []
        for _ in range(self.take("I")):
            self.blobs.append(self.take("QQQI")[0])
            ranges = self.take("I")
            self.at += ranges * 16
        self.snapshot = [self.take("QQQQQQ")[0]] if self.take("B") else []
        if self.snapshot:
            label = self.take("I")
            self.at += label
        self.take("Q")  # the keyring that it relies on
        if self.at != len(data):
            raise ValueError(f"a manifest of {len(data)} bytes has {self.at} bytes of fields")

    def take(self, layout: str):
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values if len(values) > 1 else values[0]

    def complete(self) -> set[str]:
        """Names of the files that are not written any more."""
        kinds = {"log": self.sealed, "table": self.tables, "blobs": self.blobs, "snapshot": self.snapshot}
        return {f"{number:012}.{kind}" for kind, numbers in kinds.items() for number in numbers}

    def names(self) -> set[str]:
        return self.complete() | {f"{number:012}.log" for number in self.open}


class File:
    def __init__(self, path: str, named_at: int):
        self.path = path
        # When its present name was made; a name that was there before the trace counts as durable.
        self.named_at = named_at
        self.writes: list[Call] = []
        self.syncs: list[Call] = []


def covered(syncs: list[Call], after: float, before: float) -> Call | None:
    """The first sync begun after one moment and done before another."""
    found = (sync for sync in syncs if sync.result == 0 and sync.start > after and sync.end < before)
    return min(found, key=lambda sync: sync.end, default=None)


class Trace:
    """What happened to each file and socket."""

    def __init__(self, calls: list[Call]):
        self.files: dict[str, File] = {}
        self.gone: list[File] = []
        self.directories: dict[str, list[Call]] = collections.defaultdict(list)
        self.made_directories: dict[str, int] = {}
        self.manifests: list[tuple[Call, str, Named, File]] = []
        self.removals: list[tuple[Call, str]] = []
        self.received: dict[str, list[Call]] = collections.defaultdict(list)
        self.replies: dict[str, Call] = {}
        self.reply_starts: dict[str, list[int]] = collections.defaultdict(list)
        for call in calls:
            self.take(call)

    def file(self, path: str) -> File:
        return self.files.setdefault(path, File(path, -1))

    def take(self, call: Call):
        failed = call.result is None or call.result < 0
        if call.name in SYNCING and call.fd:
            self.directories[call.fd].append(call)
            self.file(call.fd).syncs.append(call)
        elif call.name in ("pwrite64", "pwritev") and call.fd:
            self.file(call.fd).writes.append(call)
        elif call.name == "openat" and "O_CREAT" in call.flags and not failed:
            path = call.strings[0].decode()
            if "O_EXCL" in call.flags or path not in self.files:
                self.files[path] = File(path, call.end)
        elif call.name.startswith("mkdir") and not failed:
            self.made_directories[call.strings[0].decode()] = call.end
        elif call.name.startswith("rename") and not failed:
            self.rename(call, *(path.decode() for path in call.strings))
        elif call.name.startswith("unlink") and not failed:
            path = call.strings[0].decode()
            self.removals.append((call, path))
            self.gone.append(self.files.pop(path, File(path, -1)))
        elif call.fd and call.fd.startswith(("TCP:", "TCPv6:")):
            self.socket(call)

    def rename(self, call: Call, old: str, new: str):
        file = self.files.pop(old, None) or File(new, -1)
        if new in self.files:
            self.gone.append(self.files[new])
        file.path, file.named_at = new, call.end
        self.files[new] = file
        if os.path.basename(new) == "manifest":
            if not file.writes or file.writes[-1].cut:
                raise ValueError(f"the trace does not hold the whole of {new}: trace with a larger -s")
            self.manifests.append((call, os.path.dirname(new), Named(file.writes[-1].strings[0]), file))

    def socket(self, call: Call):
        if call.name in RECEIVING and call.result and call.result > 0:
            self.received[call.fd].append(call)
        elif call.name in SENDING:
            data = b"".join(call.strings)
            request_id = REQUEST_ID.search(data)
            if data.startswith(b"HTTP/1.1 2") and request_id:
                self.replies.setdefault(request_id.group(1).decode(), call)
            self.reply_starts[call.fd].append(call.start)

    def log_writes(self) -> list[tuple[File, Call]]:
        files = [*self.files.values(), *self.gone]
        return [(file, write) for file in files if file.path.endswith(".log") for write in file.writes]

    def arrival(self, reply: Call) -> Call | None:
        """The first bytes on the connection after the reply before this one."""
        starts = self.reply_starts[reply.fd]
        before = bisect.bisect_left(starts, reply.start)
        previous = starts[before - 1] if before else -1
        found = (call for call in self.received[reply.fd] if previous < call.start < reply.start)
        return next(found, None)

    def name_synced(self, path: str, named_at: int, before: float) -> bool:
        return named_at < 0 or covered(self.directories[os.path.dirname(path)], named_at, before) is not None

    def durable_manifest(self, directory: str, before: float) -> Named | None:
        """The latest manifest whose place was synced before this moment."""
        durable = None
        for call, place, named, file in self.manifests:
            if place == directory and call.end < before and covered(self.directories[place], call.end, before):
                durable = named
        return durable


class Checker:
    def __init__(self, trace: Trace):
        self.trace = trace
        self.problems: list[str] = []
        self.syncs: set[tuple[str, int]] = set()
        self.writes = trace.log_writes()

    def problem(self, call: Call, text: str):
        self.problems.append(f"line {call.start + 1}: {text}")

    def request(self, request: dict):
        label = f"request {request['id']} ({request['what']})"
        reply = self.trace.replies.get(request["id"])
        if reply is None:
            self.problems.append(f"{label}: the trace has no 2xx reply to it")
            return
        arrival = self.trace.arrival(reply)
        if arrival is None:
            self.problem(reply, f"{label} was answered before anything of it arrived")
            return
        needles = [bytes.fromhex(needle) for needle in request["needles"]]
        holding = [
            (file, write)
            for file, write in self.writes
            if arrival.start < write.start < reply.start and all(n in write.strings[0] for n in needles)
        ]
        if not holding:
            self.problem(reply, f"{label} was answered, and no write to the log before that holds it")
        for file, write in holding:
            self.durable_before(label, file, write, reply)

    def durable_before(self, label: str, file: File, write: Call, reply: Call):
        sync = covered(file.syncs, write.end, reply.start)
        if sync is None:
            where = f"its write to {file.path} in line {write.start + 1}"
            self.problem(reply, f"{label} was answered before an fdatasync covered {where}")
            return
        self.syncs.add((file.path, sync.start))
        if not self.trace.name_synced(file.path, file.named_at, reply.start):
            self.problem(reply, f"{label} was answered before the name of {file.path} was synced")
        manifest = self.trace.durable_manifest(os.path.dirname(file.path), reply.start)
        if manifest is None or os.path.basename(file.path) not in manifest.names():
            self.problem(reply, f"{label} was answered before a durable manifest named {file.path}")
        for directory, made_at in self.trace.made_directories.items():
            if file.path.startswith(directory + "/") and not self.trace.name_synced(directory, made_at, reply.start):
                self.problem(reply, f"{label} was answered before the name of {directory} was synced")

    def manifest(self, call: Call, directory: str, named: Named, file: File):
        # A write is taken by the file that it went to, which later manifests replace: none is ever written
        # twice.
        self.whole_before(call, file, "the manifest")
        files = {**{gone.path: gone for gone in self.trace.gone}, **self.trace.files}
        for name in sorted(named.names()):
            path = os.path.join(directory, name)
            if path not in files:
                self.problem(call, f"the manifest names {path}, which nothing has made")
                continue
            if not self.trace.name_synced(path, files[path].named_at, call.start):
                self.problem(call, f"the manifest names {path}, whose name was not synced before")
            if name in named.complete():
                self.whole_before(call, files[path], path)

    def whole_before(self, call: Call, file: File, what: str):
        done = [write for write in file.writes if write.start < call.start]
        if done and not covered(file.syncs, max(write.end for write in done), call.start):
            self.problem(call, f"a manifest is put in place, and {what} was not synced before")

    def removal(self, call: Call, path: str):
        directory, name = os.path.split(path)
        manifest = self.trace.durable_manifest(directory, call.start)
        if NUMBERED.match(name) and manifest and name in manifest.names():
            self.problem(call, f"{path} is removed while the durable manifest names it")

    def run(self, requests: list[dict]) -> list[str]:
        for request in requests:
            self.request(request)
        for manifest in self.trace.manifests:
            self.manifest(*manifest)
        for removal in self.trace.removals:
            self.removal(*removal)
        return self.problems

    def report(self, requests: list[dict]) -> str:
        words = collections.Counter(request["what"] for request in requests)
        replies = ", ".join(f"{count} {what}" for what, count in sorted(words.items()))
        removed = sum(1 for _, path in self.trace.removals if NUMBERED.match(os.path.basename(path)))
        return "\n".join(
            [
                f"replies: {len(requests)} ({replies}), after {len(self.syncs)} fdatasyncs of the log",
                f"manifests: {len(self.trace.manifests)}, files removed: {removed}",
            ]
        )


def check(lines, requests: list[dict]) -> Checker:
    """Checks a trace; what is wrong is in `problems`."""
    checker = Checker(Trace(parse(lines)))
    checker.run(requests)
    return checker


def main() -> int:
    trace_path, requests_path = sys.argv[1:]
    with open(requests_path) as file:
        requests = json.load(file)
    # Latin-1: strace prints bytes above 127 as escapes, and nothing else may stop the reader.
    with open(trace_path, encoding="latin-1") as file:
        checker = check(file, requests)
    print(checker.report(requests))
    for problem in checker.problems[:20]:
        print(f"PROBLEM {problem}")
    if checker.problems:
        print(f"{len(checker.problems)} problems")
        return 1
    print("no reply before the fdatasync that covers it; names and manifests synced before anything depends on them")
    return 0


if __name__ == "__main__":
    sys.exit(main())

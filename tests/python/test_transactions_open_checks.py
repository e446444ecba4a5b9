"""What no commit of an open transaction could do is refused when it is staged."""

import pytest
from documents import LOCKS, put
from test_attachments import begin as begin_upload
from test_transactions_command import run
from test_transactions_open import begin, content
from transactions import acquiring, checking, deleting, payloads, putting, receive, releasing, send, sending, settling


def detaching(key: str) -> dict:
    return {"delete_attachment": {"key": key, "name": "a"}}


def attaching(name: str, upload: str) -> dict:
    return {"attach": {"key": "there", "name": name, "upload": upload}}


def contradictions(server) -> list[tuple[dict, dict, str]]:
    """Pairs of operations of which no transaction has both, with the field of the second one."""
    send(server, "job")
    receipt = receive(server)["receipt"]
    token = server.call("POST", LOCKS, {"key": "held"})["token"]
    upload = begin_upload(server, "there", "b")
    return [
        (settling(receipt), settling(receipt, "nack"), "settle.receipt"),
        (acquiring("l"), {"acquire": {"keys": ["k", "l"]}}, "acquire.keys"),
        (releasing(token), releasing(token), "release.token"),
        (detaching("there"), deleting("there"), "delete.key"),
        (deleting("there"), detaching("there"), "delete_attachment.key"),
        (detaching("there"), detaching("there"), "delete_attachment.name"),
        (attaching("b", upload), attaching("c", upload), "attach.upload"),
    ]


@pytest.mark.parametrize("together", [True, False])
def test_two_operations_that_name_the_same_are_refused(server, together):
    put(server, "there", "x")
    for first, second, field in contradictions(server):
        work = begin(server)
        if not together:
            work.stage(first)
        told = work.refused(sending("half"), first, second) if together else work.refused(sending("half"), second)
        at = 2 if together else 1
        assert (told["status"], told["code"]) == (400, "invalid_argument"), told
        assert told["message"].startswith(f"operations[{at}].{field}: "), told
        assert told["details"]["operation"] == at and told["details"]["field"] == f"operations[{at}].{field}"
        work.rollback()
    assert payloads(server, "mail") == []


def test_a_message_waits_for_those_that_are_staged_before_it(server):
    work = begin(server)
    told = work.refused(sending("x", depends_on=["#0"]))
    assert (told["code"], told["details"]["operation"]) == ("invalid_argument", 0)
    work.stage(sending("first"), checking("none", if_absent=True))
    for place in ("#1", "#5"):
        told = work.refused(checking("none", if_absent=True), sending("second", depends_on=[place]))
        assert told["message"].startswith("operations[1].send.depends_on: "), told
        assert told["details"]["operation"] == 1
    work.stage(sending("second", depends_on=["#0"]))
    told = work.refused(sending("x", unique={"key": "u"}))
    assert told["message"].startswith("operations[0].send.unique: "), told
    assert len(work.commit()["results"]) == 2


def test_results_and_errors_count_what_the_commit_does(server):
    put(server, "there", "x")
    work = begin(server)
    work.stage(checking("there", if_exists=True), putting("new", "x"), sending("1"), putting("there", "y"))
    work.stage(deleting("new"), deleting("there"), putting("last", "z"))
    sent, deleted, written = work.commit()["results"]
    assert sent["id"] and deleted == {} and written["written"]["version"] == 1
    assert content(server, "there") is None and content(server, "new") is None
    work = begin(server)
    work.stage(checking("there", if_absent=True), putting("new", "x"), deleting("new"))
    work.stage(sending("1"), putting("last", "z", if_version=7))
    told = work.commit_refused()
    assert (told["code"], told["details"]["operation"]) == ("version_mismatch", 1)
    assert told["message"].startswith("operations[1].put: ")


def test_what_the_transaction_does_itself_is_told_as_the_cause(server):
    put(server, "there", "x")
    work = begin(server)
    work.stage(putting("a", "1"), deleting("there"))
    told = work.refused(putting("a", "2", if_absent=True))
    assert told["code"] == "version_mismatch" and "the transaction has written it itself" in told["message"]
    told = work.refused(checking("there", if_exists=True))
    assert told["code"] == "version_mismatch" and "the transaction deletes it itself" in told["message"]


def test_a_command_hears_at_once_what_no_commit_could_do(server):
    told = run(server, "send", "out", "x", "--unique", "u", SLUICE_TRANSACTION=begin(server).name)
    assert told.returncode == 2 and "unique" in told.stderr


def test_an_empty_transaction_is_refused_and_not_taken_for_none(server):
    for arguments in (["send", "out", "x"], ["doc", "put", "a", "/dev/null"], ["txn", "commit"], ["receive", "out"]):
        for flag, variable in ((["--transaction", ""], {}), ([], {"SLUICE_TRANSACTION": ""})):
            told = run(server, *arguments, *flag, **variable)
            assert told.returncode == 2 and "is a variable not set?" in told.stderr, (arguments, told)
    assert payloads(server, "out") == []


def test_a_command_commits_the_transaction_of_its_environment(server):
    variable = {"SLUICE_TRANSACTION": begin(server).name}
    assert run(server, "doc", "put", "a", "/dev/null", **variable).stdout == "staged\n"
    acquired = run(server, "lock", "acquire", "k", **variable)
    assert "no part of it" in acquired.stderr and acquired.stdout
    assert run(server, "txn", "commit", **variable).returncode == 0
    assert content(server, "a") == ""
    (server.directory / "lines").write_text("1\n2\n3\n")
    told = run(server, "send", "mail", "--lines", "--file", "lines", SLUICE_TRANSACTION=begin(server).name)
    assert told.stderr == "staged 3 messages to mail\n"

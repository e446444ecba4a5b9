"""Backups that are made while transactions over several namespaces go on: each has all of one, or nothing."""

import random
import shutil
import threading
import time

from conftest import until
from test_cluster_across import Three
from test_cluster_join import machines  # noqa: F401
from test_transactions_across import Accounts, Bank, Sharded, asking, moving, server  # noqa: F401


def test_a_backup_of_a_server_has_all_of_a_transaction_or_nothing(server, tmp_path):  # noqa: F811
    server.call("PUT", "/v1/namespaces/c", {"shard": 1})
    bank, moved = Bank(asking(server)), []

    def backups():
        for at in range(4):
            time.sleep(random.random())
            until(lambda: bank.moved, "something was moved")
            moved.append(set(bank.moved))
            done = server.sluice("backup", f"copy{at}")
            assert done.returncode == 0, done.stderr

    moving(bank, backups)
    for at, before in enumerate(moved):
        place = tmp_path / f"restored{at}"
        place.mkdir()
        shutil.copy(tmp_path / "data.key", place)
        done = server.sluice("restore", f"copy{at}", f"{place}/data", "--key-source", f"file:{place}/data.key")
        assert done.returncode == 0, done.stderr
        restored = Sharded(place)
        sent = Accounts(asking(restored)).sent_wholly()
        assert before <= sent <= bank.moved | bank.unknown
        assert restored.stop() == 0


class Copies:
    """Backups of nodes of a cluster, each with what was moved before it."""

    def __init__(self, cluster: Three, bank: Bank, make):
        self.cluster, self.bank, self.make, self.made = cluster, bank, make, []

    def back_up(self, node) -> str:
        """The error; empty: it is made."""
        until(lambda: self.bank.moved, "something was moved")
        before, name = set(self.bank.moved), f"copy{len(self.made)}"
        done = node.run("backup", name)
        if done.returncode != 0:
            return done.stderr
        self.made.append((node, name, before))
        return ""

    def check(self):
        for node, name, before in self.made:
            alone = self.make(name)
            shutil.copy(node.directory / "data.key", alone.directory)
            copy = node.directory / name
            done = alone.run("restore", str(copy), "data", "--key-source", "file:data.key")
            assert done.returncode == 0, done.stderr
            alone.start("--shards=2", "--tls", "auto")
            sent = Accounts(lambda *call, alone=alone: alone.request(*call[:3])).sent_wholly()
            assert before <= sent <= self.bank.moved | self.bank.unknown
            alone.kill()


def test_a_backup_of_any_node_has_all_of_a_transaction_or_nothing(machines):  # noqa: F811
    cluster = Three(machines)
    cluster.let_lead(0, cluster.nodes[0])
    cluster.let_lead(1, cluster.nodes[1])
    bank = Bank(cluster.ask)
    copies = Copies(cluster, bank, machines)

    def backups():
        for node in cluster.nodes * 2:
            time.sleep(random.random() / 2)
            failed = copies.back_up(node)
            assert not failed, failed

    moving(bank, backups)
    assert len(copies.made) == 6
    copies.check()


def test_a_backup_has_no_half_of_a_transaction_while_leaderships_move(machines):  # noqa: F811
    cluster = Three(machines)
    bank = Bank(cluster.ask)
    copies = Copies(cluster, bank, machines)
    done = threading.Event()

    def transfers():
        while not done.is_set():
            body = {"node": random.randrange(1, 4), "shards": [random.randrange(2)]}
            cluster.ask("POST", "/v1/cluster/transfer", body)
            time.sleep(random.random())

    def backups():
        moves = threading.Thread(target=transfers)
        moves.start()
        for node in cluster.nodes * 2:
            failed = copies.back_up(node)
            assert not failed or "no_leader" in failed or "make the backup again" in failed, failed
        done.set()
        moves.join()

    moving(bank, backups)
    assert copies.made
    copies.check()

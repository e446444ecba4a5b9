"""What ends a delivery, and what makes it longer."""

from __future__ import annotations

from dataclasses import dataclass

from ._fields import made
from ._proto import common_pb2 as pb
from ._values import Duration, Payload, encode, millis

#: Longest text of an error that the server keeps, in bytes.
ERROR_MAX = 4096


@dataclass(frozen=True)
class Settlement:
    """How a delivery ends."""

    item: pb.Settlement

    @staticmethod
    def ack(receipt: str, result: Payload | None = None, *, add_cost: int | None = None) -> Settlement:
        """Done. A cost is added to what the message has spent of its limit."""
        item = made(pb.Settlement, receipt=receipt, outcome="ack", add_cost=add_cost)
        if result is not None:
            item.result, content_type = encode(result, "result")
            if content_type:
                item.result_content_type = content_type
        return Settlement(item)

    @staticmethod
    def nack(
        receipt: str, error: str = "", delay: Duration | None = None, *, add_cost: int | None = None
    ) -> Settlement:
        """Failed, for another attempt."""
        return Settlement(_settlement(receipt, "nack", error, delay, add_cost))

    @staticmethod
    def release(receipt: str, delay: Duration | None = None, *, add_cost: int | None = None) -> Settlement:
        """Not now."""
        return Settlement(_settlement(receipt, "release", "", delay, add_cost))

    @staticmethod
    def reject(receipt: str, error: str = "", *, add_cost: int | None = None) -> Settlement:
        """Failed for good."""
        return Settlement(_settlement(receipt, "reject", error, None, add_cost))


def _settlement(
    receipt: str, outcome: str, error: str, delay: Duration | None, add_cost: int | None
) -> pb.Settlement:
    item = made(pb.Settlement, receipt=receipt, outcome=outcome, add_cost=add_cost)
    if error:
        item.error = error.encode(errors="replace")[:ERROR_MAX].decode(errors="ignore")
    if delay is not None:
        item.delay_ms = millis(delay, "delay")
    return item


def extension(
    receipt: str,
    lease: Duration | None = None,
    percent: int | None = None,
    note: str | None = None,
    checkpoint: bytes | None = None,
    add_cost: int | None = None,
) -> pb.Extension:
    """A lease that begins anew, with a report."""
    item = made(pb.Extension, receipt=receipt, checkpoint=checkpoint, add_cost=add_cost)
    if lease is not None:
        item.lease_ms = millis(lease, "lease")
    if percent is not None or note is not None:
        item.progress.CopyFrom(made(pb.Report, percent=percent, note=note))
    return item

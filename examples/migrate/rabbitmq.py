#!/usr/bin/env python3
"""Moves the messages of a RabbitMQ queue into a queue of Sluice.

  pip install ./sdks/python pika
  python rabbitmq.py orders
  python rabbitmq.py orders --to shop-orders --url amqp://guest:guest@localhost:5672/%2F

Stop the consumers first. The script may be killed and started again at any time: RabbitMQ then gives the messages
that were not acked once more, and the ledger tells which of them were sent. They are told apart by `message_id`; those
without one by their content, and how often it occurs.
"""

import argparse
import hashlib
import sys

import pika
from ledger import Ledger, Taken, is_full, move

import sluice

Frame = tuple[pika.spec.Basic.GetOk, pika.BasicProperties, bytes]


def headers(properties: pika.BasicProperties) -> dict[str, str]:
    """Headers that are texts or numbers. Those of the broker begin with `x-`."""
    kept = {
        name: str(value)
        for name, value in (properties.headers or {}).items()
        if isinstance(value, (str, int, float)) and not name.startswith("x-")
    }
    if properties.type:
        kept["rabbitmq-type"] = properties.type
    return kept


def id_of(properties: pika.BasicProperties, body: bytes) -> str:
    if properties.message_id:
        return properties.message_id
    told = repr(sorted(headers(properties).items())).encode()
    return hashlib.sha256(told + b"\0" + body).hexdigest()


def message(frame: Frame) -> Taken:
    got, properties, body = frame
    sent = {"headers": headers(properties), "priority": min(properties.priority or 0, 9)}
    if properties.content_type:
        sent["content_type"] = properties.content_type
    if properties.correlation_id:
        sent["correlation_id"] = properties.correlation_id
    if properties.expiration:
        sent["ttl"] = int(properties.expiration) / 1000
    return Taken(id_of(properties, body), body, sent, again=got.redelivered)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queue", help="name of the queue in RabbitMQ")
    parser.add_argument("--to", help="queue in Sluice; default: the same name")
    parser.add_argument("--url", default="amqp://guest:guest@localhost:5672/%2F")
    given = parser.parse_args()
    connection = pika.BlockingConnection(pika.URLParameters(given.url))
    channel = connection.channel()
    last = 0

    def take() -> list[Taken]:
        nonlocal last
        batch: list[Taken] = []
        while not is_full(batch):
            frame = channel.basic_get(given.queue)
            if frame[0] is None:
                break
            last = frame[0].delivery_tag
            batch.append(message(frame))
        return batch

    def let_go(batch: list[Taken]) -> None:
        channel.basic_ack(last, multiple=True)
        # An ack has no answer. What is asked after it on the same channel is answered after it.
        channel.queue_declare(given.queue, passive=True)

    ledger = Ledger(sluice.Client(), given.to or given.queue, f"rabbitmq/{given.queue}")
    print(f"moved {move(ledger, take, let_go)} messages")
    connection.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

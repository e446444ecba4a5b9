"""Messages of RabbitMQ arrive once each, through kills; those without ids as often as they were there."""

import collections

import pika
from conftest import messages

COUNT = 6_000


def test_every_message_arrives_once(rabbitmq_url, client, migrate):
    connection = pika.BlockingConnection(pika.URLParameters(rabbitmq_url))
    channel = connection.channel()
    channel.queue_declare("orders", durable=True)
    channel.confirm_delivery()
    for n in range(COUNT):
        # Every third has an id; the bodies of the others occur four times.
        properties = pika.BasicProperties(
            delivery_mode=2, headers={"shop": "7"}, content_type="text/plain",
            message_id=f"id-{n}" if n % 3 == 0 else None,
        )
        body = f"order {n}" if n % 3 == 0 else f"again {n // 12}"
        channel.basic_publish("", "orders", body.encode(), properties)
    connection.close()
    sent = collections.Counter(f"order {n}" if n % 3 == 0 else f"again {n // 12}" for n in range(COUNT))
    assert migrate("rabbitmq.py", "orders", "--url", rabbitmq_url) > 2
    came = messages(client, "orders")
    assert collections.Counter(message.text for message in came) == sent
    assert came[0].headers["shop"] == "7" and came[0].content_type == "text/plain"

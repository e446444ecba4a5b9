"""Sends and works through one queue, over the SDK for Python or over nats-py with JetStream.

It prints one JSON object with the messages a second of both, and this process's processor time for each;
``scripts/bench-sdks`` starts the servers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Callable

#: Decimal digits at the beginning of each payload.
NUMBER = 16
QUEUE = "bench"
STALLED, FETCH_WITHIN = 300, 0.5


class Ledger:
    """Knows which messages have come, by their numbers."""

    def __init__(self, messages: int) -> None:
        self.seen, self.left, self.twice = bytearray(messages), messages, 0
        self.done = asyncio.Event()

    def came(self, payload: bytes) -> None:
        """Notes a message."""
        number = int(payload[:NUMBER])
        self.twice += self.seen[number]
        self.left -= not self.seen[number]
        self.seen[number] = 1
        if self.left == 0:
            self.done.set()


async def senders(args: argparse.Namespace, send: Callable) -> None:
    """Sends all messages in batches, as many at a time as the window has."""
    filler, batches = b"x" * (args.payload - NUMBER), iter(range(0, args.messages, args.batch))

    async def one() -> None:
        for first in batches:
            await send([b"%016d" % n + filler for n in range(first, min(first + args.batch, args.messages))])

    await asyncio.gather(*(one() for _ in range(args.window // args.batch)))


async def with_sluice(args: argparse.Namespace, ledger: Ledger, timed: Callable) -> None:
    from sluice import aio

    async with aio.Client(args.url) as client:

        async def send(payloads: list[bytes]) -> None:
            await client.send_many(QUEUE, payloads)

        async def handle(job: aio.Job) -> None:
            ledger.came(job.message.payload)

        async def work() -> None:
            worker = aio.Worker(client, QUEUE, handle, concurrency=args.batch, prefetch=args.window - args.batch)
            running = asyncio.create_task(worker.run())
            await asyncio.wait_for(ledger.done.wait(), STALLED)
            worker.stop()
            assert (await running).acked == args.messages

        await timed("send", senders(args, send))
        await timed("work", work())


async def with_jetstream(args: argparse.Namespace, ledger: Ledger, timed: Callable) -> None:
    import nats
    from nats.js.api import ConsumerConfig, RetentionPolicy

    connection = await nats.connect(args.url)
    context = connection.jetstream(publish_async_max_pending=args.window)
    await context.add_stream(name=QUEUE, subjects=[QUEUE], retention=RetentionPolicy.WORK_QUEUE)

    async def send(payloads: list[bytes]) -> None:
        await asyncio.gather(*[await context.publish_async(QUEUE, payload) for payload in payloads])

    async def fetch() -> None:
        # Nothing is to come again because the machine is slow; Sluice's workers renew their leases.
        config = ConsumerConfig(max_ack_pending=1 << 16, ack_wait=STALLED)
        subscription = await context.pull_subscribe(QUEUE, durable="workers", config=config)
        while True:
            # Of less than a batch it hands over nothing before the end of this time.
            try:
                messages = await subscription.fetch(args.batch, timeout=FETCH_WITHIN)
            except asyncio.TimeoutError:
                continue
            for message in messages:
                ledger.came(message.data)
                await message.ack()

    async def work() -> None:
        fetching = [asyncio.create_task(fetch()) for _ in range(args.window // args.batch)]
        await asyncio.wait_for(ledger.done.wait(), STALLED)
        # The server has seen the last ack when it answers.
        await connection.flush()
        for task in fetching:
            task.cancel()
        await asyncio.gather(*fetching, return_exceptions=True)

    await timed("send", senders(args, send))
    await timed("work", work())
    await connection.close()


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--system", choices=["sluice", "jetstream"], required=True)
    parser.add_argument("--url", required=True)
    for name in ("messages", "payload", "window", "batch"):
        parser.add_argument(f"--{name}", type=int, required=True)
    args = parser.parse_args()
    ledger, figures = Ledger(args.messages), {}

    async def timed(phase: str, work: object) -> None:
        began, cpu_began = time.perf_counter(), time.process_time()
        await work
        figures[f"{phase}_per_s"] = args.messages / (time.perf_counter() - began)
        figures[f"{phase}_cpu_us"] = (time.process_time() - cpu_began) * 1e6 / args.messages

    await (with_sluice if args.system == "sluice" else with_jetstream)(args, ledger, timed)
    print(json.dumps(figures | {"missing": ledger.left, "twice": ledger.twice}))


asyncio.run(main())

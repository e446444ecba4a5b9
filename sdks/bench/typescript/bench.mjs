// Sends and works through one queue, over the SDK for TypeScript or over NATS's client with JetStream. It
// prints one JSON object with the messages a second of both, and this process's processor time for each;
// scripts/bench-sdks starts the servers.
import { parseArgs } from "node:util";

/** Decimal digits at the beginning of each payload. */
const NUMBER = 16;
const QUEUE = "bench";
const STALLED_MS = 300_000;

const text = { type: "string" };
const { values } = parseArgs({
  options: { system: text, url: text, messages: text, payload: text, window: text, batch: text },
});
const [messages, payload, window, batch] = ["messages", "payload", "window", "batch"].map((n) => +values[n]);

const filler = "x".repeat(payload - NUMBER);
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const payloadOf = (number) => encoder.encode(String(number).padStart(NUMBER, "0") + filler);

/** Knows which messages have come, by their numbers. */
class Ledger {
  left = messages;
  twice = 0;
  #seen = new Uint8Array(messages);
  #done;
  done = new Promise((resolve) => (this.#done = resolve));

  came(bytes) {
    const number = Number(decoder.decode(bytes.subarray(0, NUMBER)));
    this.twice += this.#seen[number];
    this.left -= 1 - this.#seen[number];
    this.#seen[number] = 1;
    if (this.left === 0) this.#done();
  }
}

const ledger = new Ledger();
const figures = {};

async function timed(phase, work) {
  const [began, cpuBegan] = [performance.now(), process.cpuUsage()];
  await work();
  figures[`${phase}_per_s`] = (messages / (performance.now() - began)) * 1_000;
  const { user, system } = process.cpuUsage(cpuBegan);
  figures[`${phase}_cpu_us`] = (user + system) / messages;
}

/** Sends all messages in batches, as many at a time as the window has. */
async function senders(send) {
  let next = 0;
  const one = async () => {
    while (next < messages) {
      const first = next;
      next += batch;
      const count = Math.min(batch, messages - first);
      await send(Array.from({ length: count }, (_, index) => payloadOf(first + index)));
    }
  };
  await Promise.all(Array.from({ length: window / batch }, one));
}

async function withSluice() {
  const { Client } = await import("@sluice/client");
  const client = new Client({ servers: values.url });
  await timed("send", () =>
    senders((payloads) => client.sendMany(QUEUE, payloads.map((payload) => ({ payload })))));
  await timed("work", async () => {
    const handle = (job) => ledger.came(job.bytes);
    const worker = client.worker(QUEUE, handle, { concurrency: batch, prefetch: window - batch });
    await ledger.done;
    const { acked } = await worker.stop();
    if (acked !== messages) throw new Error(`${acked} messages were acked`);
  });
  client.close();
}

async function withJetStream() {
  const { connect } = await import("@nats-io/transport-node");
  const { jetstream, jetstreamManager } = await import("@nats-io/jetstream");
  const connection = await connect({ servers: values.url });
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: QUEUE, subjects: [QUEUE], retention: "workqueue" });
  // Nothing is to come again because the machine is slow; Sluice's workers renew their leases.
  const [ackWait, most] = [STALLED_MS * 1_000_000, 1 << 16];
  const config = { durable_name: "workers", ack_policy: "explicit", max_ack_pending: most, ack_wait: ackWait };
  await manager.consumers.add(QUEUE, config);
  const stream = jetstream(connection);
  await timed("send", () =>
    senders((payloads) => Promise.all(payloads.map((payload) => stream.publish(QUEUE, payload)))));
  await timed("work", async () => {
    const consumer = await stream.consumers.get(QUEUE, "workers");
    const coming = await consumer.consume({ max_messages: window, threshold_messages: window - batch });
    for await (const message of coming) {
      ledger.came(message.data);
      message.ack();
      if (ledger.left === 0) break;
    }
    // The server has seen the last ack when it answers.
    await connection.flush();
  });
  await connection.close();
}

const stalled = setTimeout(() => {
  console.error(`${ledger.left} messages have not come`);
  process.exit(1);
}, STALLED_MS);
await (values.system === "sluice" ? withSluice() : withJetStream());
clearTimeout(stalled);
console.log(JSON.stringify({ ...figures, missing: ledger.left, twice: ledger.twice }));

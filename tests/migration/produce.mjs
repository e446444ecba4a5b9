// Adds jobs of every kind to a BullMQ queue: node produce.mjs REDIS_PORT QUEUE COUNT
import { FlowProducer, Queue } from "bullmq";

const [port, name, count] = [Number(process.argv[2]), process.argv[3], Number(process.argv[4])];
const connection = { host: "127.0.0.1", port };
const queue = new Queue(name, { connection });

const kinds = [
  {},
  { priority: 1 },
  { priority: 7 },
  { delay: 3_600_000 },
  { attempts: 8, backoff: { type: "exponential", delay: 2_000 } },
];
const jobs = Array.from({ length: count }, (_, n) => ({
  name: `kind-${n % kinds.length}`, data: { n }, opts: kinds[n % kinds.length],
}));
for (let at = 0; at < jobs.length; at += 500) await queue.addBulk(jobs.slice(at, at + 500));

const flows = new FlowProducer({ connection });
await flows.add({ name: "album", queueName: `${name}-albums`, children: [{ name: "page", queueName: name, data: {} }] });
await Promise.all([queue.close(), flows.close()]);

import { expect } from "vitest";
import { Client, type HeldLock } from "../../src/index.js";
import { startCluster } from "../support/cluster.js";
import { DiskServer } from "../support/disk.js";
import { pause, until } from "../support/until.js";

/** Sends, a worker and a lock go on while the node to which they are connected is killed. */
export async function failover(): Promise<void> {
  await using cluster = await startCluster();
  const client = cluster.client({});
  let asked = "";
  await goesOn(client, async () => {
    asked = client.server;
    cluster.kill(asked);
  });
  expect(client.server).not.toBe(asked);
}

/** Sends, a worker and a lock go on while the only server is killed and started again. */
export async function restart(): Promise<void> {
  await using server = await DiskServer.make();
  await using client = new Client({ servers: server.url, connectRetryForMs: 30_000 });
  await goesOn(client, async () => {
    await server.end("SIGKILL");
    await server.start();
  });
}

async function goesOn(client: Client, kill: () => Promise<void>): Promise<void> {
  const held = await client.lock("leader", { ttlMs: 15_000 });
  const [sent, handled] = [new Set<string>(), new Set<string>()];
  const worker = client.worker("jobs", (job) => void handled.add(job.id), { concurrency: 4 });
  const sending = send(client, "jobs", 60, sent);
  await until(() => sent.size >= 20 && handled.size > 0);
  await kill();
  await sending;
  expect(sent.size).toBe(60);
  await until(() => [...sent].every((id) => handled.has(id)), 30_000);
  await lockIsStillHeld(client, held);
  await worker.stop();
}

async function send(client: Client, queue: string, count: number, sent: Set<string>): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    sent.add((await client.send(queue, `${n}`)).id);
    await pause(10);
  }
}

async function lockIsStillHeld(client: Client, held: HeldLock): Promise<void> {
  expect(held.signal.aborted).toBe(false);
  const { holders } = await client.locks.show("leader");
  expect(holders.map(({ fencingToken }) => fencingToken)).toEqual([held.fencingToken]);
  await held.release();
}

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";
import { Client, type TlsOptions } from "../../src/index.js";
import { freePorts } from "./ports.js";

/** Three nodes of one cluster on this machine. */
export interface Cluster extends AsyncDisposable {
  /** A client, which is closed with the cluster; one after another asks another node first. */
  client(options: { namespace?: string }): Client;
  /** Kills the node at this address with SIGKILL. */
  kill(url: string): void;
}

interface Ready {
  ca: string;
  cert: string;
  key: string;
  nodes: { url: string; pid: number }[];
}

/** Starts a cluster with `sluice cluster dev`, and waits until it has a leader. */
export async function startCluster(): Promise<Cluster> {
  const bin = process.env.SLUICE_BIN || "sluice";
  const folder = await mkdtemp(join(process.env.SLUICE_TEST_DIR ?? tmpdir(), "cluster-"));
  const port = await freePorts(3);
  const args = ["cluster", "dev", "--json", "--dir", join(folder, "nodes"), "--port", String(port)];
  const child = spawn(bin, args, { stdio: ["ignore", "pipe", "ignore"] });
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const ready = JSON.parse(line) as Ready;
  const [ca, cert, key] = await Promise.all([ready.ca, ready.cert, ready.key].map((path) => readFile(path)));
  const [urls, clients] = [ready.nodes.map(({ url }) => url), [] as Client[]];
  const cluster: Cluster = {
    client(options) {
      const first = clients.length % urls.length;
      const servers = [...urls.slice(first), ...urls.slice(0, first)];
      const client = new Client({ ...options, servers, tls: { ca, cert, key } as TlsOptions });
      clients.push(client);
      return client;
    },
    kill(url) {
      process.kill(ready.nodes.find((node) => node.url === url)?.pid as number, "SIGKILL");
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.close();
      const ended = once(child, "exit");
      child.kill("SIGINT");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
  try {
    // It is repeated until there is a leader.
    await cluster.client({}).send("begin", "");
    return cluster;
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

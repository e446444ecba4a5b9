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
  urls: string[];
  tls: TlsOptions;
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
  const cluster = {
    urls: ready.nodes.map(({ url }) => url),
    tls: { ca, cert, key } as TlsOptions,
    kill(url: string) {
      process.kill(ready.nodes.find((node) => node.url === url)?.pid as number, "SIGKILL");
    },
    async [Symbol.asyncDispose]() {
      const ended = once(child, "exit");
      child.kill("SIGINT");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
  try {
    await using client = new Client({ servers: cluster.urls, tls: cluster.tls });
    // It is repeated until there is a leader.
    await client.send("begin", "");
    return cluster;
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

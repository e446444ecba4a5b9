import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { freePorts } from "./ports.js";

/** A server whose data outlive it, always at the same address. */
export class DiskServer implements AsyncDisposable {
  readonly url: string;
  readonly #folder: string;
  #process: ChildProcess | undefined;

  private constructor(url: string, folder: string) {
    this.url = url;
    this.#folder = folder;
  }

  static async make(): Promise<DiskServer> {
    const folder = await mkdtemp(join(process.env.SLUICE_TEST_DIR ?? tmpdir(), "disk-"));
    const server = new DiskServer(`http://127.0.0.1:${await freePorts(1)}`, folder);
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    const listen = new URL(this.url).host;
    const args = ["serve", "--json", "--listen", listen, "--data-dir", join(this.#folder, "data")];
    const child = spawn(process.env.SLUICE_BIN || "sluice", args, { stdio: ["ignore", "pipe", "ignore"] });
    this.#process = child;
    await once(createInterface({ input: child.stdout }), "line");
  }

  /** Ends it, in order with SIGTERM or at once with SIGKILL. */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const ended = once(this.#process as ChildProcess, "exit");
    this.#process?.kill(signal);
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
    await rm(this.#folder, { recursive: true });
  }
}

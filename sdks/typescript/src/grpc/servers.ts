import type { SluiceError } from "../core/errors.js";
import { mayDoBetterElsewhere } from "../core/retry.js";
import type { ResolvedOptions } from "../options.js";
import { connection, type Connection } from "./connection.js";

/** The servers of a client, and which of them is asked. */
export class Servers {
  readonly #all: readonly Connection[];
  #current = 0;

  constructor(options: ResolvedOptions) {
    this.#all = options.servers.map((url) => connection(url, options));
  }

  /** The server to ask. */
  get current(): Connection {
    return this.#all[this.#current] as Connection;
  }

  /** Number of other servers. */
  get others(): number {
    return this.#all.length - 1;
  }

  /**
   * Takes another server after an error of `asked` for which that may help: the leader that the error names,
   * else the next one. True if another one is asked now.
   */
  passOn(asked: Connection, error: SluiceError): boolean {
    if (this.others === 0 || !mayDoBetterElsewhere(error)) return false;
    const place = this.#all.indexOf(asked);
    // Another call may have passed on already.
    if (this.#current === place) this.#current = this.#leader(error) ?? (place + 1) % this.#all.length;
    return this.#current !== place;
  }

  close(): void {
    for (const each of this.#all) each.close();
  }

  #leader(error: SluiceError): number | undefined {
    const { address } = error.details;
    const place = this.#all.findIndex((each) => new URL(each.url).host === address);
    return place < 0 ? undefined : place;
  }
}

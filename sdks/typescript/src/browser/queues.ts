import { pages } from "../pages.js";
import type { Http } from "./http.js";
import type { Json } from "./json.js";

/** A queue with its numbers, named as in the API. */
export interface QueueStatistics {
  name: string;
  /** Messages by their state. */
  counts: Readonly<
    Record<"delayed" | "ready" | "leased" | "held" | "dead" | "blocked" | "done", number>
  >;
  /** What has happened since the queue was created: `sent`, `acked` and the like. */
  totals: Readonly<Record<string, number>>;
  bytes: number;
  paused: boolean;
  closed: boolean;
  /** Time since the message that is next in line was sent; `undefined`: none is ready. */
  oldestReadyAgeMs: number | undefined;
}

/** What is known about queues. */
export class Queues {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** One queue; `queue_not_found` if there is none. */
  async get(queue: string): Promise<QueueStatistics> {
    const path = `/queues/${encodeURIComponent(queue)}`;
    return statisticsOf(await this.#http.call<Json>({ method: "GET", path }));
  }

  /** All queues by name, or those whose names begin with `prefix`. */
  async *list(options: { prefix?: string } = {}): AsyncIterable<QueueStatistics> {
    const { prefix } = options;
    const page = async (after: string | undefined): Promise<{ queues: Json[]; next: string }> => {
      const query = { prefix, after };
      const answer = await this.#http.call<{ queues: Json[] }>({ method: "GET", path: "/queues", query });
      return { next: "", ...answer };
    };
    for await (const { queues } of pages(page)) yield* queues.map(statisticsOf);
  }
}

function statisticsOf(fields: Json): QueueStatistics {
  const settings = fields["settings"] as { paused: boolean; closed: boolean };
  return {
    name: fields["name"] as string,
    counts: fields["counts"] as QueueStatistics["counts"],
    totals: fields["totals"] as QueueStatistics["totals"],
    bytes: fields["bytes"] as number,
    paused: settings.paused,
    closed: settings.closed,
    oldestReadyAgeMs: fields["oldest_ready_age_ms"] as number | undefined,
  };
}

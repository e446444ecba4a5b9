import { SluiceError } from "../core/errors.js";
import type { Calls } from "../calls.js";
import type { Delivered } from "../gen/sluice/v1/common_pb.js";
import type { FrameResult, ServerFrame } from "../gen/sluice/v1/session_pb.js";
import { fromWire } from "../grpc/errors.js";
import { Frames, type FrameInit } from "./frames.js";

/** The number of the worker's consumer within its session. */
export const CONSUMER = 1;
/** Time without a frame after which a session counts as broken; the server sends one every 20 s. */
const SILENCE_MAX_MS = 60_000;

/** What a session tells. */
export interface SessionEvents {
  delivered(messages: Delivered[]): void;
  cancelled(receipts: string[]): void;
  /** The server is about to stop: settle, end the session, and connect again. */
  draining(): void;
}

interface Pending {
  resolve(result: FrameResult): void;
  reject(error: SluiceError): void;
}

/** One session, from its beginning to its end. */
export class Session {
  readonly #frames = new Frames();
  readonly #pending = new Map<bigint, Pending>();
  readonly #events: SessionEvents;
  readonly #cut = new AbortController();
  #silence: NodeJS.Timeout | undefined;

  constructor(events: SessionEvents) {
    this.#events = events;
  }

  /** Number of frames that the server has not answered. */
  get unanswered(): number {
    return this.#pending.size;
  }

  /** Reads until the session ends. Throws the reason unless it was ended by {@link end}. */
  async run(calls: Calls): Promise<void> {
    let reason = new SluiceError("unreachable", "the session has ended", { mayHaveTakenEffect: true });
    try {
      this.#listen();
      for await (const frame of calls.sessions.session(this.#frames, { signal: this.#cut.signal })) {
        this.#listen();
        this.#hear(frame);
      }
    } catch (thrown) {
      if (!(thrown instanceof SluiceError)) throw thrown;
      reason = thrown;
    } finally {
      clearTimeout(this.#silence);
      this.#frames.end();
      for (const { reject } of this.#pending.values()) reject(reason);
      this.#pending.clear();
    }
    throw reason;
  }

  /** Sends a frame and waits for its result. Rejects if it is refused, or the session ends before. */
  async ask(frame: FrameInit): Promise<FrameResult> {
    const result = await new Promise<FrameResult>((resolve, reject) => {
      this.#pending.set(this.#frames.push(frame), { resolve, reject });
    });
    if (result.error !== undefined) throw fromWire(result.error);
    return result;
  }

  /** Ends the session, once what was asked is sent. */
  end(): void {
    this.#frames.end();
  }

  /** Breaks it off. */
  cut(reason: SluiceError): void {
    this.#cut.abort(reason);
  }

  #listen(): void {
    clearTimeout(this.#silence);
    const silent = new SluiceError("unreachable", "nothing came for a minute", { mayHaveTakenEffect: true });
    this.#silence = setTimeout(() => this.cut(silent), SILENCE_MAX_MS).unref();
  }

  #hear({ frame }: ServerFrame): void {
    switch (frame.case) {
      case "result":
        this.#pending.get(frame.value.number)?.resolve(frame.value);
        this.#pending.delete(frame.value.number);
        return;
      case "deliveries":
        return this.#events.delivered(frame.value.messages);
      case "cancellations":
        return this.#events.cancelled(frame.value.receipts);
      case "draining":
        return this.#events.draining();
      case "detached":
        return this.cut(new SluiceError("unreachable", "the consumer was detached"));
      default:
    }
  }
}

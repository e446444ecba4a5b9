import { fromBinary } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { SluiceError } from "../core/errors.js";
import type { ReadFrame } from "../gen/sluice/client/frames_pb.js";
import { CancellationsSchema, FrameResultSchema } from "../gen/sluice/v1/session_pb.js";
import type { FrameResult } from "../gen/sluice/v1/session_pb.js";
import { fromWire } from "../grpc/errors.js";
import { Frames, type FrameInit } from "./frames.js";
import { openSession, readDeliveries, type WireDelivered } from "./reading.js";

/** The number of the worker's consumer within its session. */
export const CONSUMER = 1;
/** Time without a frame after which a session counts as broken; the server sends one every 20 s. */
const SILENCE_MAX_MS = 60_000;

/** What a session tells. */
export interface SessionEvents {
  delivered(messages: WireDelivered[]): void;
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
  async run(transport: Transport): Promise<void> {
    let reason = new SluiceError("unreachable", "the session has ended", { mayHaveTakenEffect: true });
    try {
      this.#listen();
      for await (const frame of openSession(transport, this.#frames, this.#cut.signal)) {
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
    this.#silence ??= setTimeout(() => {
      const text = "nothing came for a minute";
      this.cut(new SluiceError("unreachable", text, { mayHaveTakenEffect: true }));
    }, SILENCE_MAX_MS).unref();
    this.#silence.refresh();
  }

  #hear({ frame }: ReadFrame): void {
    switch (frame.case) {
      case "result":
        return this.#answered(fromBinary(FrameResultSchema, frame.value));
      case "deliveries":
        return this.#events.delivered(readDeliveries(frame.value));
      case "cancellations":
        return this.#events.cancelled(fromBinary(CancellationsSchema, frame.value).receipts);
      case "draining":
        return this.#events.draining();
      case "detached":
        return this.cut(new SluiceError("unreachable", "the consumer was detached"));
      default:
    }
  }

  #answered(result: FrameResult): void {
    this.#pending.get(result.number)?.resolve(result);
    this.#pending.delete(result.number);
  }
}

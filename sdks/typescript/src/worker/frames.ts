import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ClientFrameSchema, type ClientFrame } from "../gen/sluice/v1/session_pb.js";

/** What a frame says, without its number. */
export type FrameInit = NonNullable<MessageInitShape<typeof ClientFrameSchema>["frame"]>;

/** The client's side of a session: frames, numbered from 1 on, in the order in which they were put in. */
export class Frames implements AsyncIterable<ClientFrame> {
  readonly #waiting: ClientFrame[] = [];
  #count = 0n;
  #ended = false;
  #wake: (() => void) | undefined;

  /** Puts a frame in; returns its number. */
  push(frame: FrameInit): bigint {
    this.#count += 1n;
    this.#waiting.push(create(ClientFrameSchema, { number: this.#count, frame }));
    this.#wake?.();
    return this.#count;
  }

  /** Ends the session, once what was put in is sent. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<ClientFrame> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) yield next;
      else if (this.#ended) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

import { BinaryReader, type WireType } from "@bufbuild/protobuf/wire";
import type { Transport } from "@connectrpc/connect";
import { ReadFrameSchema, type ReadFrame } from "../gen/sluice/client/frames_pb.js";
import type { Delivered, Header } from "../gen/sluice/v1/common_pb.js";
import { Sessions, type ClientFrame } from "../gen/sluice/v1/session_pb.js";

/** A message that was delivered, without what the generated code adds. */
export type WireDelivered = Omit<Delivered, "$typeName" | "$unknown" | "headers"> & {
  headers: readonly Pick<Header, "name" | "value">[];
};

/** The session, with frames of the server whose contents are octets. */
const SESSION = { ...Sessions.method.session, output: ReadFrameSchema };
const NOTHING = new Uint8Array();

/** Opens a session; the frames of the server come until it ends. */
export async function* openSession(
  transport: Transport,
  frames: AsyncIterable<ClientFrame>,
  signal: AbortSignal,
): AsyncIterable<ReadFrame> {
  const { message } = await transport.stream(SESSION, signal, undefined, undefined, frames);
  yield* message;
}

/**
 * Reads the messages of a `sluice.v1.Deliveries`, by the numbers of the fields in the contract. Most of what a
 * worker does besides its handlers is to read messages, and the generated code takes several times as long.
 */
export function readDeliveries(octets: Uint8Array): WireDelivered[] {
  const messages: WireDelivered[] = [];
  const reader = new BinaryReader(octets, decodeUtf8);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag >>> 3 === 2) messages.push(readDelivered(reader));
    else skip(reader, tag);
  }
  return messages;
}

function readDelivered(reader: BinaryReader): WireDelivered {
  const end = reader.uint32() + reader.pos;
  const headers: { name: string; value: string }[] = [];
  const tags: string[] = [];
  const made: WireDelivered = {
    id: "", receipt: "", queue: "", payload: NOTHING, contentType: "", headers, tags, priority: 0, attempt: 0,
    maxAttempts: 0, deliveries: 0, sentAtMs: 0n, leaseUntilMs: 0n, fromQueue: "", reason: "",
    correlationId: "", replyTo: "", checkpointContentType: "",
  };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag >>> 3) {
      case 1: made.id = reader.string(); break;
      case 2: made.receipt = reader.string(); break;
      case 3: made.queue = reader.string(); break;
      case 4: made.payload = bytes(reader); break;
      case 5: made.contentType = reader.string(); break;
      case 6: headers.push(readHeader(reader)); break;
      case 7: tags.push(reader.string()); break;
      case 8: made.priority = reader.uint32(); break;
      case 9: made.attempt = reader.uint32(); break;
      case 10: made.maxAttempts = reader.uint32(); break;
      case 11: made.deliveries = reader.uint32(); break;
      case 12: made.sentAtMs = reader.uint64() as bigint; break;
      case 13: made.leaseUntilMs = reader.uint64() as bigint; break;
      case 14: made.fromQueue = reader.string(); break;
      case 15: made.reason = reader.string(); break;
      case 16: made.correlationId = reader.string(); break;
      case 17: made.replyTo = reader.string(); break;
      case 18: made.checkpoint = bytes(reader); break;
      case 19: made.checkpointContentType = reader.string(); break;
      default: skip(reader, tag);
    }
  }
  return made;
}

function readHeader(reader: BinaryReader): { name: string; value: string } {
  const end = reader.uint32() + reader.pos;
  const made = { name: "", value: "" };
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag >>> 3 === 1) made.name = reader.string();
    else if (tag >>> 3 === 2) made.value = reader.string();
    else skip(reader, tag);
  }
  return made;
}

function bytes(reader: BinaryReader): Uint8Array<ArrayBuffer> {
  return reader.bytes() as Uint8Array<ArrayBuffer>;
}

/** Leaves out a field that this library does not know yet. */
function skip(reader: BinaryReader, tag: number): void {
  reader.skip((tag & 7) as WireType, tag >>> 3);
}

function decodeUtf8(octets: Uint8Array): string {
  return Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength).toString();
}

import { invalid } from "./errors.js";

/**
 * A content: octets as they are, a text as UTF-8, anything else as JSON, with `application/json` as its
 * media type unless another one is given.
 */
export type Payload = Uint8Array | string | JsonValue;

/** What JSON can hold. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue | undefined };

const HALF_A_LETTER = /\p{Surrogate}/u;
const SUSPECT = /null|\\ud[89a-f]/;
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** A content as octets. */
export interface Encoded {
  bytes: Uint8Array<ArrayBuffer>;
  /** Its media type; empty: none. */
  contentType: string;
}

/**
 * The octets and the media type of a content. An error `invalid_argument` with the field in its details says
 * that neither UTF-8 nor JSON can hold it.
 */
export function encode(payload: Payload, contentType?: string, field = "payload"): Encoded {
  if (payload instanceof Uint8Array) {
    return { bytes: payload as Uint8Array<ArrayBuffer>, contentType: contentType ?? "" };
  }
  if (typeof payload === "string") {
    if (HALF_A_LETTER.test(payload)) throw invalid(field, "a text with half of a pair of surrogates is no UTF-8");
    return { bytes: ENCODER.encode(payload), contentType: contentType ?? "" };
  }
  return { bytes: ENCODER.encode(jsonOf(payload, field)), contentType: contentType ?? "application/json" };
}

/** A value as JSON, if that can hold all of it; else an error as that of {@link encode}. */
export function jsonOf(value: unknown, field: string): string {
  let json: string | undefined;
  try {
    json = JSON.stringify(value) as string | undefined;
    // Only what looks so may be a number that is none, or half a letter: to look at each value takes time.
    if (json !== undefined && SUSPECT.test(json)) JSON.stringify(value, refuse);
  } catch (cause) {
    throw invalid(field, `no JSON can be made of it: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
  if (json === undefined) throw invalid(field, `no content can be made of ${named(value)}`);
  return json;
}

/** A part of JSON as it is; throws of one that JSON would change without a word. */
function refuse(this: unknown, name: string, part: unknown): unknown {
  if (typeof part === "number" && !Number.isFinite(part)) throw new RangeError(`${part} is no number of JSON`);
  if (HALF_A_LETTER.test(name) || (typeof part === "string" && HALF_A_LETTER.test(part))) {
    throw new TypeError("a text has half of a pair of surrogates");
  }
  if (Array.isArray(this) && ["undefined", "function", "symbol"].includes(typeof part)) {
    throw new TypeError(`an array has ${named(part)}`);
  }
  return part;
}

function named(value: unknown): string {
  return value === undefined ? "undefined" : `a ${typeof value}`;
}


/** A content that was read. */
export class Content {
  /** Its octets. */
  readonly bytes: Uint8Array;
  /** Its media type; empty: none was given. */
  readonly contentType: string;

  constructor(bytes: Uint8Array, contentType: string) {
    this.bytes = bytes;
    this.contentType = contentType;
  }

  /** The content as text. */
  text(): string {
    return DECODER.decode(this.bytes);
  }

  /** The content read as JSON. Its type is the caller's word: check what you do not trust. */
  json<T = unknown>(): T {
    return JSON.parse(this.text()) as T;
  }
}

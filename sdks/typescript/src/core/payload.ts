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

/** A content as octets. */
export interface Encoded {
  bytes: Uint8Array<ArrayBuffer>;
  /** Its media type; empty: none. */
  contentType: string;
}

/** The octets and the media type of a content. */
export function encode(payload: Payload, contentType?: string): Encoded {
  if (payload instanceof Uint8Array) {
    return { bytes: payload as Uint8Array<ArrayBuffer>, contentType: contentType ?? "" };
  }
  if (typeof payload === "string") {
    return { bytes: new TextEncoder().encode(payload), contentType: contentType ?? "" };
  }
  const json = JSON.stringify(payload);
  return { bytes: new TextEncoder().encode(json), contentType: contentType ?? "application/json" };
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
    return new TextDecoder().decode(this.bytes);
  }

  /** The content read as JSON. Its type is the caller's word: check what you do not trust. */
  json<T = unknown>(): T {
    return JSON.parse(this.text()) as T;
  }
}

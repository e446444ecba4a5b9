import { Content, encode, type Payload } from "../core/payload.js";
import { millis, type MessageOptions, type OutgoingMessage, type Step, type Time } from "../core/message.js";
import type { StepOptions } from "../core/message.js";
import type { DocumentInfo } from "../documents/stored.js";

/** An object of the API. */
export type Json = Record<string, unknown>;

/** A content of the API: as text in one field, or as base64 in another. */
export function contentFields(name: string, content: Payload, contentType: string | undefined): Json {
  const encoded = encode(content, contentType, name);
  const fields: Json =
    content instanceof Uint8Array
      ? { [`${name}_base64`]: toBase64(content) }
      : { [name]: new TextDecoder().decode(encoded.bytes) };
  if (encoded.contentType !== "") fields["content_type"] = encoded.contentType;
  return fields;
}

/** A content that the API has told. */
export function contentOf(fields: Json, name: string, typeName: string): Content | undefined {
  const [plain, base64] = [fields[name], fields[`${name}_base64`]];
  const type = (fields[typeName] as string | undefined) ?? "";
  if (typeof plain === "string") return new Content(new TextEncoder().encode(plain), type);
  return typeof base64 === "string" ? new Content(fromBase64(base64), type) : undefined;
}

/** The fields of a message to send. */
export function messageFields(message: OutgoingMessage): Json {
  const content = contentFields("payload", message.payload, message.contentType);
  return { ...optionFields(message), ...ownFields(message), ...content };
}

/** What a call tells of a document, without its content. */
export function infoOf(fields: Json): DocumentInfo {
  const expires = fields["expires_at_ms"] as number | undefined;
  return {
    key: fields["key"] as string,
    version: fields["version"] as number,
    etag: fields["etag"] as string,
    changedAt: new Date(fields["changed_at_ms"] as number),
    contentBytes: fields["content_bytes"] as number,
    expiresAt: expires === undefined ? undefined : new Date(expires),
    history: fields["history"] as number,
  };
}

function stepFields(step: Step): Json {
  const { payload, contentType } = step;
  const content = payload === undefined ? {} : contentFields("payload", payload, contentType);
  return { ...optionFields(step), ...content, queue: step.queue };
}

/** What only a message has, and no step. */
function ownFields({ unique, chain, onFailure, ...message }: MessageOptions): Json {
  return {
    unique: unique && {
      key: unique.key,
      window_ms: unique.windowMs,
      until: unique.until,
      on_duplicate: unique.onDuplicate,
    },
    depends_on: message.dependsOn,
    depends_mode: message.dependsMode,
    on_parent_failed: message.onParentFailed,
    chain: chain?.map(stepFields),
    on_failure: onFailure && stepFields(onFailure),
  };
}

function optionFields({ backoff, ...options }: StepOptions): Json {
  return {
    headers: options.headers,
    tags: options.tags,
    priority: options.priority,
    delay_ms: options.delayMs,
    deliver_at_ms: at(options.deliverAt),
    max_attempts: options.maxAttempts,
    backoff: backoff && {
      kind: backoff.kind,
      base_ms: backoff.baseMs,
      cap_ms: backoff.capMs,
      jitter_percent: backoff.jitterPercent,
    },
    ordering_key: options.orderingKey,
    fair_key: options.fairKey,
    limit_key: options.limitKey,
    cost: options.cost,
    ttl_ms: options.ttlMs,
    expires_at_ms: at(options.expiresAt),
    result_ttl_ms: options.resultTtlMs,
    correlation_id: options.correlationId,
    reply_to: options.replyTo,
    hold: options.hold,
  };
}

function at(time: Time | undefined): number | undefined {
  return time === undefined ? undefined : millis(time);
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

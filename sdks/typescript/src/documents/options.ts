import { encode, jsonOf, type JsonValue, type Payload } from "../core/payload.js";
import { whole } from "../grpc/numbers.js";

/** Conditions of a change, of which there is one at most besides `lock`. */
export interface Conditions {
  /** Only if the document has this version. */
  ifVersion?: number;
  /** Only if the document has this ETag. */
  ifEtag?: string;
  /** Only while this lock of the document's key is held: a held lock, or its token. */
  lock?: string | { readonly token: string };
}

/** Conditions of a write. */
export interface WriteConditions extends Conditions {
  /** Only if there is a document. */
  ifExists?: boolean;
  /** Only if there is none. */
  ifAbsent?: boolean;
}

/** The options of a write, which replaces the whole document. */
export interface PutOptions extends WriteConditions {
  contentType?: string;
  /** Names and values that are kept with the content. */
  attributes?: Readonly<Record<string, string>>;
  /** Time after which the document is gone; default: it stays. */
  ttlMs?: number;
  /** Number of former versions to keep; default: as before. */
  history?: number;
}

/** A change of a document whose content is JSON: one of these. */
export type Patch =
  | { /** A merge patch (RFC 7396). */ merge: JsonValue }
  | { /** A JSON patch (RFC 6902). */ json: readonly JsonValue[] }
  | { /** Numbers to add, by their JSON pointers. */ increment: Readonly<Record<string, number | bigint>> };

/** The fields of a write. */
export function putInit(key: string, content: Payload, options: PutOptions) {
  const { bytes, contentType } = encode(content, options.contentType, "content");
  const { attributes, history, ifExists, ifAbsent } = options;
  return {
    ...conditionsInit(options),
    key,
    content: bytes,
    contentType: contentType || undefined,
    attributes: { ...attributes },
    ttlMs: whole(options.ttlMs, "ttlMs"),
    history,
    ifExists,
    ifAbsent,
  };
}

/** The fields of a patch. */
export function patchInit(key: string, patch: Patch, options: Conditions) {
  return { ...conditionsInit(options), key, ...changeInit(patch) };
}

/** The fields of the conditions of a change. */
export function conditionsInit({ ifVersion, ifEtag, lock }: Conditions) {
  const token = typeof lock === "object" ? lock.token : lock;
  return { ifVersion: whole(ifVersion, "ifVersion"), ifEtag, token };
}

function changeInit(patch: Patch) {
  if ("merge" in patch) return { mergePatch: jsonOf(patch.merge, "merge") };
  if ("json" in patch) return { jsonPatch: jsonOf(patch.json, "json") };
  const numbers = Object.entries(patch.increment);
  return { increment: numbers.map(([pointer, by]) => ({ pointer, by: String(by) })) };
}

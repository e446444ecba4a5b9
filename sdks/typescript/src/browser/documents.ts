import { isCode } from "../core/errors.js";
import { randomKey } from "../core/key.js";
import { Content, jsonOf, type Payload } from "../core/payload.js";
import type { DocumentEvent, QueryOptions, Written } from "../documents/documents.js";
import type { Conditions, Patch, PutOptions } from "../documents/options.js";
import { StoredDocument, type DocumentInfo } from "../documents/stored.js";
import { pages } from "../pages.js";
import { reopened } from "../watching.js";
import type { Http } from "./http.js";
import { contentFields, contentOf, infoOf, type Json } from "./json.js";

/** Keys with a content of any type, which has a version. */
export class Documents {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Writes a document as a whole. */
  async put(key: string, content: Payload, options: PutOptions = {}): Promise<Written> {
    const body = {
      ...conditionFields(options),
      ...contentFields("content", content, options.contentType),
      attributes: options.attributes,
      ttl_ms: options.ttlMs,
      history: options.history,
      if_exists: options.ifExists,
      if_absent: options.ifAbsent,
      request_id: randomKey(),
    };
    return writtenOf(await this.#http.call<Json>({ method: "PUT", path: pathOf(key), body }));
  }

  /** The document, or a former version of it; `undefined` if there is none. */
  async get(key: string, options: { version?: number } = {}): Promise<StoredDocument | undefined> {
    const query = { version: options.version };
    try {
      return documentOf(await this.#http.call<Json>({ method: "GET", path: pathOf(key), query }));
    } catch (error) {
      if (isCode(error, "document_not_found")) return undefined;
      throw error;
    }
  }

  /** Changes a document whose content is JSON. */
  async patch(key: string, patch: Patch, options: Conditions = {}): Promise<Written> {
    const body = { ...conditionFields(options), ...changeFields(patch), request_id: randomKey() };
    return writtenOf(await this.#http.call<Json>({ method: "PATCH", path: pathOf(key), body }));
  }

  /** Adds to a number in a document, named by its JSON pointer; a missing one counts as 0. */
  increment(
    key: string,
    pointer: string,
    by: number | bigint = 1,
    options: Conditions = {},
  ): Promise<Written> {
    return this.patch(key, { increment: { [pointer]: by } }, options);
  }

  /** Deletes a document with its former versions. */
  async delete(key: string, options: Conditions = {}): Promise<void> {
    const query = conditionFields(options) as Record<string, string | number | undefined>;
    await this.#http.call({ method: "DELETE", path: pathOf(key), query });
  }

  /** Documents by key, without contents. */
  async *list(options: { prefix?: string } = {}): AsyncIterable<DocumentInfo> {
    const { prefix } = options;
    const page = (after: string | undefined) =>
      this.#page({ method: "GET", path: "/documents", query: { prefix, after } });
    for await (const { documents } of pages(page)) yield* documents.map(infoOf);
  }

  /** Documents whose JSON matches a filter, with their contents. */
  async *query({ where, prefix, sort }: QueryOptions = {}): AsyncIterable<StoredDocument> {
    const page = (after: string | undefined) =>
      this.#page({ method: "POST", path: "/documents/query", body: { where, prefix, sort, after } });
    for await (const { documents } of pages(page)) yield* documents.map(documentOf);
  }

  /** The versions that are kept, without contents, the current one first. */
  async history(key: string): Promise<DocumentInfo[]> {
    const path = `${pathOf(key)}/history`;
    return (await this.#http.call<{ versions: Json[] }>({ method: "GET", path })).versions.map(infoOf);
  }

  /**
   * The documents as they are, then `current`, then each change. Goes on by itself when the connection
   * breaks; `changes_forgotten` says that it was away for too long.
   */
  async *watch(options: { prefix?: string; signal?: AbortSignal } = {}): AsyncIterable<DocumentEvent> {
    const { prefix, signal } = options;
    let after: string | undefined;
    const path = "/document-changes/stream";
    const open = () => this.#http.events({ method: "GET", path, query: { prefix, after }, signal });
    for await (const { id, event, data } of reopened(open, signal)) {
      if (id !== undefined) after = id;
      if (event !== "") yield changeOf(event, JSON.parse(data) as Json);
    }
  }

  async #page(call: Parameters<Http["call"]>[0]): Promise<{ documents: Json[]; next: string }> {
    return { next: "", ...(await this.#http.call<{ documents: Json[]; next?: string }>(call)) };
  }
}

function pathOf(key: string): string {
  return `/documents/${encodeURIComponent(key)}`;
}

function changeOf(event: string, data: Json): DocumentEvent {
  if (event === "current") return { type: "current" };
  if (event === "gone") return { type: "gone", key: data["key"] as string, etag: data["etag"] as string };
  return { type: "written", document: infoOf(data["document"] as Json) };
}

function conditionFields({ ifVersion, ifEtag, lock }: Conditions): Json {
  const token = typeof lock === "object" ? lock.token : lock;
  return { if_version: ifVersion, if_etag: ifEtag, token };
}

function changeFields(patch: Patch): Json {
  if ("merge" in patch) return { merge_patch: jsonOf(patch.merge, "merge") };
  if ("json" in patch) return { json_patch: jsonOf(patch.json, "json") };
  const numbers = Object.entries(patch.increment);
  return { increment: numbers.map(([pointer, by]) => ({ pointer, by: String(by) })) };
}

function documentOf(fields: Json): StoredDocument {
  const content = contentOf(fields, "content", "content_type") ?? new Content(new Uint8Array(), "");
  return new StoredDocument(infoOf(fields), content, (fields["attributes"] as Record<string, string>) ?? {});
}

function writtenOf(fields: Json): Written {
  return {
    version: fields["version"] as number,
    etag: fields["etag"] as string,
    changedAt: new Date(fields["changed_at_ms"] as number),
  };
}

import type { Calls } from "../calls.js";
import { isCode } from "../core/errors.js";
import { randomKey } from "../core/key.js";
import { jsonOf, type JsonValue, type Payload } from "../core/payload.js";
import type { PutDocumentResponse } from "../gen/sluice/v1/documents_pb.js";
import { pages } from "../pages.js";
import { reopened } from "../watching.js";
import { conditionsInit, patchInit, putInit } from "./options.js";
import type { Conditions, Patch, PutOptions } from "./options.js";
import { documentOf, infoOf, type DocumentInfo, type StoredDocument } from "./stored.js";

/** A version that was written. */
export interface Written {
  version: number;
  etag: string;
  changedAt: Date;
}

/** The options of a query. */
export interface QueryOptions {
  /** Filter that the contents match, such as `{ "/state": "new" }`; default: all that are JSON. */
  where?: JsonValue;
  /** Only keys that begin with this. */
  prefix?: string;
  /** Values to sort by, the first one first; default: by key. */
  sort?: readonly { pointer: string; descending?: boolean }[];
}

/** A change of a document that is watched. */
export type DocumentEvent =
  | { type: "written"; document: DocumentInfo }
  | { type: "gone"; key: string; etag: string }
  | { /** What came before it was all that there was. */ type: "current" };

/** Keys with a content of any type, which has a version. */
export class Documents {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Writes a document as a whole. */
  async put(key: string, content: Payload, options: PutOptions = {}): Promise<Written> {
    const request = { ...putInit(key, content, options), requestId: randomKey() };
    return writtenOf(await this.#calls.documents.put(request));
  }

  /** The document, or a former version of it; `undefined` if there is none. */
  async get(key: string, options: { version?: number } = {}): Promise<StoredDocument | undefined> {
    const version = options.version === undefined ? undefined : BigInt(options.version);
    try {
      return documentOf(await this.#calls.documents.get({ key, version }));
    } catch (error) {
      if (isCode(error, "document_not_found")) return undefined;
      throw error;
    }
  }

  /** Changes a document whose content is JSON. */
  async patch(key: string, patch: Patch, options: Conditions = {}): Promise<Written> {
    const request = { ...patchInit(key, patch, options), requestId: randomKey() };
    return writtenOf(await this.#calls.documents.patch(request));
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
    await this.#calls.documents.delete({ key, ...conditionsInit(options) });
  }

  /** Documents by key, without contents. */
  async *list(options: { prefix?: string } = {}): AsyncIterable<DocumentInfo> {
    const { prefix } = options;
    for await (const page of pages((after) => this.#calls.documents.list({ prefix, after }))) {
      yield* page.documents.map(infoOf);
    }
  }

  /** Documents whose JSON matches a filter, with their contents. */
  async *query(options: QueryOptions = {}): AsyncIterable<StoredDocument> {
    const { prefix } = options;
    const where = options.where === undefined ? undefined : jsonOf(options.where, "where");
    const terms = { where, prefix, sort: [...(options.sort ?? [])] };
    for await (const page of pages((after) => this.#calls.documents.query({ ...terms, after }))) {
      yield* page.documents.map(documentOf);
    }
  }

  /** The versions that are kept, without contents, the current one first. */
  async history(key: string): Promise<DocumentInfo[]> {
    return (await this.#calls.documents.history({ key })).versions.map(infoOf);
  }

  /**
   * The documents as they are, then `current`, then each change. Goes on by itself when the connection
   * breaks; `changes_forgotten` says that it was away for too long.
   */
  async *watch(options: { prefix?: string; signal?: AbortSignal } = {}): AsyncIterable<DocumentEvent> {
    const { prefix, signal } = options;
    let after: string | undefined;
    const open = () => this.#calls.documents.watch({ prefix, after }, signal ? { signal } : {});
    for await (const { position, key, etag, document, current } of reopened(open, signal)) {
      if (position !== "") after = position;
      if (current) yield { type: "current" };
      else if (document !== undefined) yield { type: "written", document: infoOf(document) };
      else if (key !== "") yield { type: "gone", key, etag };
    }
  }
}

/** What a call tells of a version that it has written. */
export function writtenOf({ version, etag, changedAtMs }: PutDocumentResponse): Written {
  return { version: Number(version), etag, changedAt: new Date(Number(changedAtMs)) };
}

import { Content } from "../core/payload.js";
import type { Document } from "../gen/sluice/v1/documents_pb.js";
import { date } from "../grpc/numbers.js";

/** What is known of a document without its content. */
export interface DocumentInfo {
  key: string;
  /** Number of the version: 1, and one more with each change, until the document is deleted. */
  version: number;
  /** No other version of any document ever has the same. */
  etag: string;
  changedAt: Date;
  contentBytes: number;
  /** When the document is gone; `undefined`: it stays. */
  expiresAt: Date | undefined;
  /** Number of former versions that are kept. */
  history: number;
}

/** A document with its content. */
export class StoredDocument extends Content implements DocumentInfo {
  readonly key: string;
  readonly version: number;
  readonly etag: string;
  readonly changedAt: Date;
  readonly contentBytes: number;
  readonly expiresAt: Date | undefined;
  readonly history: number;
  readonly attributes: Readonly<Record<string, string>>;

  constructor(info: DocumentInfo, content: Content, attributes: Readonly<Record<string, string>>) {
    super(content.bytes, content.contentType);
    this.key = info.key;
    this.version = info.version;
    this.etag = info.etag;
    this.changedAt = info.changedAt;
    this.contentBytes = info.contentBytes;
    this.expiresAt = info.expiresAt;
    this.history = info.history;
    this.attributes = attributes;
  }
}

/** What a call tells of a document, without its content. */
export function infoOf(document: Document): DocumentInfo {
  return {
    key: document.key,
    version: Number(document.version),
    etag: document.etag,
    changedAt: new Date(Number(document.changedAtMs)),
    contentBytes: Number(document.contentBytes),
    expiresAt: date(document.expiresAtMs),
    history: Number(document.history),
  };
}

/** What a call tells of a document, with its content. */
export function documentOf(document: Document): StoredDocument {
  const content = new Content(document.content ?? new Uint8Array(), document.contentType);
  return new StoredDocument(infoOf(document), content, document.attributes);
}

import type { Calls } from "../calls.js";
import type { Attachment, ReadAttachmentResponse } from "../gen/sluice/v1/attachments_pb.js";
import { whole } from "../grpc/numbers.js";
import { pages } from "../pages.js";
import { writtenOf, type Written } from "./documents.js";
import { conditionsInit, type Conditions, type WriteConditions } from "./options.js";

/** Most octets of one message of an upload. */
const PIECE_BYTES_MAX = 1 << 20;

/** What is uploaded: octets, or pieces of any length, such as those of a file's stream. */
export type AttachmentSource = Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/** The options of an upload; its conditions are about the attachment. */
export interface UploadOptions extends WriteConditions {
  contentType?: string;
  /** SHA-256 of all octets, in hexadecimal digits: refused if others have come. */
  sha256?: string;
  /** Gives the upload up. */
  signal?: AbortSignal;
}

/** The options of a download. */
export interface DownloadOptions {
  /** Octets to leave out at the beginning; default 0. */
  offset?: number;
  /** Most octets to read; default: all. */
  bytes?: number;
  /** Only if the attachment has this ETag, as for a download that goes on. */
  ifEtag?: string;
  /** Gives the download up. */
  signal?: AbortSignal;
}

/** What is known of an attachment. */
export interface AttachmentInfo {
  name: string;
  /** Number of the version: 1, and one more each time it is replaced. */
  version: number;
  /** No other version of the attachment ever has the same. */
  etag: string;
  changedAt: Date;
  bytes: number;
  /** Of its octets, in hexadecimal digits. */
  sha256: string;
  /** Its media type; empty: none was given. */
  contentType: string;
}

/** Named octets of a document, of up to 5 GiB, which go and come as streams. */
export class Attachments {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Makes an attachment of a document, which has to be there. Nothing is left of one that fails. */
  async upload(
    key: string,
    name: string,
    source: AttachmentSource,
    options: UploadOptions = {},
  ): Promise<Written> {
    const { contentType, sha256, ifExists, ifAbsent } = options;
    const first = { key, name, contentType, sha256, ifExists, ifAbsent, ...conditionsInit(options) };
    const { signal } = options;
    const answer = new AbortController();
    let failed: { reason: unknown } | undefined;
    let allSent = false;
    const aborted = (): void => {
      if (allSent) answer.abort(signal?.reason);
    };
    const requests = async function* () {
      yield first;
      try {
        for await (const content of untilAborted(piecesOf(source), signal)) yield { content };
      } catch (reason) {
        // Node ends a stream as if all had come before it resets it, so what is only aborted may be taken for
        // the whole: a message that tells the key once more is refused for sure, and nothing is attached.
        failed = { reason };
        yield { key };
        return;
      }
      allSent = true;
      if (signal?.aborted) aborted();
    };
    signal?.addEventListener("abort", aborted);
    try {
      return writtenOf(await this.#calls.attachments.upload(requests(), { signal: answer.signal }));
    } catch (error) {
      throw failed ? failed.reason : error;
    } finally {
      signal?.removeEventListener("abort", aborted);
    }
  }

  /** The octets of one version, piece by piece. */
  async *download(key: string, name: string, options: DownloadOptions = {}): AsyncIterable<Uint8Array> {
    const { offset, bytes, ifEtag, signal } = options;
    const request = { key, name, offset: whole(offset, "offset"), bytes: whole(bytes, "bytes"), ifEtag };
    const pieces: AsyncIterable<ReadAttachmentResponse> =
      this.#calls.attachments.download(request, signal ? { signal } : {});
    for await (const { content } of pieces) {
      if (content.length > 0) yield content;
    }
  }

  /** The attachments of a document, by name. */
  async *list(key: string): AsyncIterable<AttachmentInfo> {
    for await (const page of pages((after) => this.#calls.attachments.list({ key, after }))) {
      yield* page.attachments.map(infoOf);
    }
  }

  /** Deletes an attachment. */
  async delete(key: string, name: string, options: Conditions = {}): Promise<void> {
    await this.#calls.attachments.delete({ key, name, ...conditionsInit(options) });
  }
}

async function* piecesOf(source: AttachmentSource): AsyncIterable<Uint8Array<ArrayBuffer>> {
  for await (const each of source instanceof Uint8Array ? [source] : source) {
    for (let at = 0; at < each.length; at += PIECE_BYTES_MAX) {
      yield each.subarray(at, at + PIECE_BYTES_MAX) as Uint8Array<ArrayBuffer>;
    }
  }
}

/** The pieces of a source, until the signal aborts: then its reason is thrown. */
async function* untilAborted<T>(pieces: AsyncIterable<T>, signal: AbortSignal | undefined): AsyncIterable<T> {
  // A promise for the end of all would keep each piece for as long as it lives, by what waits for it.
  let stop: ((reason: unknown) => void) | undefined;
  const aborted = (): void => stop?.(signal?.reason);
  signal?.addEventListener("abort", aborted);
  const iterator = pieces[Symbol.asyncIterator]();
  try {
    for (;;) {
      signal?.throwIfAborted();
      const next = await new Promise<IteratorResult<T>>((resolve, reject) => {
        stop = reject;
        iterator.next().then(resolve, reject);
      });
      if (next.done) return;
      yield next.value;
    }
  } finally {
    signal?.removeEventListener("abort", aborted);
    iterator.return?.().catch(() => undefined);
  }
}

function infoOf(attachment: Attachment): AttachmentInfo {
  const { name, etag, sha256, contentType } = attachment;
  return {
    name,
    version: Number(attachment.version),
    etag,
    changedAt: new Date(Number(attachment.changedAtMs)),
    bytes: Number(attachment.bytes),
    sha256,
    contentType,
  };
}

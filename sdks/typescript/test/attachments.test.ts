import { createHash } from "node:crypto";
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Client } from "../src/index.js";
import { useServer } from "./support/server.js";
import { failure } from "./support/until.js";

const server = useServer();
const LARGE = new Uint8Array(3 * (1 << 20) + 17).map((_, index) => index * 31);

async function clientWith(key: string): Promise<Client> {
  const client = server.current.client();
  await client.documents.put(key, {});
  return client;
}

async function read(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}

test("octets go up and come down as they are", async () => {
  const { attachments } = await clientWith("octets");
  const sha256 = createHash("sha256").update(LARGE).digest("hex");
  const written = await attachments.upload("octets", "a.bin", LARGE, { contentType: "x/y", sha256 });
  expect(written.version).toBe(1);
  expect((await read(attachments.download("octets", "a.bin"))).equals(LARGE)).toBe(true);
  const part = await read(attachments.download("octets", "a.bin", { offset: 1_000_000, bytes: 100_000 }));
  expect(part.equals(LARGE.subarray(1_000_000, 1_100_000))).toBe(true);
  const listed = [];
  for await (const one of attachments.list("octets")) listed.push(one);
  expect(listed).toMatchObject([
    { name: "a.bin", version: 1, etag: written.etag, bytes: LARGE.length, sha256, contentType: "x/y" },
  ]);
});

test("streams, pieces and nothing at all are uploaded", async () => {
  const { attachments } = await clientWith("streams");
  const folder = mkdtempSync(join(tmpdir(), "attachments-"));
  writeFileSync(join(folder, "large"), LARGE);
  await attachments.upload("streams", "file", createReadStream(join(folder, "large")));
  await attachments.upload("streams", "pieces", [Buffer.from("ab"), new Uint8Array(), Buffer.from("c")]);
  await attachments.upload("streams", "empty", new Uint8Array());
  rmSync(folder, { recursive: true });
  expect((await read(attachments.download("streams", "file"))).equals(LARGE)).toBe(true);
  expect(String(await read(attachments.download("streams", "pieces")))).toBe("abc");
  expect((await read(attachments.download("streams", "empty"))).length).toBe(0);
});

test("conditions, a wrong digest and a source that fails leave nothing behind", async () => {
  const { attachments } = await clientWith("refused");
  const { etag } = await attachments.upload("refused", "a", Buffer.from("1"), { ifAbsent: true });
  const again = failure(attachments.upload("refused", "a", Buffer.from("2"), { ifAbsent: true }));
  expect(await again).toMatchObject({ code: "version_mismatch" });
  const wrong = failure(attachments.upload("refused", "b", Buffer.from("2"), { sha256: "0".repeat(64) }));
  expect(await wrong).toMatchObject({ code: "digest_mismatch" });
  const broken = new Error("the disk is on fire");
  const failing = async function* () {
    yield Buffer.from("half");
    throw broken;
  };
  expect(await failure(attachments.upload("refused", "c", failing()))).toBe(broken);
  const abort = new AbortController();
  const endless = async function* () {
    yield Buffer.from("half");
    abort.abort(broken);
    await new Promise(() => undefined);
  };
  const aborted = failure(attachments.upload("refused", "d", endless(), { signal: abort.signal }));
  expect(await aborted).toBe(broken);
  await attachments.upload("refused", "a", Buffer.from("2"), { ifEtag: etag });
  const old = failure(read(attachments.download("refused", "a", { ifEtag: etag })));
  expect(await old).toMatchObject({ code: "version_mismatch" });
  const names = [];
  for await (const { name, version } of attachments.list("refused")) names.push(`${name} ${version}`);
  expect(names).toEqual(["a 2"]);
  await attachments.delete("refused", "a");
  expect(await failure(read(attachments.download("refused", "a")))).toMatchObject({
    code: "attachment_not_found",
  });
});

test("an upload does not keep what it has sent", { timeout: 60_000 }, async () => {
  const { attachments } = await clientWith("memory");
  const collect = (globalThis as { gc?: () => void }).gc;
  expect(collect).toBeDefined();
  let most = 0;
  const source = async function* () {
    for (let piece = 0; piece < 800; piece++) {
      yield new Uint8Array(1 << 17);
      if (piece % 200 !== 199) continue;
      collect?.();
      most = Math.max(most, process.memoryUsage().arrayBuffers);
    }
  };
  await attachments.upload("memory", "a", source());
  expect(most).toBeLessThan(64 << 20);
});

test("a download that is not read to its end, and one that is given up", async () => {
  const { attachments } = await clientWith("ends");
  await attachments.upload("ends", "a", LARGE);
  for await (const piece of attachments.download("ends", "a")) {
    expect(piece.length).toBeGreaterThan(0);
    break;
  }
  const reason = new Error("enough");
  const given = failure(read(attachments.download("ends", "a", { signal: AbortSignal.abort(reason) })));
  expect(await given).toBe(reason);
});

import { once } from "node:events";
import { writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";
import type * as Browser from "../src/browser/index.js";
import { useServer } from "./support/server.js";
import { failure, until } from "./support/until.js";

const server = useServer();
const folder = mkdtempSync(join(tmpdir(), "sluice-browser-"));
let browser: typeof Browser;
let imported: string[];
let inputs: string[];

beforeAll(async () => {
  const entry = new URL("../src/browser/index.ts", import.meta.url).pathname;
  const options = { bundle: true, write: false, format: "esm", platform: "browser", metafile: true } as const;
  const { outputFiles, metafile } = await build({ ...options, entryPoints: [entry] });
  inputs = Object.keys(metafile.inputs);
  imported = Object.values(metafile.outputs).flatMap((output) => output.imports.map(({ path }) => path));
  const file = join(folder, "bundle.mjs");
  writeFileSync(file, outputFiles[0]?.contents ?? "");
  browser = (await import(pathToFileURL(file).href)) as typeof Browser;
});
afterAll(() => rmSync(folder, { recursive: true }));

test("the bundle imports nothing, neither of Node nor of a package", () => {
  expect(imported).toEqual([]);
  expect(inputs.filter((path) => path.includes("node_modules") || path.includes("/gen/"))).toEqual([]);
});

test("sends, waits for results, and shows queues", async () => {
  const client = new browser.Client({ servers: server.current.url });
  const worker = server.current.client().worker("web", (job) => `${job.text()}!`);
  const { id } = await client.send("web", "hello", { resultTtlMs: 60_000, headers: { a: "b" } });
  expect((await client.result(id)).text()).toBe("hello!");
  await worker.stop();
  const again = { idempotencyKey: "web-1" };
  const messages = [{ payload: new Uint8Array([0, 255]) }, { payload: { n: 1 } }];
  const first = await client.sendMany("web", messages, again);
  expect(first.ids.length).toBe(2);
  const second = await client.sendMany("web", messages, again);
  expect(second).toEqual({ ...first, duplicate: true });
  const [octets, json] = await server.current.client().receive("web", { max: 2 });
  expect([octets?.bytes, json?.json()]).toEqual([new Uint8Array([0, 255]), { n: 1 }]);
  expect((await client.queues.get("web")).counts.leased).toBe(2);
  const names: string[] = [];
  for await (const { name } of client.queues.list({ prefix: "we" })) names.push(name);
  expect(names).toEqual(["web"]);
  const waiting = await client.send("web", "");
  expect(await client.outcome(waiting.id, { waitMs: 0 })).toEqual({ state: "pending" });
});

test("errors have codes and details", async () => {
  const client = new browser.Client({ servers: server.current.url, retryForMs: 0 });
  const missing = await failure(client.queues.get("none"));
  expect(missing).toMatchObject({ code: "queue_not_found", details: { queue: "none" } });
  expect(browser.isCode(missing, "queue_not_found")).toBe(true);
  const gone = new browser.Client({ servers: "http://127.0.0.1:1", retryForMs: 0 });
  expect(await failure(gone.send("web", ""))).toMatchObject({ code: "unreachable" });
});

test("another server is asked if one is not reached", async () => {
  const client = new browser.Client({ servers: ["http://127.0.0.1:1", server.current.url] });
  expect((await client.send("elsewhere", "")).duplicate).toBe(false);
});

test("a deletion whose answer is lost is not made again", async () => {
  const methods: (string | undefined)[] = [];
  const body = JSON.stringify({ error: { code: "outcome_unknown", message: "nobody knows", details: {} } });
  const lossy = createServer(({ method }, response) => {
    methods.push(method);
    response.writeHead(503, { "content-type": "application/json" }).end(body);
  }).listen(0, "127.0.0.1");
  await once(lossy, "listening");
  const { port } = lossy.address() as AddressInfo;
  const client = new browser.Client({ servers: `http://127.0.0.1:${port}`, retryForMs: 500 });
  expect(await failure(client.documents.delete("k"))).toMatchObject({ code: "outcome_unknown" });
  expect(await failure(client.documents.put("k", "x"))).toMatchObject({ code: "outcome_unknown" });
  expect(methods.slice(0, 3)).toEqual(["DELETE", "PUT", "PUT"]);
  lossy.close();
});

test("a token goes with every request", async () => {
  const seen: (string | null)[] = [];
  const fetch: typeof globalThis.fetch = (url, init) => {
    seen.push(new Headers(init?.headers).get("authorization"));
    return globalThis.fetch(url, { ...init, headers: {} });
  };
  const client = new browser.Client({ servers: server.current.url, token: async () => "secret", fetch });
  await client.documents.get("none");
  expect(seen).toEqual(["Bearer secret"]);
});

test("documents are written, changed, found and watched", async () => {
  const { documents } = new browser.Client({ servers: server.current.url });
  const end = new AbortController();
  const seen: string[] = [];
  const watching = (async () => {
    for await (const event of documents.watch({ prefix: "web/", signal: end.signal })) seen.push(event.type);
  })();
  await until(() => seen.includes("current"));
  expect((await documents.put("web/1", { n: 1 }, { ifAbsent: true, history: 1 })).version).toBe(1);
  const stale = await failure(documents.put("web/1", "", { ifVersion: 7 }));
  expect(browser.isCode(stale, "version_mismatch")).toBe(true);
  await documents.increment("web/1", "/n", 41);
  const read = await documents.get("web/1");
  expect([read?.json(), read?.version, read?.contentType]).toEqual([{ n: 42 }, 2, "application/json"]);
  expect((await documents.history("web/1")).map(({ version }) => version)).toEqual([2, 1]);
  const found: unknown[] = [];
  for await (const each of documents.query({ prefix: "web/", where: { "/n": 42 } })) found.push(each.key);
  for await (const each of documents.list({ prefix: "web/" })) found.push(each.key);
  expect(found).toEqual(["web/1", "web/1"]);
  await documents.delete("web/1", { ifVersion: 2 });
  expect(await documents.get("web/1")).toBeUndefined();
  await until(() => seen.at(-1) === "gone");
  end.abort();
  await failure(watching);
});

test("events come as they happen", async () => {
  const client = new browser.Client({ servers: server.current.url });
  await client.send("seen", "before");
  const end = new AbortController();
  const types = ["sent", "died"];
  const events = client.events({ queue: "seen", types, signal: end.signal })[Symbol.asyncIterator]();
  const next = events.next();
  const sender = setInterval(() => void client.send("seen", "now"), 50);
  const { value } = await next;
  clearInterval(sender);
  expect(value).toMatchObject({ type: "sent", queue: "seen" });
  end.abort();
  await events.return?.();
});

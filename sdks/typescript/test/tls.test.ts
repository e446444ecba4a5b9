import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Client } from "../src/index.js";
import type { TestServer } from "../src/testing/index.js";
import { serve } from "./support/server.js";
import { failure } from "./support/until.js";

const folder = mkdtempSync(join(process.env.SLUICE_TEST_DIR ?? tmpdir(), "tls-"));
const file = (name: string): string => join(folder, "tls", name);
const read = (name: string): Uint8Array => readFileSync(file(name));
let server: TestServer;

beforeAll(async () => {
  server = await serve({ args: ["--tls", "auto", "--tls-dir", join(folder, "tls")] });
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

test("a client certificate makes calls and runs a worker", async () => {
  const tls = { ca: read("ca.pem"), cert: read("admin.pem"), key: read("admin.key") };
  const client = server.client({ tls });
  await using _worker = client.worker("mail", (job) => job.text().toUpperCase());
  expect((await client.request("mail", "hello")).text()).toBe("HELLO");
});

test("a token makes the calls that it allows", async () => {
  const token = createToken("default=w");
  const client = server.client({ tls: { ca: read("ca.pem") }, token });
  expect((await client.send("mail", "hello")).duplicate).toBe(false);
  expect(await failure(client.receive("mail"))).toMatchObject({ code: "forbidden" });
  const worker = client.worker("mail", () => undefined);
  expect(await failure(worker.done)).toMatchObject({ code: "forbidden" });
});

test("what is not trusted, not known, or not encrypted is refused for what it is", async () => {
  const nobody = server.client({ tls: { ca: read("ca.pem") } });
  expect(await failure(nobody.send("mail", ""))).toMatchObject({ code: "unauthenticated" });
  const stranger = server.client({ tls: {} });
  expect(await failure(stranger.send("mail", ""))).toMatchObject({ code: "tls_failed" });
  await using clear = new Client({ servers: server.url.replace("https", "http") });
  expect(await failure(clear.send("mail", ""))).toMatchObject({ code: "not_understood" });
});

function createToken(scope: string): string {
  const env = {
    SLUICE_SERVER: server.url,
    SLUICE_CA: file("ca.pem"),
    SLUICE_CERT: file("admin.pem"),
    SLUICE_CERT_KEY: file("admin.key"),
  };
  const bin = process.env.SLUICE_BIN || "sluice";
  const args = ["token", "create", "app", "--scope", scope, "--json"];
  return (JSON.parse(execFileSync(bin, args, { env, encoding: "utf8" })) as { token: string }).token;
}

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { resolveOptions } from "../src/options.js";

const folder = mkdtempSync(join(tmpdir(), "sluice-options-"));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

test("the environment fills in what is not given", () => {
  const env = {
    SLUICE_SERVER: "https://a:1, https://b:2/",
    SLUICE_NAMESPACE: "shop",
    SLUICE_CA: file("ca.pem", "the ca"),
    SLUICE_CERT: file("cert.pem", "the cert"),
    SLUICE_CERT_KEY: file("cert.key", "the key"),
    SLUICE_TOKEN_FILE: file("token", "secret\n"),
  };
  expect(resolveOptions({}, env)).toMatchObject({
    servers: ["https://a:1", "https://b:2"],
    namespace: "shop",
    token: "secret",
    tls: { ca: "the ca", cert: "the cert", key: "the key" },
  });
});

test("an empty variable counts as not set, and the default is the server of this machine", () => {
  const env = { SLUICE_SERVER: "", SLUICE_NAMESPACE: "", SLUICE_TOKEN: "" };
  expect(resolveOptions({}, env)).toMatchObject({
    servers: ["http://127.0.0.1:7070"],
    namespace: "",
    token: undefined,
    tls: {},
  });
});

test("secrets of the environment are for the servers of the environment", () => {
  const env = { SLUICE_SERVER: "http://a:1", SLUICE_TOKEN: "secret" };
  expect(resolveOptions({}, env).token).toBe("secret");
  expect(resolveOptions({ servers: "http://b:2" }, env).token).toBeUndefined();
});

test("what cannot be right is refused", () => {
  const usage = expect.objectContaining({ code: "usage" });
  expect(() => resolveOptions({ servers: "ftp://a" }, {})).toThrow(usage);
  expect(() => resolveOptions({ servers: ["http://a:1", "https://b:1"] }, {})).toThrow(usage);
  expect(() => resolveOptions({ tls: { cert: "alone" } }, {})).toThrow(usage);
  expect(() => resolveOptions({}, { SLUICE_CA: join(folder, "none.pem") })).toThrow(usage);
});

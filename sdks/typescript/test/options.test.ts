import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterAll, expect, test } from "vitest";
import { resolveOptions as resolveInBrowser } from "../src/browser/options.js";
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

test.each(["SECRET\nb", "SECRETé", "a\rSECRET", "SECRET\x7f", "SECRET\0"])(
  "a token that no header can carry is refused and not shown: %j",
  (token) => {
    const tokenFile = file("token", token);
    mkdirSync(join(folder, "sluice"), { recursive: true });
    file("sluice/contexts.toml",
      `[contexts.shop]\nserver = 'http://a:1'\n[contexts.shop.credentials]\ntoken_file = '${tokenFile}'\n`);
    for (const make of [
      () => resolveOptions({ token }, {}),
      () => resolveOptions({}, { SLUICE_TOKEN: token }),
      () => resolveOptions({}, { SLUICE_TOKEN_FILE: tokenFile }),
      () => resolveOptions({ context: "shop" }, { XDG_CONFIG_HOME: folder }),
      () => resolveInBrowser({ servers: "http://a:1", token }),
    ]) {
      const error = thrownBy(make);
      expect(error).toMatchObject({ code: "usage", message: "the token has characters that no token has" });
      expect(inspect(error)).not.toContain("SECRET");
    }
  },
);

test("a token that a function gets is looked at as well", async () => {
  const { token } = resolveInBrowser({ servers: "http://a:1", token: () => "SECRET\nb" });
  await expect(token()).rejects.toMatchObject({ code: "usage" });
  const good = resolveInBrowser({ servers: "http://a:1", token: () => Promise.resolve("good") });
  expect(await good.token()).toBe("good");
});

function thrownBy(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return error;
  }
}

test("what cannot be right is refused", () => {
  const usage = expect.objectContaining({ code: "usage" });
  expect(() => resolveOptions({ servers: "ftp://a" }, {})).toThrow(usage);
  expect(() => resolveOptions({ servers: ["http://a:1", "https://b:1"] }, {})).toThrow(usage);
  expect(() => resolveOptions({ tls: { cert: "alone" } }, {})).toThrow(usage);
  expect(() => resolveOptions({}, { SLUICE_CA: join(folder, "none.pem") })).toThrow(usage);
});

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { resolveOptions, type ClientOptions } from "../src/options.js";

const usage = (text: RegExp): object =>
  expect.objectContaining({ code: "usage", message: expect.stringMatching(text) });

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "sluice-contexts-"));
});
afterEach(() => rmSync(home, { recursive: true }));

function sluice(...args: string[]): void {
  const env = { PATH: process.env.PATH, XDG_CONFIG_HOME: home };
  execFileSync(process.env.SLUICE_BIN || "sluice", ["context", ...args], { env, stdio: "ignore" });
}

function resolved(options: ClientOptions, env: Record<string, string> = {}) {
  return resolveOptions(options, { XDG_CONFIG_HOME: home, ...env });
}

test("a context names server, namespace and credentials", () => {
  writeFileSync(join(home, "token"), "secret\n");
  sluice("add", "local", "--server", "http://127.0.0.1:1");
  const shop = ["--server", "http://shop:2,http://shop:3", "--namespace", "shop"];
  sluice("add", 'the "shop"', ...shop, "--token-file", join(home, "token"));
  expect(resolved({}, { SLUICE_TOKEN: "another" })).toMatchObject({
    servers: ["http://127.0.0.1:1"],
    namespace: "",
    token: undefined,
  });
  const chosen = { servers: ["http://shop:2", "http://shop:3"], namespace: "shop", token: "secret" };
  expect(resolved({ context: 'the "shop"' })).toMatchObject(chosen);
  expect(resolved({}, { SLUICE_CONTEXT: 'the "shop"' })).toMatchObject(chosen);
  expect(resolved({ context: 'the "shop"', token: "given" }, { SLUICE_NAMESPACE: "variable" }))
    .toMatchObject({ token: "given", namespace: "variable" });
  expect(resolved({ servers: "http://given:4" }).servers).toEqual(["http://given:4"]);
  expect(resolved({}, { SLUICE_SERVER: "http://variable:5" }).servers).toEqual(["http://variable:5"]);
  const named = resolved({ context: "local" }, { SLUICE_SERVER: "http://variable:5" });
  expect(named.servers).toEqual(["http://127.0.0.1:1"]);
});

test("what is wrong is told", () => {
  expect(resolved({}).servers).toEqual(["http://127.0.0.1:7070"]);
  expect(() => resolved({ context: "shop" })).toThrow(usage(/no context "shop": there are no contexts yet/));
  sluice("add", "local", "--server", "http://127.0.0.1:1");
  expect(() => resolved({ context: "shop" })).toThrow(usage(/no context "shop": local/));
  expect(() => resolved({ context: "local", servers: "http://a" })).toThrow(usage(/not both/));
  for (const broken of ["current = ", "current = 'x'\n[contexts.x]", "contexts = 1\ncurrent = 'x'"]) {
    writeFileSync(join(home, "sluice", "contexts.toml"), broken);
    expect(() => resolved({})).toThrow(usage(/contexts\.toml|no context "x"/));
  }
});

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { SERVER_CODES } from "../src/core/codes.js";

test("the codes are those of docs/errors.md", () => {
  const page = readFileSync(new URL("../../../docs/errors.md", import.meta.url), "utf8");
  const listed = [...page.matchAll(/^\| `([a-z_]+)` \|/gm)].map(([, code]) => code);
  expect([...SERVER_CODES].sort()).toEqual(listed.sort());
});

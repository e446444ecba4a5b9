import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

test("the committed code is what the contract generates", () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-gen-"));
  try {
    execFileSync("npx", ["buf", "generate", "--output", folder], { cwd: ROOT });
    expect(filesOf(join(ROOT, "src/gen"))).toEqual(filesOf(join(folder, "src/gen")));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

function filesOf(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const files = names.filter((name) => name.endsWith(".ts")).sort();
  return Object.fromEntries(files.map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

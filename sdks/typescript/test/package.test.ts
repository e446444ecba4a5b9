import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

interface Packed {
  files: { path: string }[];
}

test("the package has what it needs, and can be imported by its name", () => {
  const args = ["pack", "--dry-run", "--json", "--silent"];
  const out = execFileSync("npm", args, { cwd: ROOT, encoding: "utf8" });
  // A build that runs before may write lines of its own.
  const packed = JSON.parse(out.slice(out.search(/^[[{]/m))) as Packed[] | Record<string, Packed>;
  const paths = Object.values(packed).flatMap(({ files }) => files.map(({ path }) => path));
  expect(paths).toEqual(expect.arrayContaining(["LICENSE", "README.md", "dist/index.js", "dist/index.d.ts"]));
  expect(paths.filter((path) => !/^(dist\/|LICENSE$|README\.md$|package\.json$)/.test(path))).toEqual([]);
  const names = ["@sluice/client", "@sluice/client/browser", "@sluice/client/testing"];
  const program = names.map((name) => `await import("${name}")`).join(";");
  execFileSync("node", ["--input-type=module", "--eval", program], { cwd: ROOT });
}, 240_000);

test("the lock file names no registry", () => {
  const lock = readFileSync(new URL("../package-lock.json", import.meta.url), "utf8");
  expect(lock).not.toMatch(/"resolved"|registry\./);
});

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, expect, test } from "vitest";
import { freePorts } from "./support/ports.js";
import { useServer } from "./support/server.js";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("..", import.meta.url));
const ENTRIES = {
  "@sluice/client": join(ROOT, "src/index.ts"),
  "@sluice/client/browser": join(ROOT, "src/browser/index.ts"),
  "@sluice/client/testing": join(ROOT, "src/testing/index.ts"),
};

/** Types of a whole program take long on a machine that does other work. */
const SLOWLY = 240_000;
const server = useServer();
// Within the package, so that its dependencies are found.
const folder = mkdtempSync(join(ROOT, "node_modules/.readme-"));
afterAll(() => rmSync(folder, { recursive: true }));

const PAGES = ["README.md", "../../docs/guides/bullmq.md"];
const blocks = PAGES.flatMap((page, index) => blocksOf(readFileSync(join(ROOT, page), "utf8"), index));
for (const { code, path } of blocks) writeFileSync(path, code);

interface Block {
  title: string;
  code: string;
  path: string;
}

function blocksOf(readme: string, page: number): Block[] {
  const sections = readme.split(/^## /m).slice(1);
  const found = sections.flatMap((section) => {
    const title = section.slice(0, section.indexOf("\n"));
    return [...section.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code]) => ({ title, code: code as string }));
  });
  return found.map((block, index) => ({ ...block, path: join(folder, `${page}-${index}.ts`) }));
}

test("the blocks of the README and the guide have right types", async () => {
  expect(blocks.length).toBeGreaterThan(10);
  const paths = Object.fromEntries(Object.entries(ENTRIES).map(([name, path]) => [name, [path]]));
  const config = { extends: join(ROOT, "tsconfig.json"), compilerOptions: { paths }, include: ["*.ts"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  const checked = run("npx", ["tsc", "-p", folder], { cwd: ROOT });
  expect(await checked.catch((error: { stdout: string }) => error)).toMatchObject({ stdout: "" });
}, SLOWLY);

test.each(blocks)("$title", async ({ path }) => {
  const program = path.replace(/ts$/, "mjs");
  const options = { bundle: true, format: "esm", platform: "node", target: "node20" } as const;
  const external = ["@bufbuild/*", "@connectrpc/*", "@opentelemetry/*"];
  await build({ ...options, alias: ENTRIES, external, entryPoints: [path], outfile: program });
  const env = {
    PATH: process.env.PATH,
    SLUICE_BIN: process.env.SLUICE_BIN,
    SLUICE_SERVER: server.current.url,
    SLUICE_TEST_LISTEN: `127.0.0.1:${await freePorts(1)}`,
  };
  const { stderr } = await run("node", [program], { env, timeout: 90_000 });
  expect(stderr).toBe("");
}, 120_000);

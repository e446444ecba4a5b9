import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/index.js";
import { scenarios } from "../scenarios/index.js";

const LIST = new URL("../../../conformance/scenarios.json", import.meta.url);
const listed = JSON.parse(readFileSync(LIST, "utf8")) as { name: string; nodes: number[] }[];

/** What the scenarios are run against. */
export interface Nodes extends AsyncDisposable {
  /** A client, closed with them. */
  client(options: { namespace?: string }): Client;
}

/** Declares a test for each scenario of so many nodes, which get a client in a namespace of its own. */
export function conformance(nodes: number, start: () => Promise<Nodes>): void {
  let started: Nodes | undefined;
  beforeAll(async () => {
    started = await start();
  }, 60_000);
  afterAll(() => started?.[Symbol.asyncDispose]());

  // They wait most of the time.
  describe.concurrent(`on ${nodes === 1 ? "one node" : `${nodes} nodes`}`, () => {
    for (const { name } of listed.filter((one) => one.nodes.includes(nodes))) {
      test(name, { timeout: 90_000 }, async () => {
        const queue = name.replaceAll("_", "-");
        await started?.client({}).namespaces.put({ namespace: queue });
        await scenarios[name]?.((started as Nodes).client({ namespace: queue }), queue);
      });
    }
  });

  test("each scenario of the list is there, and no other", () => {
    expect(Object.keys(scenarios).sort()).toEqual(listed.map(({ name }) => name).sort());
  });
}

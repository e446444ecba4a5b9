import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { failover } from "./scenarios/failover.js";
import * as flows from "./scenarios/flows.js";
import * as sending from "./scenarios/sending.js";
import * as state from "./scenarios/state.js";
import * as working from "./scenarios/working.js";
import { useServer } from "./support/server.js";
import type { Scenario } from "./support/scenario.js";

const LIST = new URL("../../conformance/scenarios.json", import.meta.url);

const server = useServer();

/** One test for each scenario, with its name. */
const scenarios: Record<string, Scenario> = {
  send_and_receive: sending.sendAndReceive,
  send_many: sending.sendMany,
  send_options: sending.sendOptions,
  send_again: sending.sendAgain,
  work_acks: working.workAcks,
  work_renews: working.workRenews,
  work_retries: working.workRetries,
  work_dead: working.workDead,
  work_stops: working.workStops,
  request_and_reply: flows.requestAndReply,
  results: flows.results,
  flow: flows.flow,
  schedule: flows.schedule,
  lock: state.lock,
  lock_is_renewed: state.lockIsRenewed,
  documents: state.documents,
  transaction: state.transaction,
  errors: state.errors,
  failover,
};

for (const [name, scenario] of Object.entries(scenarios)) {
  test(name, { timeout: 60_000 }, () => scenario(server.current.client(), name.replaceAll("_", "-")));
}

test("each scenario has one test, and each test is one of a scenario", () => {
  const listed = JSON.parse(readFileSync(LIST, "utf8")) as { name: string }[];
  expect(Object.keys(scenarios).sort()).toEqual(listed.map(({ name }) => name).sort());
});

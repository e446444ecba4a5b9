import type { Scenario } from "../support/scenario.js";
import { failover, restart } from "./failover.js";
import * as flows from "./flows.js";
import * as sending from "./sending.js";
import * as state from "./state.js";
import * as working from "./working.js";

/** The scenarios by their names in `sdks/conformance`. */
export const scenarios: Readonly<Record<string, Scenario>> = {
  send_and_receive: sending.sendAndReceive,
  send_many: sending.sendMany,
  send_options: sending.sendOptions,
  send_again: sending.sendAgain,
  work_acks: working.workAcks,
  work_renews: working.workRenews,
  work_retries: working.workRetries,
  work_dead: working.workDead,
  work_refused: working.workRefused,
  work_stops: working.workStops,
  request_and_reply: flows.requestAndReply,
  results: flows.results,
  flow: flows.flow,
  schedule: flows.schedule,
  budget: flows.budget,
  lock: state.lock,
  lock_is_renewed: state.lockIsRenewed,
  documents: state.documents,
  transaction: state.transaction,
  errors: state.errors,
  restart,
  failover,
};

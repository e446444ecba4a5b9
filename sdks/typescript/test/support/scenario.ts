import type { Client } from "../../src/index.js";

/** A scenario of `sdks/conformance`: it gets a client, and a queue's name that no other one uses. */
export type Scenario = (client: Client, queue: string) => Promise<void>;

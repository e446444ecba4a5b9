import { createClient, type Client as ConnectClient, type Transport } from "@connectrpc/connect";
import { Attachments } from "./gen/sluice/v1/attachments_pb.js";
import { Bulks } from "./gen/sluice/v1/bulks_pb.js";
import { Consumers } from "./gen/sluice/v1/consumers_pb.js";
import { Documents } from "./gen/sluice/v1/documents_pb.js";
import { Events } from "./gen/sluice/v1/events_pb.js";
import { Limits } from "./gen/sluice/v1/limits_pb.js";
import { Locks } from "./gen/sluice/v1/locks_pb.js";
import { Messages } from "./gen/sluice/v1/messages_pb.js";
import { Namespaces } from "./gen/sluice/v1/namespaces_pb.js";
import { Queues } from "./gen/sluice/v1/queues_pb.js";
import { Schedules } from "./gen/sluice/v1/schedules_pb.js";
import { Sessions } from "./gen/sluice/v1/session_pb.js";
import { Testing } from "./gen/sluice/v1/testing_pb.js";
import { Transactions } from "./gen/sluice/v1/transactions_pb.js";

/** The generated clients: every call of `proto/sluice/v1`, with its fields as they are there. */
export interface Calls {
  readonly attachments: ConnectClient<typeof Attachments>;
  readonly bulks: ConnectClient<typeof Bulks>;
  readonly consumers: ConnectClient<typeof Consumers>;
  readonly documents: ConnectClient<typeof Documents>;
  readonly events: ConnectClient<typeof Events>;
  readonly limits: ConnectClient<typeof Limits>;
  readonly locks: ConnectClient<typeof Locks>;
  readonly messages: ConnectClient<typeof Messages>;
  readonly namespaces: ConnectClient<typeof Namespaces>;
  readonly queues: ConnectClient<typeof Queues>;
  readonly schedules: ConnectClient<typeof Schedules>;
  readonly sessions: ConnectClient<typeof Sessions>;
  readonly testing: ConnectClient<typeof Testing>;
  readonly transactions: ConnectClient<typeof Transactions>;
}

/** Makes the generated clients over a transport. */
export function calls(transport: Transport): Calls {
  return {
    attachments: createClient(Attachments, transport),
    bulks: createClient(Bulks, transport),
    consumers: createClient(Consumers, transport),
    documents: createClient(Documents, transport),
    events: createClient(Events, transport),
    limits: createClient(Limits, transport),
    locks: createClient(Locks, transport),
    messages: createClient(Messages, transport),
    namespaces: createClient(Namespaces, transport),
    queues: createClient(Queues, transport),
    schedules: createClient(Schedules, transport),
    sessions: createClient(Sessions, transport),
    testing: createClient(Testing, transport),
    transactions: createClient(Transactions, transport),
  };
}

//! The table of operations: what can be asked of a server, and what holds for each of them.
//!
//! Routing of HTTP, the methods of gRPC, the API description, the labels of metrics, and who may do what come
//! from it.

mod declare;
mod lookup;
mod properties;

use crate::access::Right;
use declare::operations;

pub use properties::{Hot, HttpName, Kind, Method, Root, Scope, Special, Subject, Trait};

const fn first(names: &'static [&'static str]) -> Option<&'static str> {
    match names {
        [name, ..] => Some(name),
        [] => None,
    }
}

const fn unary(_request: &'static str) -> Kind {
    Kind::Unary
}

// Each row: the name of the operation in metrics and the API description, its topic, where its names are
// looked up, the right that it asks of its caller at its subject, its traits; its method and path in HTTP,
// and its method in gRPC; behind `=>` the type of its request, when it has one answer (`call::Unary`), else
// behind `by` its kind.
operations! {
    /// Send one message or many, all or nothing.
    /// The queue is created by its first message.
    Send "send" in "messages": Namespaced Send Queue [Hot]
        Post V1 ["queues" / "{queue}" / "messages"] "Messages/Send" by Hot Send;
    /// Take messages under a lease.
    /// Returns with the first messages there are; waits up to wait_ms for a first one.
    Receive "receive" in "messages": Namespaced Receive Queue [Hot Long Waits]
        Post V1 ["queues" / "{queue}" / "receive"] by Hot Receive;
    /// Settle many, each with its own outcome.
    Settle "settle" in "messages": Namespaced Receive SomeQueue [Hot Relieves]
        Post V1 ["settle"] "Messages/Settle" by Hot Settle;
    /// Done: the message is gone, or kept with its result.
    Ack "ack" in "messages": Namespaced Receive SomeQueue [Hot Relieves]
        Post V1 ["ack"] by Hot Ack;
    /// Failed: another attempt after the backoff.
    /// After max_attempts the message becomes a dead letter.
    Nack "nack" in "messages": Namespaced Receive SomeQueue [Hot Relieves]
        Post V1 ["nack"] by Hot Nack;
    /// Not now: give back, the attempt does not count.
    Release "release" in "messages": Namespaced Receive SomeQueue [Hot Relieves]
        Post V1 ["release"] by Hot Release;
    /// Never: to the dead letters.
    Reject "reject" in "messages": Namespaced Receive SomeQueue [Hot Relieves]
        Post V1 ["reject"] by Hot Reject;
    /// Extend leases.
    /// The lease ends lease_ms from now. Progress and checkpoint are kept, and the checkpoint is handed to
    /// the next attempt.
    Extend "extend" in "messages": Namespaced Receive SomeQueue [Relieves]
        Post V1 ["extend"] "Messages/Extend" by Hot Extend;
    /// Take messages from several queues.
    /// In the order given, or in proportion to weights.
    ReceiveMany "receive_many" in "messages": Namespaced Receive SomeQueue [Long Waits]
        Post V1 ["receive"] "Messages/Receive" by Hot ReceiveMany;
    /// Send one message, its payload as the body.
    /// Content-Type is kept with the message, and so is traceparent.
    SendRaw "send_raw" in "messages": Namespaced Send Queue []
        Post V1 ["queues" / "{queue}" / "messages" / "raw"] by Special SendRaw;
    /// Take one message, its payload as the body.
    /// The fields are in Sluice- headers; those of the message in Sluice-Header-{name}.
    ReceiveRaw "receive_raw" in "messages": Namespaced Receive Queue [Long Waits]
        Post V1 ["queues" / "{queue}" / "receive" / "raw"] by Special ReceiveRaw;
    /// List queues by name.
    QueueList "queue_list" in "queues": Namespaced Observe SomeQueue [Long Stale]
        Get V1 ["queues"] "Queues/List" => queues::List;
    /// Show a queue.
    QueueShow "queue_show" in "queues": Namespaced Observe Queue [Stale]
        Get V1 ["queues" / "{queue}"] "Queues/Get" => queues::Show;
    /// Create a queue, or change its settings.
    /// Settings that are not named keep their value.
    QueuePut "queue_put" in "queues": Namespaced Operate Queue []
        Put V1 ["queues" / "{queue}"] "Queues/Put" => queues::Put;
    /// Change settings of a queue that exists.
    QueuePatch "queue_patch" in "queues": Namespaced Operate Queue []
        Patch V1 ["queues" / "{queue}"] "Queues/Change" => queues::Patch;
    /// Delete a queue and everything in it.
    QueueDelete "queue_delete" in "queues": Namespaced Operate Queue []
        Delete V1 ["queues" / "{queue}"] "Queues/Delete" => queues::Delete;
    /// Deliver nothing.
    /// Sends go on, and what is leased runs on.
    QueuePause "queue_pause" in "queues": Namespaced Operate Queue []
        Post V1 ["queues" / "{queue}" / "pause"] "Queues/Pause" => queues::Pause<true>;
    /// Deliver again.
    /// Receives that wait get their messages at once.
    QueueResume "queue_resume" in "queues": Namespaced Operate Queue []
        Post V1 ["queues" / "{queue}" / "resume"] "Queues/Resume" => queues::Pause<false>;
    /// Refuse sends.
    /// What the queue holds is delivered.
    QueueClose "queue_close" in "queues": Namespaced Operate Queue []
        Post V1 ["queues" / "{queue}" / "close"] "Queues/Close" => queues::Close<true>;
    /// Accept sends again.
    QueueOpen "queue_open" in "queues": Namespaced Operate Queue []
        Post V1 ["queues" / "{queue}" / "open"] "Queues/Open" => queues::Close<false>;
    /// Drop what waits.
    /// Ready, delayed and held messages go; leased ones and dead letters stay.
    QueuePurge "queue_purge" in "queues": Namespaced Operate Queue []
        Post V1 ["queues" / "{queue}" / "purge"] "Queues/Purge" => queues::Purge;
    /// List the latest pushes of a queue to its endpoint, the newest first.
    /// At most 100, of the time since this node pushes them.
    PushList "push_list" in "queues": Namespaced Observe Queue [Long]
        Get V1 ["queues" / "{queue}" / "pushes"] "Queues/ListPushes" => pushes::List;
    /// List the messages of a queue.
    /// By id. A page may be short, even empty, and have a next one.
    MessageList "message_list" in "looking": Namespaced Observe Queue [Long Stale]
        Get V1 ["queues" / "{queue}" / "messages"] "Messages/List" => messages::List;
    /// Find the messages of a queue that match a filter.
    /// By id. A call looks at a part of a long queue: its answer may be short, even empty, and have a next.
    MessageSearch "message_search" in "looking": Namespaced Observe Queue [Long]
        Post V1 ["queues" / "{queue}" / "search"] "Messages/Search" => messages::Search;
    /// Look at the messages next in line.
    /// At most some 16 MiB; the answer is truncated when that cuts it short.
    MessagePeek "message_peek" in "looking": Namespaced Observe Queue [Long Stale]
        Get V1 ["queues" / "{queue}" / "peek"] "Messages/Peek" => messages::Peek;
    /// Watch what happens to the messages of a namespace.
    /// Server-sent events, for as long as the client reads: the JSON of each is an Event. A client that comes
    /// back with the id of the last one gets those since, or a gap that tells what is lost.
    Events "events" in "looking": Namespaced Observe Namespace []
        Get V1 ["events"] "Events/Watch" by Special Events;
    /// Watch what happens to the messages of a queue.
    /// Server-sent events, for as long as the client reads: the JSON of each is an Event. A client that comes
    /// back with the id of the last one gets those since, or a gap that tells what is lost.
    QueueEvents "queue_events" in "looking": Namespaced Observe Queue []
        Get V1 ["queues" / "{queue}" / "events"] "Events/WatchQueue" by Special QueueEvents;
    /// Watch the figures of a namespace or a queue.
    /// Server-sent events, for as long as the client reads: first those of the last 15 minutes, as far as
    /// somebody has read them meanwhile, then a sample each second.
    Statistics "statistics" in "looking": Namespaced Observe Namespace []
        Get V1 ["statistics"] by Special Statistics;
    /// Show a message with its history.
    MessageShow "message_show" in "looking": Namespaced Observe SomeQueue [Long Stale]
        Get V1 ["messages" / "{id}"] "Messages/Get" => messages::Show;
    /// Wait for a message's end, and get its result.
    /// message_not_found when it is gone: no longer kept, purged, or acked without anybody wanting its
    /// result.
    ResultShow "result_show" in "looking": Namespaced Result SomeQueue [Long Waits]
        Get V1 ["messages" / "{id}" / "result"] "Messages/AwaitResult" => results::Show;
    /// Wait for a message's end, and get its result as the body.
    /// Sluice-State tells done, dead or pending.
    ResultRaw "result_raw" in "looking": Namespaced Result SomeQueue [Long Waits]
        Get V1 ["messages" / "{id}" / "result" / "raw"] by Special ResultRaw;
    /// Cancel a message.
    MessageCancel "message_cancel" in "changing": Namespaced Operate SomeQueue []
        Post V1 ["messages" / "{id}" / "cancel"] "Messages/Cancel" => changes::Cancel;
    /// Hold a message until a person decides.
    MessageHold "message_hold" in "changing": Namespaced Operate SomeQueue []
        Post V1 ["messages" / "{id}" / "hold"] "Messages/Hold" => changes::Hold;
    /// Let a held message go on.
    MessageApprove "message_approve" in "changing": Namespaced Operate SomeQueue []
        Post V1 ["messages" / "{id}" / "approve"] "Messages/Approve" => changes::Approve;
    /// Make a held message a dead letter.
    MessageDeny "message_deny" in "changing": Namespaced Operate SomeQueue []
        Post V1 ["messages" / "{id}" / "deny"] "Messages/Deny" => changes::Deny;
    /// Make a message ready now.
    MessageRetry "message_retry" in "changing": Namespaced Operate SomeQueue []
        Post V1 ["messages" / "{id}" / "retry"] "Messages/Retry" => changes::Retry;
    /// Move a message to another queue.
    /// Its id stays.
    MessageMove "message_move" in "changing": Namespaced Operate SomeQueue []
        Post V1 ["messages" / "{id}" / "move"] "Messages/Move" => changes::Move;
    /// Change fields of a message.
    MessageChange "message_change" in "changing": Namespaced Operate SomeQueue []
        Post V1 ["messages" / "{id}" / "change"] "Messages/Change" => changes::Change;
    /// List bulks, oldest first.
    BulkList "bulk_list" in "changing": Namespaced Observe SomeQueue [Long]
        Get V1 ["bulk"] "Bulks/List" => bulk::List;
    /// Change all messages of a queue that match, in the background.
    /// Messages that come later are not changed.
    BulkStart "bulk_start" in "changing": Namespaced Operate SomeQueue []
        Post V1 ["bulk"] "Bulks/Start" => bulk::Start;
    /// Show the progress of a bulk.
    BulkShow "bulk_show" in "changing": Namespaced Observe SomeQueue []
        Get V1 ["bulk" / "{bulk}"] "Bulks/Get" => bulk::Show;
    /// End a bulk.
    /// What it has changed stays changed. Answers when it has ended.
    BulkCancel "bulk_cancel" in "changing": Namespaced Operate SomeQueue []
        Delete V1 ["bulk" / "{bulk}"] "Bulks/Cancel" => bulk::Cancel;
    /// Count dead letters by the text of their last error.
    /// Looks at a part of a long queue at a time; `next` goes on behind it.
    DeadErrors "dead_errors" in "dead letters": Namespaced Observe Queue [Long Stale]
        Get V1 ["queues" / "{queue}" / "dead" / "errors"] "Queues/CountDeadErrors" => dead::Errors;
    /// List dead letters.
    DeadList "dead_list" in "dead letters": Namespaced Observe Queue [Long Stale]
        Get V1 ["queues" / "{queue}" / "dead"] "Queues/ListDead" => messages::DeadList;
    /// Make dead letters ready again.
    /// With per_second the answer tells how many will be; a new redrive replaces one that runs.
    DeadRedrive "dead_redrive" in "dead letters": Namespaced Operate Queue []
        Post V1 ["queues" / "{queue}" / "dead" / "redrive"] "Queues/Redrive" => dead::Redrive;
    /// End a redrive at a rate.
    /// What is left of it stays dead.
    DeadRedriveEnd "dead_redrive_end" in "dead letters": Namespaced Operate Queue []
        Delete V1 ["queues" / "{queue}" / "dead" / "redrive"] "Queues/EndRedrive" => dead::RedriveEnd;
    /// Delete dead letters.
    DeadDelete "dead_delete" in "dead letters": Namespaced Operate Queue []
        Post V1 ["queues" / "{queue}" / "dead" / "delete"] "Queues/DeleteDead" => dead::Delete;
    /// List consumers in the order in which they came.
    ConsumerList "consumer_list" in "consumers": Namespaced Observe Namespace [Long Stale]
        Get V1 ["consumers"] "Consumers/List" => consumers::List;
    /// Show a consumer and what it holds.
    ConsumerShow "consumer_show" in "consumers": Namespaced Observe Namespace [Long Stale]
        Get V1 ["consumers" / "{consumer}"] "Consumers/Get" => consumers::Show;
    /// Detach a consumer.
    /// It gets nothing more. What it holds goes back after a time of grace, and the attempt does not count.
    ConsumerDetach "consumer_detach" in "consumers": Namespaced Operate Namespace []
        Delete V1 ["consumers" / "{consumer}"] "Consumers/Detach" => consumers::Detach;
    /// List limits by name.
    LimitList "limit_list" in "limits": Namespaced Observe Namespace [Long Stale]
        Get V1 ["limits"] "Limits/List" => limits::List;
    /// Send messages, and one more when all of them have ended.
    /// All or nothing. The callback carries the headers sluice-done and sluice-dead.
    GroupSend "group_send" in "flows": Namespaced Send SomeQueue []
        Post V1 ["groups"] "Messages/SendGroup" by Hot GroupSend;
    /// Show how many members of a group have ended.
    GroupShow "group_show" in "flows": Namespaced Result SomeQueue [Long Stale]
        Get V1 ["groups" / "{group}"] "Messages/GetGroup" => groups::Show;
    /// Show what a message waits for, and what follows it.
    /// Its parents, the steps of its chain, and as a tree what waits for it; at most 256 of all of them.
    FlowShow "flow_show" in "flows": Namespaced Result Namespace [Long Stale]
        Get V1 ["flows" / "{id}"] "Messages/GetFlow" => flows::Show;
    /// Show a limit and what it holds back.
    /// With a page of its keys. A page may be short, even empty, and have a next one.
    LimitShow "limit_show" in "limits": Namespaced Observe Namespace [Long Stale]
        Get V1 ["limits" / "{limit}"] "Limits/Get" => limits::Show;
    /// Create a limit, or replace what it allows.
    /// It acts at once. What is not named is not limited.
    LimitPut "limit_put" in "limits": Namespaced Operate Namespace []
        Put V1 ["limits" / "{limit}"] "Limits/Put" => limits::Put;
    /// List schedules by name.
    ScheduleList "schedule_list" in "schedules": Namespaced Observe Namespace [Long Stale]
        Get V1 ["schedules"] "Schedules/List" => schedules::List;
    /// Show a schedule and what it sends.
    ScheduleShow "schedule_show" in "schedules": Namespaced Observe Namespace [Long Stale]
        Get V1 ["schedules" / "{schedule}"] "Schedules/Get" => schedules::Show;
    /// Create a schedule, or replace what it does.
    /// One of cron and every_ms. It stays paused if it is, and keeps its next time if that is said as before.
    SchedulePut "schedule_put" in "schedules": Namespaced Operate Namespace []
        Put V1 ["schedules" / "{schedule}"] "Schedules/Put" by Hot SchedulePut;
    /// Delete a schedule; messages that it has sent stay.
    ScheduleDelete "schedule_delete" in "schedules": Namespaced Operate Namespace []
        Delete V1 ["schedules" / "{schedule}"] "Schedules/Delete" => schedules::Delete;
    /// Tell when a schedule fires next.
    ScheduleNext "schedule_next" in "schedules": Namespaced Observe Namespace [Stale]
        Get V1 ["schedules" / "{schedule}" / "next"] "Schedules/Next" => schedules::Next;
    /// Skip the times of a schedule.
    SchedulePause "schedule_pause" in "schedules": Namespaced Operate Namespace []
        Post V1 ["schedules" / "{schedule}" / "pause"] "Schedules/Pause" => schedules::Pause<true>;
    /// Let a paused schedule go on with its next time.
    ScheduleResume "schedule_resume" in "schedules": Namespaced Operate Namespace []
        Post V1 ["schedules" / "{schedule}" / "resume"] "Schedules/Resume" => schedules::Pause<false>;
    /// Send a schedule's message now.
    /// Its times stay as they are.
    ScheduleTrigger "schedule_trigger" in "schedules": Namespaced Operate Namespace []
        Post V1 ["schedules" / "{schedule}" / "trigger"] "Schedules/Trigger" => schedules::Trigger;
    /// Delete a limit that no queue follows.
    LimitDelete "limit_delete" in "limits": Namespaced Operate Namespace []
        Delete V1 ["limits" / "{limit}"] "Limits/Delete" => limits::Delete;
    /// List settings of queues not yet made, by pattern.
    DefaultsList "defaults_list" in "queues": Namespaced Observe Namespace [Long Stale]
        Get V1 ["queue-defaults"] "Queues/ListDefaults" => queue_defaults::List;
    /// Show the settings of a pattern.
    DefaultsShow "defaults_show" in "queues": Namespaced Observe Namespace [Stale]
        Get V1 ["queue-defaults" / "{pattern}"] "Queues/GetDefaults" => queue_defaults::Show;
    /// Set what queues begin with whose names match.
    /// The longest pattern that matches counts, of equals the first by name. Queues that exist stay as they
    /// are.
    DefaultsPut "defaults_put" in "queues": Namespaced Operate Namespace []
        Put V1 ["queue-defaults" / "{pattern}"] "Queues/PutDefaults" => queue_defaults::Put;
    /// Delete the settings of a pattern.
    DefaultsDelete "defaults_delete" in "queues": Namespaced Operate Namespace []
        Delete V1 ["queue-defaults" / "{pattern}"] "Queues/DeleteDefaults" => queue_defaults::Delete;
    /// List namespaces.
    NamespaceList "namespace_list" in "namespaces": Server Open Server [Long Stale]
        Get V1 ["namespaces"] "Namespaces/List" => namespaces::List;
    /// Show a namespace.
    NamespaceShow "namespace_show" in "namespaces": Namespace Observe Namespace [Stale]
        Get V1 ["namespaces" / "{namespace}"] "Namespaces/Get" => namespaces::Show;
    /// Create a namespace, or set its quotas.
    NamespacePut "namespace_put" in "namespaces": Namespace Admin Server []
        Put V1 ["namespaces" / "{namespace}"] "Namespaces/Put" => namespaces::Put;
    /// Change quotas of a namespace.
    NamespacePatch "namespace_patch" in "namespaces": Namespace Admin Server []
        Patch V1 ["namespaces" / "{namespace}"] "Namespaces/Change" => namespaces::Patch;
    /// Delete a namespace.
    NamespaceDelete "namespace_delete" in "namespaces": Namespace Admin Server []
        Delete V1 ["namespaces" / "{namespace}"] "Namespaces/Delete" => namespaces::Delete;
    /// Figures of the server and its shards.
    Status "status" in "server": Server Observe Server [Local]
        Get V1 ["status"] => status::Show;
    /// A consistent copy of everything, taken while serving.
    /// One stream, for `sluice restore`.
    Backup "backup" in "server": Server Admin Server [Local]
        Get V1 ["admin" / "backup"] by Special Backup;
    /// Show what is encrypted under which root key.
    KeysShow "keys_show" in "server": Server Admin Server [Local]
        Get V1 ["admin" / "keys"] => keys::Show;
    /// Encrypt what is written from now on under a new root key.
    /// What was written before keeps its key until it is compacted.
    KeysRotate "keys_rotate" in "server": Server Admin Server [Local]
        Post V1 ["admin" / "keys" / "rotate"] => keys::Rotate;
    /// Show the time of a server for tests.
    /// no_test_server on any other.
    TestTimeShow "test_time_show" in "tests": Server Observe Server [Local]
        Get V1 ["test" / "time"] "Testing/GetTime" => test_time::Show;
    /// Move the time of a server for tests forward.
    /// Answers when everything that is due by then is done. no_test_server on any other.
    TestTimeAdvance "test_time_advance" in "tests": Server Admin Server [Local]
        Post V1 ["test" / "time"] "Testing/Advance" => test_time::Advance;
    /// Liveness of the process.
    Health "health" in "server": Server Open Server [Public Always Local]
        Get Root ["healthz"] by Special Health;
    /// True when requests are served.
    Ready "ready" in "server": Server Open Server [Public Always Local]
        Get Root ["readyz"] by Special Ready;
    /// Figures for Prometheus.
    Metrics "metrics" in "server": Server Observe Server [Always Local]
        Get Root ["metrics"] by Special Metrics;
    /// This description.
    OpenApi "openapi" in "server": Server Open Server [Long Public Local]
        Get Root ["openapi.json"] by Special OpenApi;
    /// This description as a page.
    Docs "docs" in "server": Server Open Server [Long Public Local]
        Get Root ["docs"] by Special Docs;
    /// List tokens, without their secrets.
    TokenList "token_list" in "access": Server Admin Server []
        Get V1 ["tokens"] => tokens::List;
    /// Create a token.
    /// Its text is in this answer and nowhere else: only a hash of it is kept. From the first identity on,
    /// all callers must authenticate.
    TokenCreate "token_create" in "access": Server Admin Server []
        Post V1 ["tokens"] => tokens::Create;
    /// Revoke a token, by its id or name.
    /// It is invalid at once, on open connections too.
    TokenRevoke "token_revoke" in "access": Server Admin Server []
        Delete V1 ["tokens" / "{token}"] => tokens::Revoke;
    /// Show the stored policy.
    /// policy_not_found while none is stored, and each server uses the policy file of its settings.
    PolicyShow "policy_show" in "access": Server Admin Server [Long]
        Get V1 ["policy"] => policy::Show;
    /// Store a policy, which counts on every node of a cluster, in place of their policy files.
    /// It is checked as a whole before anything changes. It acts at once here and within a second on the
    /// other nodes, on open connections too.
    PolicyPut "policy_put" in "access": Server Admin Server []
        Put V1 ["policy"] => policy::Put;
    /// Remove the stored policy.
    /// Each server uses the policy file of its settings again, if it has one.
    PolicyDelete "policy_delete" in "access": Server Admin Server []
        Delete V1 ["policy"] => policy::Delete;
    /// Read the audit log, the oldest entries first.
    /// Administrative acts, and changes of queues and messages by hand, refused ones included; recorded while
    /// callers must authenticate.
    Audit "audit" in "access": Server Admin Server [Long]
        Get V1 ["admin" / "audit"] => tokens::ReadAudit;
    /// Show the nodes of the cluster.
    ClusterShow "cluster_show" in "cluster": Server Observe Server [Local]
        Get V1 ["cluster"] => cluster::Show;
    /// Show the health of the cluster: what is wrong, and what to do.
    /// The node that is asked asks each other one, for a second.
    ClusterStatus "cluster_status" in "cluster": Server Observe Server [Local]
        Get V1 ["cluster" / "status"] => health::Show;
    /// Hand the leadership of shards to a node.
    /// Leaderships are spread evenly again when they have stayed for 30 s, where a node leads two more than
    /// another.
    ClusterTransfer "cluster_transfer" in "cluster": Server Admin Server [Local]
        Post V1 ["cluster" / "transfer"] => cluster::Transfer;
    /// Put the newest behaviour version into force, which all nodes have to know.
    /// No node can go back to a program that does not know it.
    ClusterFinalize "cluster_finalize" in "cluster": Server Admin Server [Local]
        Post V1 ["cluster" / "finalize"] => finalize::Finalize;
    /// Show the limits in force in the cluster, and the nodes with others in their settings.
    /// The node that leads shard 0 asks each other one, for a second.
    ClusterLimits "cluster_limits" in "cluster": Server Observe Server []
        Get V1 ["cluster" / "limits"] => cluster_limits::Show;
    /// Put limits into force in the cluster.
    /// Limits that are not named stay, or are taken from the settings of a node.
    ClusterLimitsSet "cluster_limits_set" in "cluster": Server Admin Server []
        Patch V1 ["cluster" / "limits"] => cluster_limits::Set;
    /// Create a token with which one machine can join the cluster.
    /// Its text is in this answer and nowhere else.
    ClusterTokenCreate "cluster_token_create" in "cluster": Server Admin Server []
        Post V1 ["cluster" / "tokens"] => membership::CreateToken;
    /// Join the cluster with a token.
    /// The same machine may ask again until it has the answer.
    ClusterJoin "cluster_join" in "cluster": Server Open Server [Public]
        Post V1 ["cluster" / "join"] => membership::Join;
    /// Set the address of a node, whose machine has moved.
    /// The others connect with it there.
    ClusterAddress "cluster_address" in "cluster": Server Admin Server []
        Patch V1 ["cluster" / "nodes" / "{node}"] => membership::SetAddress;
    /// Remove a node for good.
    /// It never comes back under its number. Its part in each shard ends in the background.
    ClusterRemove "cluster_remove" in "cluster": Server Admin Server []
        Delete V1 ["cluster" / "nodes" / "{node}"] => membership::Remove;
    /// Acquire locks.
    /// One key, or several, all or none. A repeat with the same `request_id` gets the same grant.
    LockAcquire "lock_acquire" in "locks": Namespaced Coordinate SomeKey [Waits]
        Post V1 ["locks"] "Locks/Acquire" => locks::Acquire;
    /// Renew a grant.
    LockRenew "lock_renew" in "locks": Namespaced Coordinate SomeKey [Relieves]
        Post V1 ["grants" / "renew"] "Locks/Renew" => locks::Renew;
    /// Release a grant.
    /// One that was released before with this token is no error.
    LockRelease "lock_release" in "locks": Namespaced Coordinate SomeKey [Relieves]
        Post V1 ["grants" / "release"] "Locks/Release" => locks::Release;
    /// List locks.
    /// Those that are held or waited for, by key.
    LockList "lock_list" in "locks": Namespaced Observe SomeKey [Long Stale]
        Get V1 ["locks"] "Locks/List" => locks::views::List;
    /// Show a lock, with its holders and those that wait.
    LockShow "lock_show" in "locks": Namespaced Observe Key [Stale]
        Get V1 ["locks" / "{key}"] "Locks/Show" => locks::views::Show;
    /// Watch a lock.
    /// Server-sent events, for as long as the client reads: the lock as it is, and again after each change.
    /// A slow client may miss states, but never the last one.
    LockWatch "lock_watch" in "locks": Namespaced Observe Key []
        Get V1 ["locks" / "{key}" / "stream"] "Locks/Watch" by Special LockWatch;
    /// Break a lock: its holders lose it.
    LockBreak "lock_break" in "locks": Namespaced Operate Key []
        Delete V1 ["locks" / "{key}"] "Locks/Break" => locks::Break;
    /// Write a document.
    /// Under the conditions that are given: by version, by ETag, by a lock's token. A repeat with the same
    /// `request_id` writes once.
    DocumentPut "document_put" in "documents": Namespaced Coordinate Key []
        Put V1 ["documents" / "{key}"] "Documents/Put" => documents::Put;
    /// Change a document whose content is JSON.
    /// By a merge patch, a JSON patch, or increments of numbers, in the place where it lies.
    DocumentPatch "document_patch" in "documents": Namespaced Coordinate Key []
        Patch V1 ["documents" / "{key}"] "Documents/Patch" => documents::patch::Patch;
    /// Write a document, its content as the body.
    /// Content-Type is kept with it; conditions are If-Match, If-None-Match and Sluice-Lock-Token.
    DocumentPutRaw "document_put_raw" in "documents": Namespaced Coordinate Key []
        Put V1 ["documents" / "{key}" / "raw"] by Special DocumentPutRaw;
    /// Change a document whose content is JSON, the patch as the body.
    /// Its type tells which: application/merge-patch+json or application/json-patch+json.
    DocumentPatchRaw "document_patch_raw" in "documents": Namespaced Coordinate Key []
        Patch V1 ["documents" / "{key}" / "raw"] by Special DocumentPatchRaw;
    /// Show a document with its content, or a former version of it.
    DocumentShow "document_show" in "documents": Namespaced Read Key [Long Stale]
        Get V1 ["documents" / "{key}"] "Documents/Get" => documents::Show;
    /// Read the content of a document as the body.
    /// If-None-Match with its ETag answers 304.
    DocumentRaw "document_raw" in "documents": Namespaced Read Key [Long]
        Get V1 ["documents" / "{key}" / "raw"] by Special DocumentRaw;
    /// List documents by key.
    DocumentList "document_list" in "documents": Namespaced Read SomeKey [Long Stale]
        Get V1 ["documents"] "Documents/List" => documents::List;
    /// Find documents by what their JSON contains.
    /// Looks at a part of many documents at a time; `next` goes on behind it. Documents that are not JSON are
    /// passed over.
    DocumentQuery "document_query" in "documents": Namespaced Read SomeKey [Long]
        Post V1 ["documents" / "query"] "Documents/Query" => documents::query::Query;
    /// Declare an index of documents, by a value in their JSON.
    /// Queries use it as soon as it knows all documents.
    DocumentIndexPut "document_index_put" in "documents": Namespaced Operate Namespace []
        Put V1 ["document-indexes" / "{index}"] "Documents/PutIndex" => documents::indexes::Put;
    /// List the indexes of documents.
    DocumentIndexList "document_index_list" in "documents": Namespaced Observe Namespace []
        Get V1 ["document-indexes"] "Documents/ListIndexes" => documents::indexes::List;
    /// Delete an index of documents.
    DocumentIndexDelete "document_index_delete" in "documents": Namespaced Operate Namespace []
        Delete V1 ["document-indexes" / "{index}"] "Documents/DeleteIndex" => documents::indexes::Delete;
    /// Tell what has changed, and wait for the next change.
    /// Of each document its last change, and its ends, which are remembered for an hour.
    DocumentChanges "document_changes" in "documents": Namespaced Read SomeKey [Long Waits]
        Get V1 ["document-changes"] "Documents/Changes" => documents::changes::Changes;
    /// Watch documents.
    /// Server-sent events, for as long as the client reads: the documents as they are, an event that says
    /// that these were all, and each change from then on. A client that comes back with the id of the last
    /// event gets what has changed since.
    DocumentWatch "document_watch" in "documents": Namespaced Read SomeKey []
        Get V1 ["document-changes" / "stream"] "Documents/Watch" by Special DocumentWatch;
    /// List the versions of a document that are kept.
    DocumentHistory "document_history" in "documents": Namespaced Read Key [Long Stale]
        Get V1 ["documents" / "{key}" / "history"] "Documents/History" => documents::History;
    /// Delete a document with its former versions.
    DocumentDelete "document_delete" in "documents": Namespaced Coordinate Key []
        Delete V1 ["documents" / "{key}"] "Documents/Delete" => documents::Delete;
    /// Begin an upload for an attachment of a document.
    /// The document need not be there yet. An upload to which no chunk comes for an hour is gone.
    UploadBegin "upload_begin" in "attachments": Namespaced Coordinate Key []
        Post V1 ["documents" / "{key}" / "uploads"] "Attachments/Begin" => attachments::Begin;
    /// Show an upload, or those for an attachment.
    UploadList "upload_list" in "attachments": Namespaced Coordinate Key []
        Get V1 ["documents" / "{key}" / "uploads"] "Attachments/Uploads" => attachments::Uploads;
    /// Add a chunk to an upload.
    /// It follows the bytes that are there; the last one again is a success.
    UploadChunk "upload_chunk" in "attachments": Namespaced Coordinate Key []
        Post V1 ["documents" / "{key}" / "uploads" / "chunks"] "Attachments/Append" => attachments::Chunk;
    /// Add a chunk to an upload, its bytes as the body.
    /// Upload-Offset tells the number of the bytes before it.
    UploadRaw "upload_raw" in "attachments": Namespaced Coordinate Key []
        Patch V1 ["documents" / "{key}" / "uploads" / "raw"] by Special UploadRaw;
    /// Make an attachment from an upload.
    /// Under the conditions that are given. A repeat gets the first outcome.
    UploadCommit "upload_commit" in "attachments": Namespaced Coordinate Key []
        Post V1 ["documents" / "{key}" / "uploads" / "commit"] "Attachments/Commit" => attachments::Commit;
    /// End an upload without a commit.
    UploadEnd "upload_end" in "attachments": Namespaced Coordinate Key []
        Delete V1 ["documents" / "{key}" / "uploads"] "Attachments/End" => attachments::End;
    /// Write an attachment, its bytes as the body.
    /// Content-Type is kept with it; conditions are If-Match, If-None-Match and Sluice-Lock-Token.
    AttachmentPutRaw "attachment_put_raw" in "attachments": Namespaced Coordinate Key []
        Put V1 ["documents" / "{key}" / "attachments" / "raw"] "Attachments/Upload" by Special AttachmentPutRaw;
    /// Read the bytes of an attachment as the body, or a range of them.
    /// If-None-Match with its ETag answers 304.
    AttachmentRaw "attachment_raw" in "attachments": Namespaced Read Key [Long]
        Get V1 ["documents" / "{key}" / "attachments" / "raw"] "Attachments/Download" by Special AttachmentRaw;
    /// Read some bytes of an attachment.
    /// From an offset to the end of the chunk in which that lies: 1 MiB at most.
    AttachmentRead "attachment_read" in "attachments": Namespaced Read Key [Long]
        Get V1 ["documents" / "{key}" / "attachments" / "read"] "Attachments/Read" => attachments::reading::Show;
    /// List the attachments of a document by name.
    AttachmentList "attachment_list" in "attachments": Namespaced Read Key [Long Stale]
        Get V1 ["documents" / "{key}" / "attachments"] "Attachments/List" => attachments::List;
    /// Delete an attachment.
    AttachmentDelete "attachment_delete" in "attachments": Namespaced Coordinate Key []
        Delete V1 ["documents" / "{key}" / "attachments"] "Attachments/Delete" => attachments::Delete;
    /// Do operations on queues, documents and locks together, all or none.
    /// An error of one refuses all. A repeat with its idempotency key gets the first outcome.
    TransactionCommit "transaction_commit" in "transactions": Namespaced Open Namespace []
        Post V1 ["transactions"] "Transactions/Commit" by Hot TransactionCommit;
    /// Begin a transaction whose operations are staged over several calls.
    TransactionBegin "transaction_begin" in "transactions": Namespaced Open Namespace []
        Post V1 ["transactions" / "begin"] "Transactions/Begin" => transactions::Begin;
    /// Stage operations, and read documents as the transaction sees them.
    TransactionStage "transaction_stage" in "transactions": Namespaced Open Namespace [Long]
        Post V1 ["transactions" / "{transaction}" / "operations"] "Transactions/Stage" by Hot TransactionStage;
    /// Do all that is staged, or nothing.
    TransactionClose "transaction_close" in "transactions": Namespaced Open Namespace []
        Post V1 ["transactions" / "{transaction}" / "commit"] "Transactions/Close" by Hot TransactionClose;
    /// Roll a transaction back: nothing of it is done.
    TransactionRollback "transaction_rollback" in "transactions": Namespaced Open Namespace []
        Post V1 ["transactions" / "{transaction}" / "rollback"] "Transactions/Rollback" => transactions::Rollback;
    /// List the open transactions of a namespace, the oldest first.
    OpenTransactionList "open_transaction_list" in "transactions": Namespaced Observe Namespace [Long]
        Get V1 ["open-transactions"] "Transactions/ListOpen" => transactions::List;
    /// Show an open transaction with its operations, without contents.
    OpenTransactionShow "open_transaction_show" in "transactions": Namespaced Observe Namespace [Long]
        Get V1 ["open-transactions" / "{name}"] "Transactions/ShowOpen" => transactions::Show;
    /// Roll an open transaction back, whoever has begun it.
    OpenTransactionBreak "open_transaction_break" in "transactions": Namespaced Operate Namespace []
        Delete V1 ["open-transactions" / "{name}"] "Transactions/BreakOpen" => transactions::Break;
    /// List the transactions over several namespaces that are in doubt in a namespace, by id.
    InDoubtList "in_doubt_list" in "transactions": Namespaced Observe Namespace [Long]
        Get V1 ["in-doubt-transactions"] "Transactions/ListInDoubt" => transactions::InDoubtList;
    /// Show a transaction that is in doubt, with the operations that are prepared, without contents.
    InDoubtShow "in_doubt_show" in "transactions": Namespaced Observe Namespace [Long]
        Get V1 ["in-doubt-transactions" / "{transaction}"] "Transactions/ShowInDoubt" => transactions::InDoubtShow;
    /// Finish a transaction that is in doubt, as its coordinator has decided, or by force.
    InDoubtResolve "in_doubt_resolve" in "transactions": Namespaced Admin Namespace []
        Post V1 ["in-doubt-transactions" / "{transaction}" / "resolve"] "Transactions/Resolve" => transactions::Resolve;
    /// Show who the caller is to this server, and what they may do.
    WhoAmI "whoami" in "access": Server Open Server []
        Get V1 ["whoami"] => tokens::WhoAmI;
}

/// The properties of an operation.
#[derive(Debug)]
struct Declaration {
    name: &'static str,
    topic: &'static str,
    about: &'static [&'static str],
    scope: Scope,
    right: Right,
    subject: Subject,
    traits: u8,
    http: HttpName,
    grpc: Option<&'static str>,
    kind: Kind,
}

#[cfg(test)]
mod tests;

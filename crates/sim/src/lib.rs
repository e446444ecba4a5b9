//! The simulator of Sluice: the real engine, journal and shard under virtual time, on a faulty disk, with
//! clients that send random requests, checked against a model. A seed decides everything, so a failure is
//! repeated by its seed.
//!
//! ```text
//! cargo run -p sluice-sim --release -- --seeds 1000            # seeds 0 to 999
//! scripts/simulate --seconds 3600                              # new seeds for an hour, on all cores
//! cargo run -p sluice-sim --release -- --seed 42 --verbose     # one seed, with each step printed
//! cargo run -p sluice-sim --release -- --seeds 1000 --plant skip_sync
//! ```
//!
//! # What runs
//!
//! The shards of a node (one to three) with their journals on one disk: the code of the product, none of it
//! replaced. Namespaces are placed on the shards, and changed in two steps, as the node does it. Everything
//! is made of step functions (shard, writer, maintenance with snapshots, compaction, scrub and rest, the blob
//! reader, bulks). The product drives them by threads and tasks; here a scheduler picks by the seed which one
//! steps next, when time passes, and what fails. Only the ground layer is simulated: the disk ([`disk`]), the
//! clock ([`clock`]), and the clients ([`workload`]).
//!
//! # Fault model
//!
//! - **Process kill.** Everything in memory is gone; what was written stays, synced or not.
//! - **Power loss.** Of what was not synced, each sector (512 bytes) by itself is lost, written, or torn in
//!   the middle; so writes survive in any order. A file's length may be the old one, the new one, or in
//!   between. Names that were created, renamed or removed without a sync of their directory may be back as
//!   before, each by itself; a rename is whole or not at all. Power may be lost again before the next start.
//! - **A failed sync** leaves pages that are readable and marked clean, but are not on the disk: a later
//!   successful sync does not write them. The system may drop them while it runs on.
//! - **The n-th call fails:** a read, write (a part of it may have been written), sync, directory sync, or a
//!   change of names; while serving, and while recovering.
//! - **A full disk,** and space again later; no space for a single call although free space was reported.
//! - **Lost files** between two processes: any one, or a shard's whole directory.
//! - **A newer server** that has left its log behind.
//! - **Damage** to any file, on the disk and in the cache: a flipped bit; zeros over the end of what was
//!   written; a segment cut off by a byte or by half.
//! - **Time:** steps of any length, pauses longer than every lease, a wall clock that jumps.
//! - **Clients** that are late, repeat themselves, forge receipts, and go away while they wait; slow
//!   watchers.
//!
//! # Two kinds of runs
//!
//! In one half of the runs each has some of the features, so that the [`model`] can predict what becomes of
//! each message. In the other half all features are mixed, with limits of a few messages: chains and
//! dead-letter queues, ends, keys, changes by people, consumers. Such runs have no model. The [`lives`] of
//! messages are checked in all runs: rules that hold whatever happens first.
//!
//! # Transactions over several namespaces
//!
//! Some runs, of servers with durability `always` and of clusters, have requests over several namespaces,
//! on one or several shards: see [`across`]. The node's own driver takes a step at a time in between
//! everything else, and stops between any two records, by itself, with its process or with its leadership;
//! the leaders of the shards go on, by the node's own rules. Runs that may take from one shard what was
//! acknowledged and not from another have none: after a loss of power where replies do not wait for a sync,
//! or after damage, nothing is promised across shards.
//!
//! # A journal under an owner
//!
//! With `--owner` a run has no server: a journal alone, whose owner tells what is committed, as it will be
//! with several nodes. See [`owner`].
//!
//! ```text
//! cargo run -p sluice-sim --release -- --owner --seeds 10000
//! ```
//!
//! # A cluster
//!
//! With `--cluster` a run has the members of one shard's log on three or five nodes: the real replicas over
//! the real journals, each with a disk and a clock of its own, and a network between them. In half of the
//! runs members change: machines join, nodes are removed and replaced, and removed ones come back. See
//! [`cluster`].
//!
//! ```text
//! cargo run -p sluice-sim --release -- --cluster --seeds 10000
//! ```
//!
//! # What is checked
//!
//! - Each message begins once and ends once, no two clients hold the same message, attempts only grow,
//!   ordering keys keep their order, each step of a chain is sent once, and counters and listings equal the
//!   events: see [`lives`].
//! - After every record the [`model`], which is written independently and plainly, agrees with the outcome:
//!   who got which message in which order and in whose turn, attempts, deadlines, dead letters and where they
//!   go, refusals, ids and tokens that only grow; each instant of a schedule fires once, none too early, and
//!   missed ones as its setting says. A second engine that applies the same log has the same state to the
//!   bit, counters equal recounts, and everything that can be read of the state equals the model.
//! - A client gets only answers that the log gives, each once, and only after the record is durable. No id
//!   and no token is ever given twice, through all crashes. Each payload is what was sent. No pull waits for
//!   a message that is ready.
//! - A watcher gets every event of the log, once and in order, or the number of missed events, and the
//!   reason.
//! - After a crash the recovered log is a prefix of what was proposed, to the record: with durability
//!   `always`, and after a mere kill with any durability, everything acknowledged is in it. With `interval`
//!   and `os` a power loss (or a failed sync) may take an end, never a piece from the middle, and never the
//!   epoch. After an orderly stop nothing is missing. A request that was not acknowledged is done as a whole
//!   or not at all.
//! - The server refuses to start only where the simulator did damage, made a call fail, or filled the disk;
//!   and it starts as soon as that is undone.
//! - Lack of space never fails a journal. When there is space again the server takes messages, without a
//!   start.
//! - A backup, taken under load and restored into a new directory, is a state that the log went through, with
//!   everything that was acknowledged before the backup began.
//! - The log of a newer server is refused, and left as it is. So is a shard that misses a file it needs.
//! - After a start every namespace is on the shard that shard 0 names, with the same quotas, and on no other.
//! - A transaction over several namespaces is done in all of them or in none: in all if it was answered as
//!   done, in none if it was answered as refused. In the end nothing is prepared, decided or in doubt, and no
//!   money has come or gone.
//! - A bulk changes only messages that match its filter at that moment, each at most once, passes over none
//!   that matched all the time, and counts the answers it got.
//! - At the end of each run all faults end, and consumers bring every message to its end; a requested
//!   snapshot is made.
//!
//! # What cannot be decided
//!
//! A flipped bit in what was written last, before anything later shows that it was synced, looks like a torn
//! write. Recovery cuts there, and what was acknowledged in that last write is lost. Zeros over the end of
//! the log, and an end cut off below the length that the segment was made with, have the same effect, and
//! take the evidence of more records with them. Only the manifest is not affected: it records how far the log
//! is durable after an orderly stop, after a second without writes, and after a start. The simulator allows
//! exactly that, and only after such damage (`may_miss_from` in `world/start.rs`): after a flip recovery may
//! miss the records of the last write, or with `interval` and `os` those of all writes that were not synced;
//! after zeros or a cut, those that the manifest does not record. A flipped bit in a payload is found when it
//! is read: its message is held, and counts as delivered to nobody.
//!
//! # Planted bugs
//!
//! [`plant`] lists bugs that can be switched on at run time, in the same build, to check that the simulator
//! would find them. Most are planted outside of the product: in the disk, between shard and journal, or in
//! the steps of a start. Bugs that only the inside can have are in the engine and the journal, compiled in
//! by their feature `plant`, which the product never has. `tests/planted.rs` and `tests/owner.rs` assert
//! that each is found; those in the journal show with `--owner`.
//!
//! # Map
//!
//! [`run`] one seed, [`many`] many seeds, [`world`] the scheduler, crashes and the checks of answers,
//! [`model`] the rules, [`lives`] rules that hold without a model, [`workload`] random requests, [`across`]
//! transactions over several namespaces, [`owner`] a journal alone, [`cluster`] several members, [`disk`] and
//! [`clock`] the ground layer, [`rng`] randomness, [`plant`] bugs.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod across;
pub mod clock;
pub mod cluster;
pub mod disk;
pub mod lives;
pub mod many;
pub mod model;
pub mod owner;
pub mod plant;
mod resting;
pub mod rng;
pub mod run;
pub mod workload;
pub mod world;

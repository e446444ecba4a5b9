//! The simulator of Sluice: the real engine, journal and shard under virtual time, on a faulty disk, with
//! clients that ask anything, checked against a model. A seed decides everything, so a failure is repeated by
//! its seed.
//!
//! ```text
//! cargo run -p sluice-sim --release -- --seeds 1000            # seeds 0 to 999
//! scripts/simulate --seconds 3600                              # new seeds for an hour, on all cores
//! cargo run -p sluice-sim --release -- --seed 42 --verbose     # one seed, each step told
//! cargo run -p sluice-sim --release -- --seeds 1000 --plant skip_sync
//! ```
//!
//! # What runs
//!
//! The shards of a node (one to three) with their journals on one disk: the code of the product, none of it
//! replaced. Namespaces are placed on them, and changed in two steps, as the node does it. All is made of
//! step functions (shard, writer, maintenance with snapshots, compaction and scrub, the blob reader, bulks);
//! the product drives them by threads and tasks, the simulator by a scheduler that lets the seed pick which
//! one steps next, when time passes, and what goes wrong. Only the floor is simulated: the disk ([`disk`]),
//! the clock ([`clock`]), and the clients ([`workload`]).
//!
//! # The fault model
//!
//! - **Process kill.** Everything in memory is gone; what was written stays, synced or not.
//! - **Power loss.** Of what was not synced, each sector (512 bytes) for itself is lost, written, or torn in
//!   the middle; so writes survive in any order. A file's length may be the old one, the new one, or between.
//!   Names that were created, renamed or removed without a sync of their directory may be back as before,
//!   each for itself; a rename is whole or not at all. Power may also be lost again before the next start.
//! - **A failed sync** leaves pages that read well and are marked clean, but are not on the disk: a later
//!   sync that succeeds does not write them. They may be forgotten while the system lives on.
//! - **The n-th call fails:** a read, write (a part of it may have been written), sync, directory sync, or a
//!   change of names; while serving, and while recovering.
//! - **A full disk,** and room again later; no room for a single call although there was said to be some.
//! - **Files that are lost** between two processes: any one, or a shard's whole directory.
//! - **A newer server** that has left its log behind.
//! - **Damage** to any file, on the disk and in the cache: a flipped bit, zeros over the end of what was
//!   written; a segment that is cut off by a byte or by half.
//! - **Time:** steps of any length, pauses past every lease, a wall clock that jumps.
//! - **Clients** that are late, repeat themselves, forge receipts, and go away while they wait; watchers that
//!   are slow.
//!
//! # Two kinds of runs
//!
//! In one half of the runs each has some of the features, so that the [`model`] can predict what becomes of
//! each message. In the other half everything comes together, with limits of a few messages: chains and
//! dead-letter queues, ends, keys, changes by people, consumers. There the model is left out, and the
//! [`lives`] of messages alone are followed, as in all runs: what must be true whatever comes first.
//!
//! # What must be true
//!
//! - Each message begins once and ends once, nobody has what another one holds, attempts count on, keys are
//!   kept in order, each step of a chain is sent once, and what is counted and listed is what was told: see
//!   [`lives`].
//! - After every record the [`model`], which is written independently and naively, agrees with the outcome:
//!   who got which message in which order and in whose turn, attempts, deadlines, dead letters and where they
//!   go, refusals, ids and tokens that only grow; each instant of a schedule fires once, none too early, and
//!   what was missed as was wanted. A second engine that applies the same log has the same state to the bit,
//!   counters equal recounts, and everything that can be read of the state is what the model has.
//! - A client is answered only what the log says, once, and only after it is there for good. No id and no
//!   token is ever given twice, through all crashes. Each payload is what was sent. Nobody waits for what is
//!   there.
//! - Who watches events hears of all that the log tells, once and in order, or how much was missed, and why.
//! - After a crash the log that recovery gives is a prefix of what was proposed, to the record: with
//!   `always`, and after a mere kill with any durability, everything acknowledged is in it. With `interval`
//!   and `os` a power loss (or a sync that failed) may take an end, never a piece from the middle, and never
//!   the epoch. After an orderly stop nothing is missing. What was asked and not acknowledged is done as a
//!   whole or not at all.
//! - The server refuses to start only where the simulator did damage, made a call fail, or filled the disk;
//!   and it starts as soon as that is undone.
//! - That there is no room never fails a journal. When there is room again the server takes messages, without
//!   a start.
//! - A backup, taken while all this goes on and restored into a new directory, is a state that the log went
//!   through, with everything that was acknowledged before the backup began.
//! - The log of a newer server is refused, and left as it is. So is a shard of which a file that counts is
//!   missing.
//! - After a start every namespace is on the shard that shard 0 names, with the same quotas, and on no other.
//! - A bulk changes what its filter takes in at that moment and nothing else, each message at most once,
//!   passes over none that matched all the time, and counts what it was answered.
//! - At the end of each run all trouble stops, and consumers get to the end of every message; a snapshot that
//!   is asked for comes.
//!
//! # What cannot be decided
//!
//! A flipped bit in what was written last, before anything later tells that it was synced, looks like a torn
//! write. Recovery cuts there, and what was acknowledged in that last write is lost. So do zeros over the end
//! of the log, and an end that was cut off behind the length that the segment was made with, and they take
//! what tells of more along. Only the manifest is out of their reach: it knows after an orderly stop, after a
//! rest of a second, and after a start. The simulator allows exactly that, and only after such damage
//! (`may_miss_from` in `world/start.rs`): after a flip recovery may miss the records of the last write, or
//! with `interval` and `os` those of all writes that were not synced; after worse, those that the manifest
//! does not know of. A flipped bit in a payload is found when it is read: its message is held, and counts as
//! delivered to nobody.
//!
//! # Planted bugs
//!
//! [`plant`] lists bugs that can be switched on at run time, in the same build, to see that the simulator
//! would find such. Most are planted outside of the product: in the disk, between shard and journal, or in
//! how a start is driven. Those that only the inside can have are in the engine, compiled in by its feature
//! `plant`, which the product never has. `tests/planted.rs` asserts that each is found.
//!
//! # Map
//!
//! [`run`] one seed, [`many`] many, [`world`] the scheduler, crashes and what clients may get, [`model`] the
//! rules, [`lives`] what holds without them, [`workload`] what clients ask, [`disk`] and [`clock`] the floor,
//! [`rng`] chance, [`plant`] bugs.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod clock;
pub mod disk;
pub mod lives;
pub mod many;
pub mod model;
pub mod plant;
pub mod rng;
pub mod run;
pub mod workload;
pub mod world;

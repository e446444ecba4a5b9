//! Bugs planted on purpose, chosen at run time, to check that the simulator finds them.

use std::fmt;
use std::str::FromStr;

/// One row for each bug: its meaning, its name on the command line, and its name in the engine, the journal,
/// the replica or the node. Bugs without the last are planted outside: in the disk, beside the journal, or
/// in the steps of a start. Those in the journal are for a journal whose owner commits.
macro_rules! plants {
    ($(
        $(#[$doc:meta])*
        $plant:ident = $name:literal
            $(in engine as $engine:ident)? $(in journal as $journal:ident)? $(in replica as $replica:ident)?
            $(in node as $node:ident)?,
    )*) => {
        /// A planted bug.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Plant {
            $($(#[$doc])* $plant,)*
        }

        impl Plant {
            /// All of them.
            pub const ALL: &[Plant] = &[$(Plant::$plant),*];

            /// The engine's planted bug; `None`: planted outside of the engine.
            pub(crate) fn in_engine(self) -> Option<sluice_engine::plant::Plant> {
                match self {
                    $($(Plant::$plant => Some(sluice_engine::plant::Plant::$engine),)?)*
                    _ => None,
                }
            }

            /// The journal's planted bug; `None`: planted outside of the journal.
            pub fn in_journal(self) -> Option<sluice_journal::plant::Plant> {
                match self {
                    $($(Plant::$plant => Some(sluice_journal::plant::Plant::$journal),)?)*
                    _ => None,
                }
            }

            /// The replica's planted bug; `None`: planted outside of the replica.
            pub fn in_replica(self) -> Option<sluice_replica::plant::Plant> {
                match self {
                    $($(Plant::$plant => Some(sluice_replica::plant::Plant::$replica),)?)*
                    _ => None,
                }
            }

            /// The node's planted bug; `None`: planted outside of the node.
            pub fn in_node(self) -> Option<sluice_node::plant::Plant> {
                match self {
                    $($(Plant::$plant => Some(sluice_node::plant::Plant::$node),)?)*
                    _ => None,
                }
            }

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Plant::$plant => $name,)*
                }
            }
        }
    };
}

plants! {
    /// Syncs succeed without effect.
    SkipSync = "skip_sync",
    /// A batch counts as committed before it is synced.
    ReplyBeforeSync = "reply_before_sync",
    /// A transition does not count.
    DropCounter = "drop_counter" in engine as DropCounter,
    /// A message is delivered to two consumers.
    DeliverTwice = "deliver_twice" in engine as DeliverTwice,
    /// Recovery cuts one valid record too many.
    CutValidRecordAtRecovery = "cut_valid_record_at_recovery",
    /// A schedule fires again at the same instant, at times.
    FireTwice = "fire_twice" in engine as FireTwice,
    /// A receipt is accepted although its token is not that of the lease.
    StaleToken = "stale_token" in engine as StaleToken,
    /// A message passes those before it with its ordering key, at times.
    PassOrderingKey = "pass_ordering_key" in engine as PassOrderingKey,
    /// A limit key admits one message more than its limit.
    ExceedLimit = "exceed_limit" in engine as ExceedLimit,
    /// A cost that the holder of a delivery reports is not counted.
    ForgetCost = "forget_cost" in engine as ForgetCost,
    /// Under another rate the time that makes up for what was spent stays, and not what was spent.
    SpendTime = "spend_time" in engine as SpendTime,
    /// A consumer holds one message more than its credit.
    ExceedCredit = "exceed_credit" in engine as ExceedCredit,
    /// A message that waits for all of its parents becomes ready when one of them is done.
    FirstParentIsEnough = "first_parent_is_enough" in engine as FirstParentIsEnough,
    /// A lock is granted to who comes, past those that wait.
    PassLockLine = "pass_lock_line" in engine as PassLockLine,
    /// A grant that is over can be renewed.
    RenewEndedGrant = "renew_ended_grant" in engine as RenewEndedGrant,
    /// An exclusive lock is granted beside those that share it.
    ExclusiveBesideShared = "exclusive_beside_shared" in engine as ExclusiveBesideShared,
    /// A grant that was waited for has the number of its claim as its token.
    ReuseLockNumber = "reuse_lock_number" in engine as ReuseLockNumber,
    /// The claims behind one that leaves its line are not looked at.
    ForgetNextInLine = "forget_next_in_line" in engine as ForgetNextInLine,
    /// A claim of several keys is granted when it is the first for one of them.
    FirstKeyIsEnough = "first_key_is_enough" in engine as FirstKeyIsEnough,
    /// A caller that has gone takes the claim of another who has made the same request since.
    LeaveForOthers = "leave_for_others" in engine as LeaveForOthers,
    /// A document is written over another version than its writer expects.
    WriteOverOthers = "write_over_others" in engine as WriteOverOthers,
    /// A document is read and written past its end, until its timer fires.
    ReadEndedDocument = "read_ended_document" in engine as ReadEndedDocument,
    /// A document is written by a token whose grant has ended.
    WriteWithoutLock = "write_without_lock" in engine as WriteWithoutLock,
    /// The end of a document is not told to those who watch.
    ForgetEnds = "forget_ends" in engine as ForgetEnds,
    /// Terms are taken for those of a document that has changed since they were made.
    FillChangedDocument = "fill_changed_document" in engine as FillChangedDocument,
    /// A document whose terms an index was not told is not found by it.
    ForgetUnknownTerms = "forget_unknown_terms" in engine as ForgetUnknownTerms,
    /// A message that has changed keeps the terms that an index was told before.
    ForgetChangedTerms = "forget_changed_terms" in engine as ForgetChangedTerms,
    /// A repeat of a write is another write.
    ForgetWriteRequest = "forget_write_request" in engine as ForgetWriteRequest,
    /// A chunk of an attachment that is gone is not let go of.
    LeakAttachmentChunk = "leak_attachment_chunk" in engine as LeakAttachmentChunk,
    /// An attachment is made of fewer bytes than its commit tells of.
    CommitIncompleteUpload = "commit_incomplete_upload" in engine as CommitIncompleteUpload,
    /// A repeat of a chunk is another chunk.
    AppendChunkTwice = "append_chunk_twice" in engine as AppendChunkTwice,
    /// A transaction tells that it has released a lock, and has not.
    KeepReleasedLock = "keep_released_lock" in engine as KeepReleasedLock,
    /// A transaction settles its deliveries also when another of its operations is refused.
    SettleWithoutTheRest = "settle_without_the_rest" in engine as SettleWithoutTheRest,
    /// A transaction is done although what it checks does not hold.
    PassChecks = "pass_checks" in engine as PassChecks,
    /// A repeat of a transaction is another transaction.
    ForgetTransaction = "forget_transaction" in engine as ForgetTransaction,
    /// A transaction is decided to commit although a part may have been told already that it is not.
    DecideTooLate = "decide_too_late" in engine as DecideTooLate,
    /// The documents of a part that is prepared are not pinned.
    SkipPin = "skip_pin" in engine as SkipPin,
    /// A snapshot leaves out one of the parts that are prepared.
    LosePreparedPart = "lose_prepared_part" in engine as LosePreparedPart,
    /// A new epoch takes from the consumers that it detaches what they hold.
    EndGraceWithEpoch = "end_grace_with_epoch" in engine as EndGraceWithEpoch,
    /// A unique key is free while its message is leased.
    UniqueWhileLeased = "unique_while_leased" in engine as UniqueWhileLeased,
    /// A bulk also changes messages that have changed since it looked.
    BulkForgetsVersions = "bulk_forgets_versions",
    /// Recovery takes an older snapshot.
    OlderSnapshotFallback = "older_snapshot_fallback",
    /// A start continues the last epoch.
    ReuseIdAfterLostTail = "reuse_id_after_lost_tail",
    /// A cut of the tail is done without a new manifest.
    CutWithoutManifest = "cut_without_manifest" in journal as CutWithoutManifest,
    /// A commit is noted although a cut of what the disk has there is on its way.
    NoteCommitAcrossCut = "note_commit_across_cut" in journal as NoteCommitAcrossCut,
    /// A hard state counts as durable before it is on the disk.
    HardStateUnsynced = "hard_state_unsynced" in journal as HardStateUnsynced,
    /// An opening numbers batches from 1 again.
    RestartNumbers = "restart_numbers" in journal as RestartNumbers,
    /// A state is installed without the part of the growing segment that was given.
    ForgetGrowingSegment = "forget_growing_segment" in journal as ForgetGrowingSegment,
    /// A state is installed without a sync of the log that stays.
    SealUnsynced = "seal_unsynced" in journal as SealUnsynced,
    /// Files without live blobs are removed while the state by which these are dead is not in place.
    FreeBeforeInstalled = "free_before_installed" in journal as FreeBeforeInstalled,
    /// The record up to which blobs of a state may be missing is not kept.
    ForgetWholeFrom = "forget_whole_from" in journal as ForgetWholeFrom,
    /// Orders to a journal count as durable before they are synced.
    DurableBeforeSync = "durable_before_sync" in journal as DurableBeforeSync,
    /// Compaction copies damaged blobs as they are, and drops the whole copies.
    CopiesLeftOut = "copies_left_out" in journal as CopiesLeftOut,
    /// Segments that were made ahead are removed while the manifest still names them.
    DropReadyNamed = "drop_ready_named" in journal as DropReadyNamed,
    /// A member acknowledges batches before they are synced.
    AckBeforeSync = "ack_before_sync" in replica as AckBeforeSync,
    /// A member counts a write as synced when the journal has been given it.
    SyncedWhenGiven = "synced_when_given" in replica as SyncedWhenGiven,
    /// A member takes the batches of a message without a look at their checksums.
    AttachAnything = "attach_anything" in replica as AttachAnything,
    /// A member does not keep term and vote in its journal.
    HardStateNotKept = "hard_state_not_kept" in replica as HardStateNotKept,
    /// A member acknowledges a state before it is synced.
    AckBeforeInstall = "ack_before_install" in replica as AckBeforeInstall,
    /// A member takes messages while a state is being installed.
    StepWhileInstalling = "step_while_installing" in replica as StepWhileInstalling,
    /// A state is installed without the blobs that it needs.
    BlobsLeftOut = "blobs_left_out" in replica as BlobsLeftOut,
    /// A quiet member sleeps through the silence of another node.
    StayQuiet = "stay_quiet" in replica as StayQuiet,
    /// A node that may have forgotten what it acknowledged goes on under its number.
    ForgetfulVoter = "forgetful_voter" in replica as ForgetfulVoter,
    /// Learners vote, and count for commits.
    CountLearners = "count_learners" in replica as CountLearners,
    /// A start takes the members of the log's base for those in force.
    StaleMembers = "stale_members" in replica as StaleMembers,
    /// A change of the members is in force when it is appended.
    MembersWhenAppended = "members_when_appended" in replica as MembersWhenAppended,
    /// A change of the members is taken while one is under way.
    SecondChange = "second_change" in replica as SecondChange,
    /// A leader takes batches that add data whatever room the disks of the others have.
    IgnoreRoomOfOthers = "ignore_room_of_others" in replica as IgnoreRoomOfOthers,
    /// A leader whose disk is full leads on.
    KeepLeadingWithoutRoom = "keep_leading_without_room" in replica as KeepLeadingWithoutRoom,
    /// A leader whose disk hangs leads on.
    LeadThroughStall = "lead_through_stall" in replica as LeadThroughStall,
    /// A leader answers a read without asking the others.
    ReadAlone = "read_alone" in replica as ReadAlone,
    /// A member that does not answer counts as one that has no copy of a damaged blob.
    SilenceIsLoss = "silence_is_loss" in replica as SilenceIsLoss,
    /// The end of a leadership leaves out who waits without a record.
    ForgetWaiters = "forget_waiters" in node as ForgetWaiters,
    /// Callers are answered with what stands at the index of their record, whatever its term.
    DecideByIndex = "decide_by_index" in node as DecideByIndex,
    /// A new leader takes its own wall clock for the time of the log.
    OwnWallClock = "own_wall_clock" in node as OwnWallClock,
    /// A new leader goes on from the last logged time.
    LastLoggedTime = "last_logged_time" in node as LastLoggedTime,
    /// The decision on a transaction is forgotten before its parts are finished.
    ForgetDecisionEarly = "forget_decision_early" in node as ForgetDecisionEarly,
    /// A part that nobody drives is let go of although the transaction is committed.
    AbortCommitted = "abort_committed" in node as AbortCommitted,
}

impl fmt::Display for Plant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Plant {
    type Err = String;

    fn from_str(name: &str) -> Result<Plant, String> {
        let known = Plant::ALL.iter().copied().find(|plant| plant.name() == name);
        known.ok_or_else(|| {
            let names: Vec<_> = Plant::ALL.iter().map(|plant| plant.name()).collect();
            format!("{name:?} is not a planted bug: use one of {}", names.join(", "))
        })
    }
}

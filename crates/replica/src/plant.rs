//! Bugs planted on purpose, to see that the simulation finds them. Without the feature `plant`, which tests
//! alone switch on, the answer is no at compile time, and nothing of them is in the program.

#![cfg_attr(not(feature = "plant"), allow(unreachable_pub))] // The tests plant from outside of the crate.

/// A bug that can be planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "plant"), allow(dead_code))] // Nobody constructs those of the tests.
pub enum Plant {
    /// A vote is sent before it is synced.
    VoteBeforeSync,
    /// A follower acknowledges entries before they are synced.
    AckBeforeSync,
    /// When a write is synced, those after it count as synced too.
    SyncTooEarly,
    /// The owner is not asked to sync a term and a vote.
    HardStateUnsynced,
    /// A start forgets the vote.
    ForgetVote,
    /// A start forgets the last entry.
    ForgetLastEntry,
    /// A start trusts a commit index beyond its log.
    TrustCommit,
    /// A leader answers a read without asking the others.
    ReadAlone,
    /// All reads have the same number, so that answers to one count for another.
    ReuseReadId,
    /// An acknowledgement counts for two followers.
    CountTwice,
    /// A leader commits entries of older terms by counting their copies.
    CommitOlderTerm,
    /// A leader applies what it has proposed, committed or not.
    ApplyBeyondCommit,
    /// Heartbeats tell the commit index to followers that are not known to have it.
    HeartbeatTellsAll,
    /// A repeated append cuts the entries behind those that it repeats.
    CutOnRepeat,
    /// A stale refusal makes a leader ask below what the follower has acknowledged.
    ProbeBelowMatched,
    /// The owner matches answers to proposals by index, without the term.
    MatchByIndex,
    /// A member counts a write as synced when the journal has been given it.
    SyncedWhenGiven,
    /// A member takes the batches of a message without a look at their checksums.
    AttachAnything,
    /// A member does not keep term and vote in its journal.
    HardStateNotKept,
    /// Entries are forgotten that are committed and not applied.
    CompactBeyondApplied,
    /// A follower acknowledges a state before it is synced.
    AckBeforeInstall,
    /// A leader takes batches that add data whatever room the disks of the others have.
    IgnoreRoomOfOthers,
    /// A leader whose disk is full leads on.
    KeepLeadingWithoutRoom,
    /// A leader whose disk hangs leads on.
    LeadThroughStall,
    /// Ticks and messages are taken while a state is being installed.
    StepWhileInstalling,
    /// A quiet member sleeps through the silence of another node.
    StayQuiet,
    /// A member that does not answer counts as one that has no copy of a damaged blob.
    SilenceIsLoss,
    /// A member installs a state without the blobs that it needs.
    BlobsLeftOut,
    /// A sole voter leads before its vote is synced.
    LeadBeforeSync,
    /// Learners vote, and count for commits.
    CountLearners,
    /// A start takes the members of its base for those in force.
    StaleMembers,
    /// A change of the members is in force when it is appended.
    MembersWhenAppended,
    /// A change of the members is taken while one is under way.
    SecondChange,
    /// A node that has lost its state returns with the number that it had.
    ForgetfulVoter,
}

#[cfg(feature = "plant")]
impl Plant {
    /// The bugs of a replica alone; those of a member with a journal are planted by the simulator.
    pub const ALL: [Plant; 25] = [
        Plant::VoteBeforeSync,
        Plant::AckBeforeSync,
        Plant::SyncTooEarly,
        Plant::HardStateUnsynced,
        Plant::ForgetVote,
        Plant::ForgetLastEntry,
        Plant::TrustCommit,
        Plant::ReadAlone,
        Plant::ReuseReadId,
        Plant::CountTwice,
        Plant::CommitOlderTerm,
        Plant::ApplyBeyondCommit,
        Plant::HeartbeatTellsAll,
        Plant::CutOnRepeat,
        Plant::ProbeBelowMatched,
        Plant::MatchByIndex,
        Plant::CompactBeyondApplied,
        Plant::AckBeforeInstall,
        Plant::StepWhileInstalling,
        Plant::LeadBeforeSync,
        Plant::CountLearners,
        Plant::StaleMembers,
        Plant::MembersWhenAppended,
        Plant::SecondChange,
        Plant::ForgetfulVoter,
    ];
}

#[cfg(feature = "plant")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Plant>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug into all replicas of this thread, or none.
#[cfg(feature = "plant")]
pub fn plant(bug: Option<Plant>) {
    PLANTED.set(bug);
}

/// True: this bug is planted.
#[cfg(feature = "plant")]
pub fn is(bug: Plant) -> bool {
    PLANTED.get() == Some(bug)
}

/// False: no bug is planted.
#[cfg(not(feature = "plant"))]
#[inline(always)]
pub(crate) const fn is(_: Plant) -> bool {
    false
}

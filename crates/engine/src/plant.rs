//! Bugs planted on purpose, to see that the simulator finds them. Without the feature `plant`, which the
//! simulator alone switches on, the answer is no at compile time, and nothing of them is in the program.

#![cfg_attr(not(feature = "plant"), allow(unreachable_pub))]

/// A bug that can be planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plant {
    /// A lease that ends by itself is not counted.
    DropCounter,
    /// Now and then a leased message is ready at the same time.
    DeliverTwice,
    /// Now and then a schedule fires again at the same instant.
    FireTwice,
    /// Any token settles the message that its receipt names.
    StaleToken,
    /// A unique key counts as free while its message is leased.
    UniqueWhileLeased,
    /// Now and then a message goes past its ordering key.
    PassOrderingKey,
    /// A limit key has a place more than its limit says.
    ExceedLimit,
    /// A cost that the holder of a delivery reports is not counted.
    ForgetCost,
    /// Under another rate the time that makes up for what was spent stays, and not what was spent.
    SpendTime,
    /// A consumer has one message more than its credit says.
    ExceedCredit,
    /// A message that waits for all of its parents goes on when one of them is done.
    FirstParentIsEnough,
    /// A lock is granted to who comes, past those that wait.
    PassLockLine,
    /// A grant that is over can be renewed.
    RenewEndedGrant,
    /// An exclusive lock is granted beside those that share it.
    ExclusiveBesideShared,
    /// A grant that was waited for has the number of its claim as its token.
    ReuseLockNumber,
    /// The claims behind one that leaves its line are not looked at.
    ForgetNextInLine,
    /// A claim of several keys is granted when it is the first for one of them.
    FirstKeyIsEnough,
    /// A caller that has gone takes the claim of another who has made the same request since.
    LeaveForOthers,
    /// A document is written over another version than its writer expects.
    WriteOverOthers,
    /// A document is read and written past its end, until its timer fires.
    ReadEndedDocument,
    /// A document is written by a token whose grant has ended.
    WriteWithoutLock,
    /// The end of a document is not told to those who watch.
    ForgetEnds,
    /// Terms are taken for those of a document that has changed since they were made.
    FillChangedDocument,
    /// A document whose terms an index was not told is not found by it.
    ForgetUnknownTerms,
    /// A message that has changed keeps the terms that an index was told before.
    ForgetChangedTerms,
    /// A repeat of a write is another write.
    ForgetWriteRequest,
    /// A chunk of an attachment that is gone is not let go of.
    LeakAttachmentChunk,
    /// An attachment is made of fewer bytes than its commit tells of.
    CommitIncompleteUpload,
    /// A repeat of a chunk is another chunk.
    AppendChunkTwice,
    /// A transaction tells that it has released a lock, and has not.
    KeepReleasedLock,
    /// A transaction settles its deliveries also when another of its operations is refused.
    SettleWithoutTheRest,
    /// A transaction is done although what it checks does not hold.
    PassChecks,
    /// A repeat of a transaction is another transaction.
    ForgetTransaction,
    /// A transaction is decided to commit although a part may have been told already that it is not.
    DecideTooLate,
    /// The documents of a part that is prepared are not pinned.
    SkipPin,
    /// A snapshot leaves out one of the parts that are prepared.
    LosePreparedPart,
    /// A new epoch takes from the consumers that it detaches what they hold.
    EndGraceWithEpoch,
}

#[cfg(feature = "plant")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Plant>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug into all engines of this thread, or none.
#[cfg(feature = "plant")]
pub fn plant(bug: Option<Plant>) {
    PLANTED.set(bug);
}

/// True if this bug is planted.
#[cfg(feature = "plant")]
pub(crate) fn is(bug: Plant) -> bool {
    PLANTED.get() == Some(bug)
}

/// No bug is.
#[cfg(not(feature = "plant"))]
#[inline(always)]
pub(crate) const fn is(_: Plant) -> bool {
    false
}

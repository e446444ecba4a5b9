//! Checks whether this program can apply a record, before any is applied: another version may have written
//! it.

use crate::error::Error;
use crate::id::NamespaceId;
use crate::record::decode;
use crate::record::decode::{Kind, kind_of};
use crate::record::table::RareRecord;
use crate::{BEHAVIOUR_OLDEST, BEHAVIOUR_VERSION};

/// True if this program can apply a record, by its kind, its layout, and the behaviour version that it
/// names.
///
/// # Errors
/// A sentence that names the kind, layout or behaviour version which is not known.
pub fn check_known(body: &[u8]) -> Result<(), String> {
    match kind_of(body).map_err(in_words)? {
        Kind::Rare => {
            let rare = decode::rare(body).map_err(in_words)?;
            let (RareRecord::Epoch { behaviour, .. } | RareRecord::Raise { behaviour }) = rare else {
                return Ok(());
            };
            check_behaviour(behaviour.into())
        }
        Kind::Tick | Kind::Send | Kind::Receive | Kind::Settle | Kind::Extend => Ok(()),
    }
}

/// Content of an entry by which replicas agree on their own affairs; `None`: the record is another.
pub fn consensus_entry(body: &[u8]) -> Option<&[u8]> {
    let Ok(Kind::Rare) = kind_of(body) else { return None };
    match decode::rare(body) {
        Ok(RareRecord::Consensus { entry }) => Some(entry),
        Ok(_) | Err(_) => None,
    }
}

/// The namespace that a record deletes, or whose quotas it sets, if it can be; `None`: the record is another.
pub fn changed_namespace(body: &[u8]) -> Option<NamespaceId> {
    let Ok(Kind::Rare) = kind_of(body) else { return None };
    match decode::rare(body) {
        Ok(RareRecord::NamespaceDelete { namespace, .. } | RareRecord::NamespaceSet { namespace, .. }) => {
            Some(namespace)
        }
        Ok(_) | Err(_) => None,
    }
}

/// True if a record is one by which a transaction over several namespaces is committed, and this program can
/// apply it.
pub fn is_two_phase(body: &[u8]) -> bool {
    let Ok(Kind::Rare) = kind_of(body) else { return false };
    matches!(
        decode::rare(body),
        Ok(RareRecord::TransactionPrepare(_)
            | RareRecord::TransactionDecide(_)
            | RareRecord::TransactionFinish { .. }
            | RareRecord::TransactionAsk { .. })
    )
}

/// Numbers of the deliveries that a record settles, and of its blobs; `None`: the record is another, or this
/// program cannot apply it.
pub fn settled(body: &[u8]) -> Option<(usize, usize)> {
    let Ok(Kind::Settle) = kind_of(body) else { return None };
    let record = decode::settle(body).ok()?;
    Some((record.items().count(), record.blobs(0).count()))
}

/// True if a record decides a transaction over several namespaces, or forgets a decision, and this program
/// can apply it.
pub fn changes_decisions(body: &[u8]) -> bool {
    let Ok(Kind::Rare) = kind_of(body) else { return false };
    match decode::rare(body) {
        Ok(RareRecord::TransactionDecide(_)) => true,
        Ok(RareRecord::TransactionFinish { namespace, id, .. }) => namespace == id.coordinator,
        Ok(_) | Err(_) => false,
    }
}

/// True if a record sets the limits in force, if they can be.
pub fn sets_limits(body: &[u8]) -> bool {
    kind_of(body) == Ok(Kind::Rare) && matches!(decode::rare(body), Ok(RareRecord::Configure(_)))
}

fn in_words(error: Error) -> String {
    match error {
        Error::Internal { reason } => reason,
        other => other.to_string(),
    }
}

/// True if this program knows the rules of a behaviour version: [`BEHAVIOUR_OLDEST`] to
/// [`BEHAVIOUR_VERSION`].
///
/// # Errors
/// A sentence with all three versions.
pub fn check_behaviour(behaviour: u32) -> Result<(), String> {
    let (oldest, newest) = (u32::from(BEHAVIOUR_OLDEST), u32::from(BEHAVIOUR_VERSION));
    if (oldest..=newest).contains(&behaviour) {
        return Ok(());
    }
    let writer = if behaviour < oldest { "an older version" } else { "a newer version" };
    Err(format!(
        "the log follows behaviour version {behaviour}, \
         this program knows only versions {oldest} to {newest}: it was written by {writer}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{RecordSink, SettleItem, Settlement};
    use crate::id::{ConsumerId, MessageId, Receipt};
    use crate::{Command, Limits};

    struct Body(Vec<u8>);

    impl RecordSink for Body {
        fn body(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }

        fn blob(&mut self, _pieces: &[&[u8]]) {}
    }

    fn body(command: &Command<'_>) -> Vec<u8> {
        let mut body = Body(Vec::new());
        command.encode(&mut body);
        body.0
    }

    #[test]
    fn epochs_of_other_versions_and_unknown_kinds_and_layouts_are_told() {
        let epoch = |behaviour| body(&Command::Epoch { number: 7, behaviour });
        let raise = |behaviour| body(&Command::Raise { behaviour });
        for known in BEHAVIOUR_OLDEST..=BEHAVIOUR_VERSION {
            assert_eq!([check_known(&epoch(known)), check_known(&raise(known))], [Ok(()), Ok(())]);
        }
        let (older, newer) = (BEHAVIOUR_OLDEST - 1, BEHAVIOUR_VERSION + 1);
        for (other, writer) in [(older, "an older version"), (newer, "a newer version")] {
            for body in [epoch(other), raise(other)] {
                let told = check_known(&body).unwrap_err();
                let version = format!("behaviour version {other}");
                assert!(told.contains(&version) && told.ends_with(writer), "{told}");
            }
        }
        let consensus = body(&Command::Consensus { entry: b"members" });
        assert_eq!(check_known(&consensus), Ok(()));
        assert_eq!(consensus_entry(&consensus), Some(&b"members"[..]));
        assert_eq!([consensus_entry(&epoch(BEHAVIOUR_VERSION)), consensus_entry(&[])], [None, None]);
        let delete = body(&Command::NamespaceDelete { namespace: NamespaceId(7), force: true });
        assert_eq!(changed_namespace(&delete), Some(NamespaceId(7)));
        assert_eq!([changed_namespace(&consensus), changed_namespace(&[])], [None, None]);
        assert!(sets_limits(&body(&Command::Configure(Limits::default()))));
        assert!([&consensus[..], &[]].iter().all(|other| !sets_limits(other)));
        let mut tick = body(&Command::Tick);
        assert_eq!(check_known(&tick), Ok(()));
        let receipt = |sequence| {
            let id = MessageId { namespace: NamespaceId::DEFAULT, sequence };
            Receipt { id, token: sequence, tag: 0 }
        };
        let nack = Settlement::Nack { delay_ms: None };
        let item = |sequence, settlement, error| {
            let receipt = receipt(sequence);
            SettleItem { receipt, settlement, error, result: None, add_cost: 0 }
        };
        let items = &[item(1, Settlement::Ack, ""), item(2, nack, "boom")];
        let settle = body(&Command::Settle { namespace: NamespaceId::DEFAULT, items });
        assert_eq!(settled(&settle), Some((2, 1)));
        assert_eq!([settled(&settle[..settle.len() - 1]), settled(&tick), settled(&[])], [None; 3]);
        tick[1] = 250;
        assert!(check_known(&tick).unwrap_err().contains("layout 250, this program reads only layout 1"));
        let (namespace, consumer) = (NamespaceId::DEFAULT, ConsumerId(1));
        let mut detach = body(&Command::Detach { namespace, consumer, grace_ms: 0, reached: 0 });
        assert_eq!(check_known(&detach), Ok(()));
        detach[1] = 1;
        assert!(check_known(&detach).unwrap_err().contains("layout 1, this program reads only layout 2"));
        assert!(check_known(&[250, 1]).unwrap_err().contains("kind 250"));
        assert!(check_known(&[]).is_err());
    }
}

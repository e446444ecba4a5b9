//! Documents in a cluster: clients that read them and write over the version that they have read, and what
//! has to be true of them. A version is one write for ever, whoever reads it; later calls see it or a later
//! one; a write under a condition is made over the version that it names, and else says which one is there.

use sluice_engine::Error;

use super::ClusterWorld;
use super::documents::{DocumentCall, Told};
use super::judge::Judge;
use crate::model::{Checked, ensure};

impl ClusterWorld {
    /// Lets a client make a call about a document, at times.
    pub(super) fn use_documents(&mut self) -> Checked {
        let Some(call) = self.judge.documents.draw() else { return Ok(()) };
        let Some(node) = self.node_to_ask() else { return Ok(()) };
        self.ask(node, |client| client.document(call));
        self.input(node, |_| {})
    }
}

impl Judge {
    pub(super) fn hears_of_document(
        &mut self,
        call: DocumentCall,
        answer: Result<Told, Error>,
        begun_us: u64,
        now_us: u64,
    ) -> Checked {
        let known = self.documents.known.entry(call.key()).or_default();
        let (latest, told_us) = known.latest;
        let at_least = if told_us < begun_us { latest } else { 0 };
        let (version, revision, write) = match (call, &answer) {
            (_, Ok(Some((version, write)))) => (version.version, Some(version.revision), *write),
            (DocumentCall::Get { .. }, Ok(None)) => (0, None, 0),
            (DocumentCall::Put { over, .. }, Err(Error::DocumentChanged { version, .. })) => {
                ensure!(over.is_some_and(|over| over != *version), "{call:?} is refused at {version}");
                ensure!(*version >= at_least, "{call:?} is refused at {version}, after {at_least} was told");
                self.stats.answers += 1;
                known.last = *version;
                return Ok(());
            }
            _ => return self.outcome(&answer).map(drop),
        };
        self.stats.answers += 1;
        if let DocumentCall::Put { number, over, .. } = call {
            ensure!(over.is_none_or(|over| version == over + 1), "{call:?} became version {version}");
            ensure!(write == number && version > at_least, "{call:?} became {version}, after {at_least}");
        }
        ensure!(version >= at_least, "{call:?} tells version {version}, after {at_least} was told");
        if let Some(revision) = revision {
            let first = *known.versions.entry(version).or_insert((revision, write));
            let now = (revision, write);
            ensure!(first == now, "version {version} of {call:?} is write {now:?}, and was {first:?}");
            let by_version = known.versions.values().map(|(revision, _)| *revision);
            ensure!(by_version.is_sorted(), "revisions of {call:?} go back: {:?}", known.versions);
        }
        if version > latest {
            known.latest = (version, now_us);
        }
        known.last = version;
        Ok(())
    }
}

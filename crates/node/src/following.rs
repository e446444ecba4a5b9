//! Namespaces and limits of a cluster with several shards: each shard's leader brings what lives on its shard
//! into line with shard 0. Limits are those of shard 0.
//!
//! A change is decided by one record, and what follows from it may be done late, twice, or by a node that is
//! behind, since numbers of namespaces grow and are never given again:
//!
//! | on shard 0 | on its shard | then |
//! |---|---|---|
//! | there | not there, with a number above all that were | it is made: shard 0 has created it |
//! | there | not there, with a smaller number | shard 0 deletes it: it was deleted here, as it was empty |
//! | there | there, with other quotas | it gets those of shard 0 |
//! | not there, with a smaller number than the next | there | it is deleted with all that it holds |
//! | not there, with a number that it has not given | there | it is entered there: shard 0 has lost it |
//!
//! The last is told from a look at the shard that is older than the one at shard 0, and happens before shard
//! 0 gives a number ([`Node::namespace_create`]), which could be the same one.
//!
//! A view of shard 0 that is behind knows no number that a newer one has given, so it deletes nothing that
//! this has made. A leader acts upon one that is not older than its question all the same
//! ([`Node::catch_up`]), so that whoever waits for it finds the change done.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::command::Command;
use sluice_engine::id::NamespaceId;
use sluice_engine::query::NamespaceView;

use crate::asks::Question;
use crate::handle::Node;
use crate::namespaces::done_if_gone;
use crate::shard::begin::Adoption;

/// Pause before the leader of a shard looks again whether namespaces have changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Node {
    /// Keeps the namespaces and limits of the shards that this node leads in line with shard 0, until it
    /// stops. A task of a node of a cluster runs it: it finishes what a node that is gone has begun.
    pub async fn keep_placement(&self) {
        // For each shard the number of changes with which it is in line.
        let mut in_line = vec![None; self.leaders().len()];
        while self.leaders().len() > 1 && !self.inner.stopping.load(Ordering::Relaxed) {
            let changes = self.inner.placement.changes();
            for (shard, (leader, seen)) in (0..).zip(self.leaders().iter().zip(&mut in_line)) {
                if !leader.is_here() {
                    *seen = None;
                } else if *seen != Some(changes) {
                    let followed = self.follow_placement(shard).await;
                    if let Err(error) = &followed {
                        tracing::debug!(shard, %error, "namespaces or limits are not in line with shard 0 yet");
                    }
                    *seen = followed.is_ok().then_some(changes);
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Brings the namespaces and limits of a shard that this node leads into line with shard 0.
    ///
    /// # Errors
    /// `no_leader`, `not_leader` and others, of the one of both shards that could not be asked.
    pub(crate) async fn follow_placement(&self, shard: u32) -> Result<(), Error> {
        if shard == 0 {
            return Ok(());
        }
        let _turn = self.inner.following[shard as usize].lock().await;
        let own_next = self.look(shard, |at| at.engine.next_namespace()).await?;
        let own = self.namespaces_known_to(shard).await?;
        self.catch_up(0).await?;
        let stale = self.stale();
        let limits = stale.look(0, |at| at.engine.limits().clone()).await?;
        if self.look(shard, |at| at.engine.limits().clone()).await? != limits {
            self.pressing(shard, &Command::Configure(limits)).await?;
        }
        let next = stale.look(0, |at| at.engine.next_namespace()).await?;
        let mut placed = stale.namespaces_known_to(0).await?;
        for adoption in Adoption::all(own.clone(), &placed, next) {
            self.adopt(&adoption).await?;
            adoption.enter(&mut placed);
        }
        let (placed, own) = (by_number(placed), by_number(own));
        let is_built_in = |number| number == NamespaceId::SYS || number == NamespaceId::DEFAULT;
        for namespace in own.keys().copied().filter(|own| *own < next && !is_built_in(*own)) {
            if !placed.contains_key(&namespace) {
                self.pressing(shard, &Command::NamespaceDelete { namespace, force: true }).await?;
            }
        }
        for (namespace, NamespaceView { name, quotas, .. }) in
            placed.iter().map(|(number, view)| (*number, view)).filter(|(_, view)| view.shard == shard)
        {
            let quotas = *quotas;
            match own.get(&namespace) {
                Some(own) if own.quotas == quotas => {}
                Some(_) => drop(self.pressing(shard, &Command::NamespaceSet { namespace, quotas }).await?),
                None if namespace < own_next => {
                    self.ask_leader(Question::Delete { shard: 0, namespace, force: true }).await?;
                }
                None => {
                    let number = Some(namespace);
                    let create = Command::NamespaceCreate { number, name, shard, quotas };
                    self.pressing(shard, &create).await?;
                }
            }
        }
        Ok(())
    }

    /// Lets shard 0 know of a namespace that it does not know, though a shard holds it.
    ///
    /// # Errors
    /// `not_leader`: another node leads shard 0, and others that shard 0 says.
    async fn adopt(&self, adoption: &Adoption) -> Result<(), Error> {
        let name = &adoption.namespace.name;
        // On other shards their leaders follow.
        for (_, command) in adoption.steps().into_iter().filter(|(on, _)| *on == 0) {
            done_if_gone(self.pressing(0, &command).await)?;
        }
        tracing::warn!(
            "the namespace {name} was not known to shard 0, which has lost its newest records; it was kept, with all that \
             it holds"
        );
        Ok(())
    }
}

fn by_number(views: Vec<NamespaceView>) -> BTreeMap<NamespaceId, NamespaceView> {
    views.into_iter().map(|view| (view.id, view)).collect()
}

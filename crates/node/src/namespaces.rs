//! Namespaces: defined on shard 0, where placement is decided, and alive on the shard that it names.
//!
//! A change takes a step on each of the two. It runs to its end in a task of its own, whatever becomes of its
//! caller, one change at a time; and steps come in such an order that the next start can tell what a stop in
//! between has left. Shard 0 is right then, and the other follows it (`shard/leading/begin.rs`). The numbers
//! that shard 0 has given tell a deletion that was interrupted from a shard 0 that has lost its newest
//! records: a namespace with a greater number than all of these is not deleted, but made known to shard 0.
//! Only its own shard knows whether a namespace is empty. Of a cluster the two shards may have leaders on
//! different nodes: there a change begins on shard 0, but for a deletion without force, and the leader of the
//! other shard follows (`following.rs`).
//!
//! | change | first | then | stopped in between |
//! |---|---|---|---|
//! | create | defined on shard 0 | made on its shard | made at the start |
//! | set quotas | on its shard | on shard 0 | undone at the start |
//! | delete with force | on shard 0: nobody finds it | on its shard, with all it has | deleted at the start |
//! | delete without | on its shard, when it is empty | on shard 0 | made at the start, empty as it was |

use std::sync::Arc;
use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::command::Command;
use sluice_engine::id::NamespaceId;
use sluice_engine::outcome::Reply;
use sluice_engine::query::NamespaceView;
use sluice_engine::settings::Quotas;
use sluice_journal::Class;
use tokio::sync::oneshot;

use crate::asks::{Answer, Question};
use crate::handle::Node;
use crate::placement::NamespacePlace;
use crate::shard::request::{Proposal, ReplyTo, Request, of_done, unexpected};

/// Pause before a step that has to be done, and could not be, is tried again.
const STEP_PAUSE: Duration = Duration::from_millis(20);

/// Namespaces that one look touches.
const LOOK_NAMESPACES: usize = 200;

impl Node {
    /// Creates a namespace; `shard` `None` puts it where the fewest namespaces are. Dropping the future does
    /// not end the change.
    ///
    /// # Errors
    /// `invalid_name`, `namespace_exists`, `limit_exceeded`; `invalid_argument` for a shard that is not
    /// there.
    pub async fn namespace_create(
        &self,
        name: &str,
        shard: Option<u32>,
        quotas: Quotas,
    ) -> Result<NamespaceView, Error> {
        let name = name.to_owned();
        self.change_shared(async move |node| node.create(&name, shard, quotas).await).await
    }

    /// Changes the quotas of a namespace: `change` gets those that it has, and no other change comes between.
    /// `shard`: where the caller says that it lives. Dropping the future does not end the change.
    ///
    /// # Errors
    /// `namespace_not_found`; `invalid_argument` for another shard than its own.
    pub async fn namespace_set(
        &self,
        name: &str,
        shard: Option<u32>,
        change: impl FnOnce(Quotas) -> Quotas + Send + 'static,
    ) -> Result<NamespaceView, Error> {
        let name = name.to_owned();
        self.change_shared(async move |node| node.set(&name, shard, change).await).await
    }

    /// Creates a namespace with what `change` makes of no quotas, or changes those of the one that is there,
    /// as one change. True: it is new.
    ///
    /// # Errors
    /// As [`Node::namespace_create`] and [`Node::namespace_set`], without `namespace_exists` and
    /// `namespace_not_found`.
    pub async fn namespace_put(
        &self,
        name: &str,
        shard: Option<u32>,
        change: impl FnOnce(Quotas) -> Quotas + Send + 'static,
    ) -> Result<(NamespaceView, bool), Error> {
        let name = name.to_owned();
        let put = async move |node: Node| {
            if node.inner.placement.by_name(&name).is_ok() {
                return Ok((node.set(&name, shard, change).await?, false));
            }
            Ok((node.create(&name, shard, change(Quotas::default())).await?, true))
        };
        self.change_shared(put).await
    }

    /// Deletes a namespace; with `force` its queues and messages too. Dropping the future does not end the
    /// change.
    ///
    /// # Errors
    /// `namespace_not_found`, `namespace_not_empty`; `invalid_argument` for the namespaces that always are.
    pub async fn namespace_delete(&self, name: &str, force: bool) -> Result<(), Error> {
        let name = name.to_owned();
        self.change_shared(async move |node| node.delete(&name, force).await).await
    }

    /// Runs a change of what shard 0 decides to its end. Callers wait for their turn before it begins, so
    /// that no more than one change outlives its caller.
    pub(crate) async fn change_shared<T, F>(
        &self,
        change: impl FnOnce(Node) -> F + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send,
    {
        let turn = Arc::clone(&self.inner.shared_changes).lock_owned().await;
        let node = self.clone();
        let changed = tokio::spawn(async move {
            let changed = change(node).await;
            drop(turn);
            changed
        });
        changed.await.unwrap_or(Err(Error::OutcomeUnknown {}))
    }

    async fn create(&self, name: &str, shard: Option<u32>, quotas: Quotas) -> Result<NamespaceView, Error> {
        if self.inner.placement.by_name(name).is_ok() {
            return Err(Error::NamespaceExists { namespace: name.to_owned() });
        }
        let shard = match shard {
            Some(shard) => self.check_shard(shard)?,
            None => self.emptiest_shard().await?,
        };
        if self.is_clustered() {
            // Shard 0 may have lost numbers that are in use, until the shards have told it.
            for shard in 1..self.leaders().len() as u32 {
                self.ask_leader(Question::Follow { shard }).await?;
            }
        }
        let create = |number| Command::NamespaceCreate { number, name, shard, quotas };
        let namespace = match self.step(0, &create(None)).await? {
            Reply::Namespace { namespace } => namespace,
            other => return Err(unexpected(&other)),
        };
        if self.is_clustered() {
            self.let_follow(shard).await?;
        } else if shard != 0
            && let Err(error) = self.step(shard, &create(Some(namespace))).await
        {
            let undo = Command::NamespaceDelete { namespace, force: true };
            self.last_step(0, &undo).await?;
            return Err(error);
        }
        self.inner.placement.insert(name, NamespacePlace { namespace, shard });
        self.changed(name).await
    }

    async fn set(
        &self,
        name: &str,
        shard_told: Option<u32>,
        change: impl FnOnce(Quotas) -> Quotas,
    ) -> Result<NamespaceView, Error> {
        let NamespacePlace { namespace, shard } = self.inner.placement.by_name(name)?;
        if let Some(told) = shard_told.filter(|told| *told != shard) {
            let reason = format!("the namespace lives on shard {shard}, not {told}: it cannot be moved");
            return Err(Error::InvalidArgument { field: "shard".to_owned(), reason });
        }
        let view = self.view_of_change(name).await?;
        let quotas = change(view.quotas);
        let command = Command::NamespaceSet { namespace, quotas };
        if self.is_clustered() {
            if quotas != view.quotas {
                self.step(0, &command).await?;
            }
            self.let_follow(shard).await?;
        } else if quotas == view.quotas {
            return Ok(view);
        } else {
            self.step(shard, &command).await?;
            if shard != 0 {
                self.last_step(0, &command).await?;
            }
        }
        self.changed(name).await
    }

    async fn delete(&self, name: &str, force: bool) -> Result<(), Error> {
        let NamespacePlace { namespace, shard } = self.inner.placement.by_name(name)?;
        let delete = |force| Command::NamespaceDelete { namespace, force };
        if self.is_clustered() {
            if shard != 0 && !force {
                self.delete_empty(name, shard, namespace).await?;
                // Else the leader of its shard sees to it, with the next look.
                return done_if_gone(self.step(0, &delete(true)).await).map_err(|_| Error::OutcomeUnknown {});
            }
            done_if_gone(self.step(0, &delete(force)).await)?;
            self.let_follow(shard).await?;
        } else if shard == 0 || !force {
            done_if_gone(self.step(shard, &delete(force)).await)?;
            self.inner.placement.remove(name);
            if shard != 0 {
                done_if_gone(self.last_step(0, &delete(true)).await)?;
            }
        } else {
            done_if_gone(self.step(0, &delete(true)).await)?;
            self.inner.placement.remove(name);
            done_if_gone(self.last_step(shard, &delete(true)).await)?;
        }
        Ok(())
    }

    /// Waits until a shard of a cluster is in line with shard 0, which has changed.
    ///
    /// # Errors
    /// `outcome_unknown`: it will be, once it has a leader.
    pub(crate) async fn let_follow(&self, shard: u32) -> Result<(), Error> {
        if shard != 0 {
            self.ask_leader(Question::Follow { shard }).await.map_err(|_| Error::OutcomeUnknown {})?;
        }
        Ok(())
    }

    /// Deletes a namespace of a cluster on its shard, if it is empty.
    async fn delete_empty(&self, name: &str, shard: u32, namespace: NamespaceId) -> Result<(), Error> {
        match self.ask_leader(Question::Delete { shard, namespace, force: false }).await {
            Ok(Answer::NotEmpty { queues, documents }) => {
                let (queues, documents) = (queues.into(), documents.into());
                Err(Error::NamespaceNotEmpty { namespace: name.to_owned(), queues, documents })
            }
            Ok(Answer::InDoubt) => Err(Error::InDoubt { what: format!("namespace {name:?}") }),
            Ok(Answer::Done(_) | Answer::NotNow) => Ok(()),
            Err(_) => Err(Error::OutcomeUnknown {}),
        }
    }

    /// Result of a change; since it is done, no error may say that it was refused.
    async fn changed(&self, name: &str) -> Result<NamespaceView, Error> {
        loop {
            match self.view_of_change(name).await {
                Err(Error::Overloaded { .. }) => tokio::time::sleep(STEP_PAUSE).await,
                seen => return of_done(seen),
            }
        }
    }

    /// One namespace as a change begins or ends with it: in a cluster quotas are those of shard 0, and what
    /// the namespace holds is as this node has it.
    async fn view_of_change(&self, name: &str) -> Result<NamespaceView, Error> {
        if !self.is_clustered() {
            return self.namespace(name).await;
        }
        let place = self.inner.placement.by_name(name)?;
        let view = self.look(0, move |at| at.engine.namespace(place.namespace)).await?;
        let view = view.ok_or_else(|| Error::NamespaceNotFound { namespace: name.to_owned() })?;
        let here = self.stale().look(place.shard, move |at| at.engine.namespace(place.namespace)).await?;
        Ok(here.map_or(view.clone(), |here| NamespaceView { quotas: view.quotas, ..here }))
    }

    /// A step that may be refused.
    async fn step(&self, shard: u32, command: &Command<'_>) -> Result<Reply, Error> {
        self.propose_on(shard, command).await?.result
    }

    /// A step without which a change would stay half done: it is tried until it is done or this node stops,
    /// and may use what is kept back of the disk and of the mailbox.
    async fn last_step(&self, shard: u32, command: &Command<'_>) -> Result<Reply, Error> {
        loop {
            match self.pressing(shard, command).await {
                Err(Error::Overloaded { .. } | Error::DiskFull { .. } | Error::OutcomeUnknown {}) => {
                    tokio::time::sleep(STEP_PAUSE).await;
                }
                // The next start will see to it.
                Err(Error::ShuttingDown {} | Error::JournalFailed { .. }) => {
                    return Err(Error::OutcomeUnknown {});
                }
                certain => return certain,
            }
        }
    }

    /// One try of such a step.
    pub(crate) async fn pressing(&self, shard: u32, command: &Command<'_>) -> Result<Reply, Error> {
        let (sender, answer) = oneshot::channel();
        let mut proposal = Proposal::new(command, ReplyTo::Once(sender));
        proposal.class = Class::Draining;
        proposal.relieves = true;
        self.push(shard, Request::Propose(proposal))?;
        answer.await.map_or(Err(Error::OutcomeUnknown {}), |answer| answer.result)
    }

    /// One namespace, as its shard sees it.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn namespace(&self, name: &str) -> Result<NamespaceView, Error> {
        let place = self.inner.placement.by_name(name)?;
        let view = self.look(place.shard, move |at| at.engine.namespace(place.namespace)).await?;
        view.ok_or_else(|| Error::NamespaceNotFound { namespace: name.to_owned() })
    }

    /// All namespaces by name, each as its shard sees it, whoever leads that.
    ///
    /// # Errors
    /// `no_leader`, `shutting_down`, `overloaded`.
    pub async fn namespaces(&self) -> Result<Vec<NamespaceView>, Error> {
        let (stale, mut views) = (self.stale(), Vec::new());
        for (shard, leader) in (0..).zip(self.leaders()) {
            let known = match leader.elsewhere() {
                Some(_) if !self.is_stale => {
                    self.catch_up(shard).await?;
                    stale.namespaces_known_to(shard).await?
                }
                _ => self.namespaces_known_to(shard).await?,
            };
            views.extend(known.into_iter().filter(|view| view.shard == shard));
        }
        views.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(views)
    }

    /// The namespaces that the engine of a shard knows, by number; of those that live elsewhere without what
    /// they hold.
    pub(crate) async fn namespaces_known_to(&self, shard: u32) -> Result<Vec<NamespaceView>, Error> {
        let mut views: Vec<NamespaceView> = Vec::new();
        loop {
            let after = views.last().map(|view| view.id);
            let seen = self.look(shard, move |at| at.engine.namespaces_after(after, LOOK_NAMESPACES)).await?;
            let is_last = seen.len() < LOOK_NAMESPACES;
            views.extend(seen);
            if is_last {
                return Ok(views);
            }
        }
    }

    fn check_shard(&self, shard: u32) -> Result<u32, Error> {
        let shards = self.inner.mailboxes.len() as u32;
        if shard < shards {
            return Ok(shard);
        }
        let reason = format!("{shard} is not a shard of this server: it has 0 to {}", shards - 1);
        Err(Error::InvalidArgument { field: "shard".to_owned(), reason })
    }

    async fn emptiest_shard(&self) -> Result<u32, Error> {
        let mut counts = vec![0u64; self.inner.mailboxes.len()];
        let known = self.namespaces_known_to(0).await?;
        for view in known.iter().filter(|view| view.id != NamespaceId::SYS) {
            counts[view.shard as usize] += 1;
        }
        let emptiest = counts.iter().enumerate().min_by_key(|(_, count)| **count);
        Ok(emptiest.map_or(0, |(shard, _)| shard as u32))
    }
}

/// A deletion that finds nothing has been done before.
pub(crate) fn done_if_gone(deleted: Result<Reply, Error>) -> Result<(), Error> {
    match deleted {
        Ok(_) | Err(Error::NamespaceNotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

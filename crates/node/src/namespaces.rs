//! Namespaces: defined on shard 0, where placement is decided, and alive on the shard that it names.

use sluice_engine::Error;
use sluice_engine::command::Command;
use sluice_engine::id::NamespaceId;
use sluice_engine::outcome::Reply;
use sluice_engine::query::NamespaceView;
use sluice_engine::settings::Quotas;

use crate::handle::{Node, unexpected};
use crate::placement::Place;

impl Node {
    /// Creates a namespace; `shard` `None` puts it where the fewest namespaces are.
    ///
    /// # Errors
    /// `invalid_name`, `namespace_exists`, `limit_exceeded`; `invalid_argument` for a shard that is not there.
    pub async fn namespace_create(
        &self,
        name: &str,
        shard: Option<u32>,
        quotas: Quotas,
    ) -> Result<NamespaceView, Error> {
        let _changes = self.inner.namespace_changes.lock().await;
        if self.inner.placement.by_name(name).is_ok() {
            return Err(Error::NamespaceExists { namespace: name.to_owned() });
        }
        let shard = match shard {
            Some(shard) => self.check_shard(shard)?,
            None => self.emptiest_shard().await?,
        };
        let command = Command::NamespaceCreate { number: None, name, shard, quotas };
        let namespace = match self.propose_on(0, &command).await?.result? {
            Reply::Namespace { namespace } => namespace,
            other => return Err(unexpected(&other)),
        };
        if shard != 0 {
            let command = Command::NamespaceCreate { number: Some(namespace), name, shard, quotas };
            self.propose_on(shard, &command).await?.result?;
        }
        self.inner.placement.insert(name, Place { namespace, shard });
        self.namespace(name).await
    }

    /// Replaces the quotas of a namespace.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn namespace_set(&self, name: &str, quotas: Quotas) -> Result<NamespaceView, Error> {
        let _changes = self.inner.namespace_changes.lock().await;
        let place = self.inner.placement.by_name(name)?;
        let command = Command::NamespaceSet { namespace: place.namespace, quotas };
        for shard in shards_of(place) {
            self.propose_on(shard, &command).await?.result?;
        }
        self.namespace(name).await
    }

    /// Deletes a namespace; with `force` its queues and messages too.
    ///
    /// # Errors
    /// `namespace_not_found`, `namespace_not_empty`; `invalid_argument` for the namespaces that always are.
    pub async fn namespace_delete(&self, name: &str, force: bool) -> Result<(), Error> {
        let _changes = self.inner.namespace_changes.lock().await;
        let place = self.inner.placement.by_name(name)?;
        let view = self.namespace(name).await?;
        if view.queues > 0 && !force {
            return Err(Error::NamespaceNotEmpty { namespace: name.to_owned(), queues: view.queues });
        }
        // Shard 0 first: should we stop in between, the next start finds a namespace that is placed nowhere, and ends
        // what was begun.
        for shard in shards_of(place) {
            let force = force || shard != 0;
            let command = Command::NamespaceDelete { namespace: place.namespace, force };
            self.propose_on(shard, &command).await?.result?;
        }
        self.inner.placement.remove(name);
        Ok(())
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

    /// All namespaces by name, each as its shard sees it.
    ///
    /// # Errors
    /// `shutting_down`, `overloaded`.
    pub async fn namespaces(&self) -> Result<Vec<NamespaceView>, Error> {
        let mut views = Vec::new();
        for shard in 0..self.inner.mailboxes.len() as u32 {
            let seen = self.look(shard, |at| at.engine.namespaces()).await?;
            views.extend(seen.into_iter().filter(|view| view.shard == shard));
        }
        views.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(views)
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
        for view in self.namespaces().await?.iter().filter(|view| view.id != NamespaceId::SYS) {
            counts[view.shard as usize] += 1;
        }
        let emptiest = counts.iter().enumerate().min_by_key(|(_, count)| **count);
        Ok(emptiest.map_or(0, |(shard, _)| shard as u32))
    }
}

/// Shard 0 knows of every namespace; its own shard holds it.
fn shards_of(place: Place) -> impl Iterator<Item = u32> {
    [Some(0), (place.shard != 0).then_some(place.shard)].into_iter().flatten()
}

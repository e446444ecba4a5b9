//! Searches through the handle.

use sluice_engine::Error;
use tokio::sync::Semaphore;

use crate::api::Stored;
use crate::handle::Node;
use crate::reads;
use crate::search::{Found, Hit, Search, Work, find};

/// Messages that are looked at together to be shown, which may have long histories.
const SHOWN_TOGETHER: usize = 32;
/// Searches of the node that are worked on together; the others wait in line.
const AT_A_TIME: usize = 2;
/// Turns of searches.
static TURNS: Semaphore = Semaphore::const_new(AT_A_TIME);

impl Node {
    /// Messages of a queue that match, by id, from a place on: at most `limit`. Ends early when it has done
    /// much.
    ///
    /// # Errors
    /// `queue_not_found`; `overloaded` when the system is too short of something to read from the disk.
    pub async fn search(&self, search: &Search, cursor: Option<u64>, limit: usize) -> Result<Found, Error> {
        let shard = self.inner.placement.shard_of(search.namespace)?;
        let _turn = TURNS.acquire().await;
        let named = search.clone();
        let total = self.look(shard, move |at| {
            let queue = find(at.engine, named.namespace, &named.queue)?;
            let counters = at.engine.queue(queue).map(|view| view.counters).unwrap_or_default();
            Ok::<_, Error>(counters.in_state(named.filter.state()))
        });
        let mut work = Work::new(search, total.await??, cursor, limit);
        loop {
            let page = work.page();
            let seen = self.look(shard, move |at| page.see(at)).await??;
            if work.take(seen).await? {
                return Ok(work.into_found());
            }
        }
    }

    /// Messages that a search has found, as they are now; with their bytes and histories when `payload`.
    /// Those that are gone, or do not match any more by what the engine's index has of them, are left out.
    ///
    /// # Errors
    /// Those of [`Node::search`].
    pub async fn found(&self, search: &Search, hits: &[Hit], payload: bool) -> Result<Vec<Stored>, Error> {
        let shard = self.inner.placement.shard_of(search.namespace)?;
        let mut all = Vec::with_capacity(hits.len());
        for some in hits.chunks(SHOWN_TOGETHER) {
            let (search, some) = (search.clone(), some.to_vec());
            let seen = self.look(shard, move |at| {
                let seen = some.iter().filter_map(|hit| {
                    let mut view = at.engine.message(hit.view.id).ok()?;
                    let is_same = view.version == hit.view.version;
                    let matches = || search.filter.matches_index(&view, search.now_ms) != Some(false);
                    if view.queue != hit.view.queue || !is_same && !matches() {
                        return None;
                    }
                    if !payload {
                        view.history.clear();
                        view.changes.clear();
                    }
                    Some(reads::see(at, view, payload))
                });
                seen.collect::<Vec<_>>()
            });
            all.extend(reads::load(seen.await?).await?);
        }
        Ok(all)
    }
}

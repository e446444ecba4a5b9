//! Queues that push, for whoever pushes.

use sluice_engine::Error;
use sluice_engine::push::PushView;

use crate::handle::{LOOK_ITEMS, Node};

impl Node {
    /// Queues of a shard that push, by number, as far as this node leads the shard: none where another does,
    /// or while it hands the leadership over.
    ///
    /// # Errors
    /// `overloaded`, `shutting_down`.
    pub async fn pushes(&self, shard: u32) -> Result<Vec<PushView>, Error> {
        let leads = |node: &Node| {
            node.leaders()
                .get(shard as usize)
                .is_some_and(|leader| leader.is_here() && !leader.is_unsettled())
        };
        let (stale, mut all, mut after) = (self.stale(), Vec::new(), None);
        while leads(self) {
            let (page, last) = stale.look(shard, move |at| at.engine.pushes(after, LOOK_ITEMS)).await?;
            all.extend(page);
            if last.is_none() {
                return Ok(all);
            }
            after = last;
        }
        Ok(Vec::new())
    }
}

//! A full count of everything that is kept, for the simulator and tests.

use crate::engine::Engine;

impl Engine {
    /// Compares every kept counter, list, directory entry and timer with a full count. Slow: looks at
    /// everything.
    ///
    /// # Errors
    /// A sentence that tells what does not agree.
    pub fn recount(&self) -> Result<(), String> {
        let Engine { core, queue, locks, documents, transactions, snapshot: _ } = self;
        core.recount(self.owned_blobs())?;
        queue.recount(&documents.recount()?, core)?;
        locks.recount(core)?;
        transactions.recount()
    }
}

//! Changes of single messages.

use sluice_engine::Error;
use sluice_engine::change::Change;
use sluice_engine::command::Command;

use crate::handle::Node;

impl Node {
    /// Changes messages, each for itself; one result per item, in order.
    ///
    /// # Errors
    /// When the change as a whole is refused: fields out of range, unknown namespace, unknown queue to move
    /// to, overload.
    pub async fn change(&self, change: &Change<'_>) -> Result<Vec<Result<(), Error>>, Error> {
        let answer = self.propose(change.namespace, &Command::Change(*change)).await?;
        answer.into_item_results(change.items.len())
    }
}

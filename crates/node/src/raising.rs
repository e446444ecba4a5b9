//! The behaviour version in force: a record of each shard's log, which the shard's leader writes.

use sluice_engine::command::Command;
use sluice_engine::{Error, check_behaviour};

use crate::asks::Question;
use crate::handle::Node;

impl Node {
    /// The behaviour versions in force on all shards, as this node has applied them; 0 on a shard that has
    /// applied nothing yet.
    ///
    /// # Errors
    /// `shutting_down`, `overloaded`.
    pub async fn behaviours(&self) -> Result<Vec<u16>, Error> {
        let mut behaviours = Vec::new();
        for shard in 0..self.leaders().len() as u32 {
            behaviours.push(self.behaviour(shard).await?);
        }
        Ok(behaviours)
    }

    /// The behaviour version in force on one shard, as [`Node::behaviours`].
    ///
    /// # Errors
    /// `shutting_down`.
    pub async fn behaviour(&self, shard: u32) -> Result<u16, Error> {
        self.stale().look_in_turn(shard, |at| at.engine.behaviour()).await
    }

    /// Puts a behaviour version into force on a shard, whichever node leads it. To repeat it does no harm.
    /// All nodes have to know the version: one that does not can never use the log again.
    ///
    /// # Errors
    /// `no_leader` when the leader has not done it within 5 s, or does not know the version.
    pub async fn raise(&self, shard: u32, behaviour: u16) -> Result<(), Error> {
        self.ask_leader(Question::Raise { shard, behaviour }).await.map(drop)
    }

    /// As [`Node::raise`], on a shard that this node leads. True: the version is in force.
    pub(crate) async fn raise_here(&self, shard: u32, behaviour: u16) -> bool {
        if check_behaviour(behaviour.into()).is_err() {
            return false;
        }
        match self.look(shard, |at| at.engine.behaviour()).await {
            Ok(in_force) if in_force >= behaviour => true,
            Ok(_) => self.pressing(shard, &Command::Raise { behaviour }).await.is_ok(),
            Err(_) => false,
        }
    }
}

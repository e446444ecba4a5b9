//! Limits: in force are those of shard 0's log, and the leader of each other shard brings its own into line
//! with them (`following.rs`). A server alone begins each start with those of its settings.

use sluice_engine::Error;
use sluice_engine::command::Command;
use sluice_engine::limits::Limits;

use crate::handle::Node;

impl Node {
    /// The limits in force.
    pub fn limits(&self) -> Limits {
        self.inner.limits.get()
    }

    /// The limits of this node's settings, which do not count in a cluster.
    pub fn own_limits(&self) -> &Limits {
        &self.inner.own_limits
    }

    /// Puts other limits into force in a cluster, on a node that leads shard 0: `change` gets those in force,
    /// and no other change comes between. Done when all shards have them; to repeat it does no harm. Dropping
    /// the future does not end the change.
    ///
    /// # Errors
    /// `invalid_argument` names a limit that is out of range, `not_leader`; `outcome_unknown` when another
    /// shard has no leader, whose next one sees to it.
    pub async fn change_limits(
        &self,
        change: impl FnOnce(Limits) -> Limits + Send + 'static,
    ) -> Result<Limits, Error> {
        self.change_shared(async move |node| {
            let former = node.look(0, |at| at.engine.limits().clone()).await?;
            let limits = change(former.clone());
            if limits != former {
                node.propose_on(0, &Command::Configure(limits.clone())).await?.result?;
            }
            for shard in 1..node.leaders().len() as u32 {
                node.let_follow(shard).await?;
            }
            Ok(limits)
        })
        .await
    }
}

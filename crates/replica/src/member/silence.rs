//! Silence of a member that may have forgotten something: it neither votes nor acknowledges, under the number
//! as which it made its promises. It comes back under another number, with the log that it has
//! ([`crate::Durable::has_forgotten`]).

use super::Member;
use super::memory::Kept;
use super::state::Saved;
use crate::driver::check::Rejected;
use crate::entry::NodeId;
use crate::members::Members;
use crate::plant::{self, Plant};

/// True: a member that has forgotten something is not to say anything under this number, which is that of its
/// promises. Where it is the only member there is nobody to whom it has made any.
pub(super) fn is_bound(saved: &Saved, id: NodeId, members: &Members) -> bool {
    let is_alone = members.iter().all(|member| member == id) && members.contains(id);
    saved.id == Some(id) && !is_alone && !plant::is(Plant::ForgetfulVoter)
}

impl Member {
    /// True: this member may have forgotten what it has acknowledged. It keeps that in mind until it starts
    /// under another number.
    pub fn has_forgotten(&self) -> bool {
        self.saved.kept == Kept::Less
    }

    /// Ends the part of this member: it is silent from now on, since another one of its node has forgotten
    /// something, and a node has one number.
    pub fn fall_silent(&mut self) {
        self.wake();
        self.is_silenced = true;
    }

    /// True: this member says nothing, and takes nothing in.
    pub(super) fn is_mute(&self) -> bool {
        self.is_silenced || self.has_forgotten()
    }

    /// Takes note of a message that was refused. A leader tells a commit index only to those that have
    /// acknowledged the log up to there. So who has not got that much has forgotten it.
    pub(super) fn note_refused(&mut self, why: Rejected) {
        if let Rejected::CommitBeyondLog { .. } = why
            && !plant::is(Plant::ForgetfulVoter)
        {
            self.wake();
            self.save(Saved { kept: Kept::Less, ..self.saved.clone() });
        }
    }
}

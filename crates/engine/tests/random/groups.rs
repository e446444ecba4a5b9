//! Groups: a callback waits for exactly those of its members that have not ended.

use sluice_engine::Engine;
use sluice_engine::id::MessageId;

use super::lives::Lives;

/// The groups whose callbacks are here.
#[derive(Default)]
pub(super) struct Groups {
    sent: Vec<Group>,
}

struct Group {
    members: Vec<MessageId>,
    callback: MessageId,
}

impl Groups {
    /// A group was sent: its callback is the last of `count` messages.
    pub(super) fn enter(&mut self, first: MessageId, count: u32) {
        let id = |n: u32| MessageId { sequence: first.sequence + u64::from(n), ..first };
        let members = (0..count - 1).map(id).collect();
        self.sent.push(Group { members, callback: id(count - 1) });
    }

    /// Call it when nothing is left to do.
    pub(super) fn check(&mut self, lives: &Lives, engine: &Engine) {
        self.sent.retain(|group| engine.group_view(group.callback).is_some());
        for Group { members, callback } in &self.sent {
            let view = engine.group_view(*callback).unwrap();
            let pending = members.iter().filter(|id| !lives.has_ended(**id, engine)).count();
            assert_eq!(view.pending as usize, pending, "{callback} waits for members: {view:?}");
            assert_eq!(
                (view.pending + view.done + view.dead) as usize,
                members.len(),
                "{callback}: {view:?}"
            );
            let waits = engine.message(*callback).unwrap().blocked_by == Some("parents");
            assert!(!waits || pending > 0, "{callback} waits for nobody");
        }
    }
}

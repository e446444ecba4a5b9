//! Changes of namespaces across shards, as the node makes them: a namespace is defined on shard 0 and lives
//! on the shard that shard 0 names. One change runs at a time, one step after the other; a crash may come
//! between two steps.

use std::collections::VecDeque;

use sluice_engine::Engine;
use sluice_engine::Error;
use sluice_engine::id::NamespaceId;
use sluice_engine::outcome::Reply;
use sluice_engine::query::NamespaceView;
use sluice_engine::settings::Quotas;
use sluice_node::shard::request::Answer;

use super::World;
use crate::model::Checked;
use crate::workload::Op;

/// A running change.
#[derive(Debug)]
pub(super) struct Changing {
    /// Steps that are left, each with the number of its shard.
    steps: VecDeque<(usize, Op)>,
    /// The request whose answer is awaited: shard and tag.
    asked: Option<(usize, u64)>,
    /// True once a step was done: the others must follow.
    begun: bool,
}

impl World {
    /// Continues the running change; without one, gives a namespace to a shard that has none.
    pub(super) fn tend_namespaces(&mut self) -> Checked {
        let lonely = self.lanes[self.at].history.seen().namespaces(self.at as u32).is_empty();
        if self.changing.is_none() && lonely {
            let name = format!("own-{}", self.at);
            let (number, shard, quotas) = (None, self.at as u32, Quotas::default());
            return self.change_namespace(Op::NamespaceCreate { number, name, shard, quotas });
        }
        self.ask_next_step()
    }

    /// Begins a change, unless one is running.
    pub(super) fn change_namespace(&mut self, op: Op) -> Checked {
        if self.changing.is_some() {
            return Ok(());
        }
        let place = |namespace: NamespaceId| self.lanes[0].history.seen().shard_of(namespace);
        let steps = match &op {
            // The shard that it will live on is told once shard 0 has given it a number.
            Op::NamespaceCreate { .. } => VecDeque::from([(0, op)]),
            Op::NamespaceSet { namespace, .. } | Op::NamespaceDelete { namespace, .. } => {
                let Some(shard) = place(*namespace) else { return Ok(()) };
                steps_of(op, shard as usize)
            }
            _ => return Ok(()),
        };
        self.changing = Some(Changing { steps, asked: None, begun: false });
        self.ask_next_step()
    }

    fn ask_next_step(&mut self) -> Checked {
        let Some(changing) = &self.changing else { return Ok(()) };
        let Some((shard, op)) = changing.steps.front().filter(|_| changing.asked.is_none()) else {
            return Ok(());
        };
        let (shard, op) = (*shard, op.clone());
        let at = std::mem::replace(&mut self.at, shard);
        let asked = self.ask(op)?.map(|tag| (shard, tag));
        self.at = at;
        if let Some(changing) = &mut self.changing {
            changing.asked = asked;
        }
        Ok(())
    }

    /// Handles an answer, if it is that of the running step.
    pub(super) fn step_of_change_answered(&mut self, tag: u64, answer: &Answer) {
        let Some(changing) = self.changing.as_mut().filter(|c| c.asked == Some((self.at, tag))) else {
            return;
        };
        changing.asked = None;
        match &answer.result {
            Ok(reply) => changing.go_on(Some(*reply)),
            Err(Error::NamespaceNotFound { .. }) if changing.begun => changing.go_on(None),
            Err(_) => changing.turn_back(),
        }
        if changing.steps.is_empty() {
            self.changing = None;
        }
    }

    /// Checks after a start that every namespace is on the shard that shard 0 names, and on no other.
    pub(super) fn namespaces_agree(&self) -> Checked {
        let engines: Vec<&Engine> =
            self.lanes.iter().filter_map(|lane| Some(lane.server.as_ref()?.shard.engine())).collect();
        agree(&engines)
    }
}

impl Changing {
    fn go_on(&mut self, reply: Option<Reply>) {
        self.begun = true;
        let done = self.steps.pop_front();
        if let (
            Some(Reply::Namespace { namespace }),
            Some((0, Op::NamespaceCreate { name, shard, quotas, .. })),
        ) = (reply, done)
            && shard != 0
        {
            let number = Some(namespace);
            self.steps.push_back((shard as usize, Op::NamespaceCreate { number, name, shard, quotas }));
        }
    }

    /// Handles a refused step: gives up a change that has not begun, undoes what was done, or keeps the step
    /// for another try.
    fn turn_back(&mut self) {
        match self.steps.front() {
            _ if !self.begun => self.steps.clear(),
            Some((_, Op::NamespaceCreate { number: Some(namespace), .. })) => {
                let undo = Op::NamespaceDelete { namespace: *namespace, force: true };
                self.steps = VecDeque::from([(0, undo)]);
            }
            _ => {}
        }
    }
}

/// Steps of a change on its two shards, in an order from which a start can tell what a crash in between has
/// left.
fn steps_of(op: Op, shard: usize) -> VecDeque<(usize, Op)> {
    if shard == 0 {
        return VecDeque::from([(0, op)]);
    }
    match op {
        Op::NamespaceDelete { namespace, force } => {
            let forced = Op::NamespaceDelete { namespace, force: true };
            let (first, second) = if force { (0, shard) } else { (shard, 0) };
            VecDeque::from([(first, Op::NamespaceDelete { namespace, force }), (second, forced)])
        }
        op => VecDeque::from([(shard, op.clone()), (0, op)]),
    }
}

/// Checks that the shards of a server that has just started agree about the namespaces.
pub(super) fn agree(engines: &[&Engine]) -> Checked {
    let Some((first, others)) = engines.split_first() else { return Ok(()) };
    let placed = first.namespaces();
    for (shard, engine) in (1..).zip(others) {
        let key = |view: &NamespaceView| (view.id, view.name.clone(), view.quotas);
        let built_in = |view: &NamespaceView| view.id == NamespaceId::SYS || view.id == NamespaceId::DEFAULT;
        let meant: Vec<_> = placed.iter().filter(|view| view.shard == shard).map(key).collect();
        let there: Vec<_> = engine.namespaces().iter().filter(|view| !built_in(view)).map(key).collect();
        if meant != there {
            return Err(format!("shard 0 places {meant:?} on shard {shard}, which has {there:?}"));
        }
    }
    Ok(())
}

//! State of flows: parents of messages, and the edges that lead from these to their children.

use std::collections::BTreeMap;

use crate::item::{DependsMode, OnParentFailed};
use crate::plant::{self, Plant};
use crate::queue::state::chain::AllChains;
use crate::queue::state::{ChainSlot, EdgeSlot, FlowSlot, MessageSlot, ParentSlot, PendingSlot};
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// The end of a message, as its children are told of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Done,
    /// Dead, or gone without being done.
    Failed,
}

impl End {
    /// Its byte in a snapshot; 0 is no end.
    pub(crate) fn byte(end: Option<End>) -> u8 {
        match end {
            None => 0,
            Some(End::Done) => 1,
            Some(End::Failed) => 2,
        }
    }

    /// The end that [`End::byte`] gives this byte for; the outer `None`: there is none.
    pub(crate) fn of_byte(byte: u8) -> Option<Option<End>> {
        [None, Some(End::Done), Some(End::Failed)].get(usize::from(byte)).copied()
    }
}

/// The flow of one message: its parents, its children and its steps; or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// Its entry as a parent, among [`Flows::parents`]; `NIL`: no message waits for it.
    pub(crate) parent: ParentSlot,
    /// The first edge from its own parents; `NIL`: it has none.
    pub(crate) edges: EdgeSlot,
    /// True if it still waits for its parents.
    pub(crate) waiting: bool,
    pub(crate) mode: DependsMode,
    pub(crate) on_parent_failed: OnParentFailed,
    /// Parents that have not ended, have been done, and have failed, as far as it was told.
    pub(crate) open: u32,
    pub(crate) done: u32,
    pub(crate) failed: u32,
    /// True if its parents are the members of a group.
    pub(crate) group: bool,
    /// Its steps, among [`Flows::chains`]; `NIL`: it has none.
    pub(crate) chain: ChainSlot,
    /// Slot of the pending send of the step for its failure; `NIL`: none.
    pub(crate) pending: PendingSlot,
    next_vacant: Option<FlowSlot>,
}

/// The decision that the ends of its parents give for a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Wait,
    Run,
    Failed,
}

impl Flow {
    /// The decision that follows from the ends that it was told of.
    pub(crate) fn verdict(&self) -> Verdict {
        let enough = match self.mode {
            DependsMode::All if plant::is(Plant::FirstParentIsEnough) => self.done > 0,
            DependsMode::All => self.open == 0 && self.failed == 0,
            DependsMode::Any => self.done > 0,
        };
        let hopeless = match self.mode {
            DependsMode::All => self.failed > 0,
            DependsMode::Any => self.open == 0,
        };
        match self.on_parent_failed {
            _ if enough => Verdict::Run,
            OnParentFailed::Run if self.open == 0 => Verdict::Run,
            OnParentFailed::Cancel | OnParentFailed::Hold if hopeless => Verdict::Failed,
            _ => Verdict::Wait,
        }
    }
}

impl PlainItem for Flow {
    const BLOCK: usize = 64;

    fn vacant(next: FlowSlot) -> Self {
        Flow {
            parent: Slot::NIL,
            edges: Slot::NIL,
            waiting: false,
            mode: DependsMode::All,
            on_parent_failed: OnParentFailed::Cancel,
            open: 0,
            done: 0,
            failed: 0,
            group: false,
            chain: Slot::NIL,
            pending: Slot::NIL,
            next_vacant: Some(next),
        }
    }

    fn next_vacant(&self) -> Option<FlowSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.parent.write(out);
        self.edges.write(out);
        out.bool(self.waiting);
        out.raw(&[self.mode as u8, self.on_parent_failed as u8]);
        [self.open, self.done, self.failed].into_iter().for_each(|count| out.u32(count));
        out.bool(self.group);
        self.chain.write(out);
        self.pending.write(out);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Flow {
            parent: Slot::read(reader)?,
            edges: Slot::read(reader)?,
            waiting: reader.bool()?,
            mode: *[DependsMode::All, DependsMode::Any].get(usize::from(reader.u8()?))?,
            on_parent_failed: *[OnParentFailed::Cancel, OnParentFailed::Hold, OnParentFailed::Run]
                .get(usize::from(reader.u8()?))?,
            open: reader.u32()?,
            done: reader.u32()?,
            failed: reader.u32()?,
            group: reader.bool()?,
            chain: Slot::read(reader)?,
            pending: Slot::read(reader)?,
            next_vacant: None,
        })
    }
}

/// A message that others wait for or have waited for, also when it is gone; or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Parent {
    pub(crate) sequence: u64,
    /// Slot of the flow that leads here; `NIL`: the message is gone, or has a life after its end, in which
    /// others wait for it anew.
    pub(crate) flow: FlowSlot,
    pub(crate) end: Option<End>,
    /// Edges to its children, in the order of their sending.
    pub(crate) head: EdgeSlot,
    pub(crate) tail: EdgeSlot,
    /// The next edge that is to be told of its end; `NIL`: none.
    pub(crate) cursor: EdgeSlot,
    /// True if telling its children is listed among the consequences.
    pub(crate) working: bool,
    next_vacant: Option<ParentSlot>,
}

impl PlainItem for Parent {
    const BLOCK: usize = 64;

    fn vacant(next: ParentSlot) -> Self {
        Parent {
            sequence: 0,
            flow: Slot::NIL,
            end: None,
            head: Slot::NIL,
            tail: Slot::NIL,
            cursor: Slot::NIL,
            working: false,
            next_vacant: Some(next),
        }
    }

    fn next_vacant(&self) -> Option<ParentSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.u64(self.sequence);
        self.flow.write(out);
        [self.head, self.tail, self.cursor].into_iter().for_each(|slot| slot.write(out));
        out.u8(End::byte(self.end));
        out.bool(self.working);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Parent {
            sequence: reader.u64()?,
            flow: Slot::read(reader)?,
            head: Slot::read(reader)?,
            tail: Slot::read(reader)?,
            cursor: Slot::read(reader)?,
            end: End::of_byte(reader.u8()?)?,
            working: reader.bool()?,
            next_vacant: None,
        })
    }
}

/// One child of one parent, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    /// Among [`Flows::parents`].
    pub(crate) parent: ParentSlot,
    /// Slot of the message that waits.
    pub(crate) child: MessageSlot,
    /// True if the child knows of its parent's end.
    pub(crate) told: bool,
    /// Neighbours among the children of the parent.
    prev: EdgeSlot,
    pub(crate) next: EdgeSlot,
    /// The next one of the child's edges.
    pub(crate) next_parent: EdgeSlot,
    next_vacant: Option<EdgeSlot>,
}

impl PlainItem for Edge {
    const BLOCK: usize = 64;

    fn vacant(next: EdgeSlot) -> Self {
        Edge {
            parent: Slot::NIL,
            child: Slot::NIL,
            told: false,
            prev: Slot::NIL,
            next: Slot::NIL,
            next_parent: Slot::NIL,
            next_vacant: Some(next),
        }
    }

    fn next_vacant(&self) -> Option<EdgeSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.bool(self.told);
        self.parent.write(out);
        self.child.write(out);
        [self.prev, self.next, self.next_parent].into_iter().for_each(|slot| slot.write(out));
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Edge {
            told: reader.bool()?,
            parent: Slot::read(reader)?,
            child: Slot::read(reader)?,
            prev: Slot::read(reader)?,
            next: Slot::read(reader)?,
            next_parent: Slot::read(reader)?,
            next_vacant: None,
        })
    }
}

/// The flows of all messages.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    pub(crate) slots: Slab<Flow, 1024>,
    pub(crate) parents: Slab<Parent, 1024>,
    pub(crate) edges: Slab<Edge, 1024>,
    pub(crate) chains: AllChains,
    /// Ends of messages that are gone and have duplicates in the send being applied, by sequence number.
    pub(crate) gone: BTreeMap<u64, End>,
    /// The first id of that send, if its ids are a sequence.
    pub(crate) first: u64,
    /// The place of the next step's payload among the blobs of that send.
    pub(crate) next_blob: u32,
}

impl HeadPart for Flows {
    fn write_head(&self, out: &mut Vec<u8>) {
        let Flows { slots, parents, edges, chains, gone: _, first: _, next_blob: _ } = self;
        slots.write_head(out);
        parents.write_head(out);
        edges.write_head(out);
        chains.write_head(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let slots = Slab::read_head(reader)?;
        let parents = Slab::read_head(reader)?;
        let edges = Slab::read_head(reader)?;
        let chains = Slab::read_head(reader)?;
        Some(Flows { slots, parents, edges, chains, ..Flows::default() })
    }
}

impl Flows {
    /// A flow for a message that has none.
    pub(crate) fn add(&mut self) -> FlowSlot {
        self.slots.insert(Flow { next_vacant: None, ..Flow::vacant(Slot::NIL) })
    }

    /// A message is to be waited for: as what, among the parents. Its life before an end does not count any
    /// more.
    pub(crate) fn enter_parent(&mut self, flow: FlowSlot, sequence: u64, end: Option<End>) -> ParentSlot {
        let known = self.slots.get(flow).parent;
        if known != Slot::NIL && self.parents.get(known).end == end {
            return known;
        }
        let parent = self.parents.insert(Parent {
            sequence,
            flow,
            end,
            next_vacant: None,
            ..Parent::vacant(Slot::NIL)
        });
        self.slots.get_mut(flow).parent = parent;
        if known != Slot::NIL {
            self.parents.get_mut(known).flow = Slot::NIL;
            self.forget_unused(known);
        }
        parent
    }

    /// Enters a parent that is gone already; returns its slot.
    pub(crate) fn enter_gone(&mut self, sequence: u64) -> ParentSlot {
        // What was looked for before and is not here went without being done.
        let end = Some(self.gone.get(&sequence).copied().unwrap_or(End::Failed));
        self.parents.insert(Parent { sequence, end, next_vacant: None, ..Parent::vacant(Slot::NIL) })
    }

    /// Lets a child, in its slot and with its flow, wait for a parent.
    pub(crate) fn connect(&mut self, parent: ParentSlot, child: MessageSlot, flow: FlowSlot) {
        let end = self.parents.get(parent).end;
        let of_child = self.slots.get_mut(flow);
        match end {
            None => of_child.open += 1,
            Some(End::Done) => of_child.done += 1,
            Some(End::Failed) => of_child.failed += 1,
        }
        let next_parent = of_child.edges;
        let prev = self.parents.get(parent).tail;
        let told = end.is_some();
        let edge = Edge { parent, child, told, prev, next: Slot::NIL, next_parent, next_vacant: None };
        let edge = self.edges.insert(edge);
        self.slots.get_mut(flow).edges = edge;
        let parent = self.parents.get_mut(parent);
        parent.tail = edge;
        if prev == Slot::NIL {
            parent.head = edge;
        } else {
            self.edges.get_mut(prev).next = edge;
        }
    }

    /// The message of a flow is gone, and with it what leads to it.
    pub(crate) fn leave(&mut self, flow: FlowSlot) {
        let gone = self.slots.remove(flow);
        if gone.parent != Slot::NIL {
            self.parents.get_mut(gone.parent).flow = Slot::NIL;
            self.forget_unused(gone.parent);
        }
        let mut at = gone.edges;
        while at != Slot::NIL {
            let edge = self.edges.remove(at);
            self.unlink(at, &edge);
            self.forget_unused(edge.parent);
            at = edge.next_parent;
        }
    }

    fn unlink(&mut self, slot: EdgeSlot, edge: &Edge) {
        let parent = self.parents.get_mut(edge.parent);
        if parent.cursor == slot {
            parent.cursor = edge.next;
        }
        if edge.prev == Slot::NIL {
            parent.head = edge.next;
        }
        if edge.next == Slot::NIL {
            parent.tail = edge.prev;
        }
        if edge.prev != Slot::NIL {
            self.edges.get_mut(edge.prev).next = edge.next;
        }
        if edge.next != Slot::NIL {
            self.edges.get_mut(edge.next).prev = edge.prev;
        }
    }

    /// All children of a parent have been told.
    pub(crate) fn end_work(&mut self, parent: ParentSlot) {
        self.parents.get_mut(parent).working = false;
        self.forget_unused(parent);
    }

    /// A parent without children goes, unless telling them is listed.
    fn forget_unused(&mut self, slot: ParentSlot) {
        let parent = self.parents.get(slot);
        if parent.head != Slot::NIL || parent.working {
            return;
        }
        if parent.flow != Slot::NIL {
            let flow = parent.flow;
            self.slots.get_mut(flow).parent = Slot::NIL;
        }
        self.parents.remove(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_parents_decide() {
        let verdict = |mode, on_parent_failed, [open, done, failed]: [u32; 3]| {
            Flow { mode, on_parent_failed, open, done, failed, ..Flow::vacant(Slot::NIL) }.verdict()
        };
        use DependsMode::{All, Any};
        use OnParentFailed::{Cancel, Hold, Run};
        for (mode, on_failed, counts, expected) in [
            (All, Cancel, [1, 1, 0], Verdict::Wait),
            (All, Cancel, [0, 2, 0], Verdict::Run),
            (All, Hold, [1, 1, 1], Verdict::Failed),
            (All, Run, [1, 1, 1], Verdict::Wait),
            (All, Run, [0, 1, 1], Verdict::Run),
            (Any, Cancel, [2, 0, 0], Verdict::Wait),
            (Any, Cancel, [2, 1, 0], Verdict::Run),
            (Any, Cancel, [1, 0, 1], Verdict::Wait),
            (Any, Cancel, [0, 0, 2], Verdict::Failed),
            (Any, Run, [0, 0, 2], Verdict::Run),
        ] {
            assert_eq!(verdict(mode, on_failed, counts), expected, "{mode:?} {on_failed:?} {counts:?}");
        }
    }
}

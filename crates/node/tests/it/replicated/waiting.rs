//! Commands that wait for a leader, or for the end of a hand-over.

use sluice_engine::Error;
use sluice_replica::{NodeId, RECORD_BYTES_MAX};

use super::{SECOND_US, TICK_US, Trio};
use crate::replicas::calls::{Answered, Waiting};

impl Trio {
    /// Lets time pass for one node alone.
    fn pass_for(&mut self, place: usize, us: u64) {
        for _ in 0..us / TICK_US {
            self.time.advance(TICK_US);
            self.machines[place].inbox.tick();
            self.settle_down();
        }
    }

    fn send_waiting(&mut self, place: usize, number: usize, bytes: u64) -> Waiting {
        let send = self.client(place).send("jobs", format!("<{number:07}>{}", "p".repeat(bytes as usize)), 0);
        self.settle_down();
        send
    }

    /// Orders the leader to hand over, and what it says to the other is lost.
    fn hand_over_in_vain(&mut self, leader: usize, to: NodeId) {
        self.machines[leader].inbox.transfer_leader(to);
        self.machines[leader].is_cut_off = true;
        self.settle_down();
        self.machines[leader].is_cut_off = false;
    }
}

#[test]
fn what_waits_for_a_leader_is_served_in_its_order_though_it_is_more_than_a_batch_may_have() {
    let mut trio = Trio::new(0);
    let old = trio.leader();
    let (waits, other) = ((old + 1) % 3, (old + 2) % 3);
    trio.machines[old].is_cut_off = true;
    trio.machines[other].is_cut_off = true;
    trio.pass(3 * SECOND_US);
    let count = 9;
    let mut sends: Vec<Waiting> =
        (0..count).map(|number| trio.send_waiting(waits, number, RECORD_BYTES_MAX / 4)).collect();
    trio.machines[other].is_cut_off = false;
    trio.pass_for(waits, 2 * SECOND_US);
    let ids: Vec<_> = sends
        .iter_mut()
        .map(|send| match send.answer().unwrap() {
            Some(Answered::Sent(Ok(id))) => id,
            Some(Answered::Sent(Err(error))) => panic!("{error:?}"),
            _ => panic!("no answer"),
        })
        .collect();
    assert!(ids.is_sorted(), "{ids:?}");
}

#[test]
fn a_send_waits_while_the_leadership_is_handed_over() {
    let mut trio = Trio::new(0);
    let leader = trio.leader();
    let to = trio.ids[(leader + 1) % 3];
    trio.hand_over_in_vain(leader, to);
    let mut send = trio.send_waiting(leader, 1, 0);
    assert!(send.answer().unwrap().is_none(), "it waits");
    trio.pass_for(leader, SECOND_US);
    assert!(matches!(send.answer().unwrap(), Some(Answered::Sent(Ok(_)))), "the leadership stays");
    trio.check_equal();
}

#[test]
fn a_send_that_waited_for_a_hand_over_is_told_who_leads() {
    let mut trio = Trio::new(0);
    let leader = trio.leader();
    let to = trio.ids[(leader + 1) % 3];
    trio.hand_over_in_vain(leader, to);
    let mut send = trio.send_waiting(leader, 1, 0);
    trio.machines[(leader + 1) % 3].inbox.doubt();
    trio.machines[leader].is_cut_off = true;
    let new = trio.leader();
    trio.machines[leader].is_cut_off = false;
    trio.pass(SECOND_US);
    let Some(Answered::Sent(Err(error))) = send.answer().unwrap() else { panic!("another node leads") };
    assert_eq!(error, Error::NotLeader { leader: trio.ids[new].get() });
    trio.check_equal();
}

//! A limit that has as many queues as one may have: they can be set again, and no other can follow it.

#![allow(clippy::unwrap_used)]

mod common;

use common::Driver;
use sluice_engine::id::NamespaceId;
use sluice_engine::limit::{LIMIT_QUEUES_MAX, LimitRules};
use sluice_engine::settings::QueuePatch;
use sluice_engine::{BEHAVIOUR_VERSION, Command, Error};

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;

fn set_limit(driver: &mut Driver, limit: &str) {
    let rules = LimitRules { in_flight: Some(5), ..LimitRules::default() };
    driver.apply(0, &Command::LimitSet { namespace: NAMESPACE, limit, rules });
}

/// Lets a queue follow a limit; tells why it is refused.
fn follow(driver: &mut Driver, queue: &str, limit: &str) -> Option<Error> {
    let patch = QueuePatch { limit: Some(limit.into()), ..QueuePatch::default() };
    driver.apply(0, &Command::QueueSet { namespace: NAMESPACE, queue, patch, create: true });
    driver.out.error.clone()
}

#[test]
fn a_queue_that_follows_a_full_limit_can_be_set_again() {
    let mut driver = Driver::new();
    driver.apply(0, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
    set_limit(&mut driver, "full");
    set_limit(&mut driver, "other");
    for n in 0..LIMIT_QUEUES_MAX {
        assert_eq!(follow(&mut driver, &format!("q{n}"), "full"), None);
    }
    let full = Error::LimitExceeded { what: "queues of one limit", limit: LIMIT_QUEUES_MAX as u64 };
    assert_eq!(follow(&mut driver, "one-more", "full"), Some(full.clone()));
    assert_eq!(follow(&mut driver, "q0", "full"), None, "it follows already");
    assert_eq!(follow(&mut driver, "q0", "other"), None);
    assert_eq!(follow(&mut driver, "one-more", "full"), None, "there is room again");
    assert_eq!(follow(&mut driver, "q0", "full"), Some(full));
    let queues = driver.engine.limit(NAMESPACE, "full").unwrap().queues;
    assert_eq!(queues.len(), LIMIT_QUEUES_MAX);
    driver.engine.recount().unwrap();
}

//! Rules that hold for every row of the table.

use super::*;

#[test]
fn each_operation_asks_for_the_right_to_what_it_does() {
    for operation in Operation::ALL {
        let (name, right) = (operation.name(), operation.right());
        if operation.only_looks() {
            assert!(!matches!(right, Right::Send | Right::Receive), "{name}");
        } else if *operation != Operation::ClusterJoin && operation.topic() != "transactions" {
            // Who joins shows a token that was made for this alone; each operation of a transaction asks for
            // its own right.
            let changes = [Right::Send, Right::Receive, Right::Coordinate, Right::Operate, Right::Admin];
            assert!(changes.contains(&right), "{name} changes something for whoever may look");
        }
        // Settling and extending carry receipts and no queue, and grants have tokens and no key.
        let segments = operation.http().segments;
        let settles = right == Right::Receive && segments.len() == 1
            || right == Right::Coordinate && segments.starts_with(&["grants"]);
        assert_eq!(operation.is(Trait::Relieves), *operation != Operation::ReceiveMany && settles, "{name}");
        assert!(operation.only_looks() || !operation.is(Trait::Stale), "{name}");
        // A caller with one queue has no way into the others by the id of a message. A flow shows
        // messages of several queues, so it asks for the whole namespace.
        let by_message = matches!(operation.http().captured(), Some("id" | "group"));
        let asks = operation.subject() == Subject::SomeQueue || *operation == Operation::FlowShow;
        assert!(!by_message || asks, "{name} is about a message of any queue");
    }
    let open = Operation::ALL.iter().filter(|one| one.right() == Right::Open).map(|one| one.name());
    assert_eq!(
        open.collect::<Vec<_>>(),
        [
            "namespace_list",
            "health",
            "ready",
            "openapi",
            "docs",
            "cluster_join",
            "transaction_commit",
            "transaction_begin",
            "transaction_stage",
            "transaction_close",
            "transaction_rollback",
            "whoami"
        ],
        "those are for everybody, or look by themselves"
    );
}

#[test]
fn names_are_unique_and_hot_operations_stand_first() {
    for (at, operation) in Operation::ALL.iter().enumerate() {
        assert_eq!(*operation as usize, at);
        let same = Operation::ALL.iter().filter(|other| other.name() == operation.name());
        assert_eq!(same.count(), 1, "{}", operation.name());
    }
    let hot = Operation::ALL.iter().take_while(|one| one.is(Trait::Hot)).count();
    assert_eq!(Operation::ALL.iter().filter(|one| one.is(Trait::Hot)).count(), hot);
}

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

/// Calls over a session are not audited: they are those of workers, which the documentation lists.
#[test]
fn what_is_called_over_sessions_is_documented_and_is_nobody_elses() {
    let page = include_str!("../../../../docs/grpc.md");
    let section = page.split("### Calls over a session").nth(1).unwrap();
    let is_row = |line: &&str| line.starts_with("| `");
    let rows = section.lines().skip_while(|line| !is_row(line)).take_while(is_row);
    let mut documented: Vec<String> = rows
        .flat_map(|row| {
            let mut names = row.split('`').skip(1).step_by(2);
            let service = names.next().unwrap();
            names.map(move |name| format!("{service}/{name}"))
        })
        .collect();
    let called = Operation::ALL.iter().filter(|one| one.is_called_over_sessions());
    let mut called: Vec<String> = called.map(|one| one.grpc().unwrap().to_owned()).collect();
    documented.sort();
    called.sort();
    assert_eq!(called, documented);
}

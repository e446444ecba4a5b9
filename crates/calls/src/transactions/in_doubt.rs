//! Transactions over several namespaces that are in doubt, as operators see them: list, show, and resolve.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_engine::id::{NamespaceId, TransactionId};
use sluice_engine::transactions::OperationView;
use sluice_node::{InDoubt, NotResolved};

use super::StagedOperation;
use crate::access::{Right, Target};
use crate::call::{Body, Done, How, Unary};
use crate::error::CallError;
use crate::hot::AT_MS_EXAMPLE;
use crate::permit::Permit;
use crate::value::{PageSize, Shown, Whole, Word, cut_page, given, page_size, words};

/// A transaction over several namespaces that is in doubt in a namespace.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "InDoubtTransaction", example = example())]
pub struct Transaction {
    /// Its id, the same in all its namespaces.
    transaction: String,
    /// `prepared`: its part in this namespace waits for the decision. `decided`: it is committed, this
    /// namespace has decided that, and it is not known to be finished in the others.
    state: Word<State>,
    /// The namespace that decides; its number behind a # if it is gone, or the caller may not look at it.
    coordinator: String,
    /// The other namespaces of a decided one, named in the same way.
    parts: Vec<String>,
    /// When it was prepared or decided, in milliseconds since the Unix epoch.
    since_at_ms: u64,
    /// When a prepared one that is not decided cannot be committed any more, in milliseconds since the Unix
    /// epoch: from then on its shard asks what was decided.
    undecided_until_ms: Option<u64>,
    /// Number of operations that are prepared.
    operation_count: u64,
    /// The prepared operations in their order, without contents, when one transaction is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    operations: Option<Vec<StagedOperation>>,
}

/// The state of a transaction in a namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Prepared,
    Decided,
}

words! {
    State: "prepared" = State::Prepared, "decided" = State::Decided;
    Force: "commit" = Force::Commit, "abort" = Force::Abort;
    Outcome: "committed" = Outcome::Committed, "aborted" = Outcome::Aborted;
}

const ID_EXAMPLE: &str = "000004000000000004d2";

fn example() -> Value {
    json!({
        "transaction": ID_EXAMPLE, "state": "prepared", "coordinator": "shop", "parts": [],
        "since_at_ms": AT_MS_EXAMPLE, "undecided_until_ms": AT_MS_EXAMPLE + 10_000, "operation_count": 1,
    })
}

impl Whole for Transaction {
    const NAME: &'static str = "InDoubtTransactionShown";
    const FIELD: &'static str = "operations";

    fn example() -> Value {
        json!([{"operation": "put", "about": ["accounts/3"], "content_bytes": 16}])
    }
}

/// Names of namespaces for a caller.
struct Names(BTreeMap<NamespaceId, String>);

impl Names {
    /// Names of all namespaces of transactions, if the caller may look at them.
    fn of(found: &[InDoubt], permit: &Permit<'_>) -> Names {
        let mut of = BTreeSet::new();
        for one in found {
            of.insert(one.id().coordinator);
            if let InDoubt::Decided(view) = one {
                of.extend(view.participants.iter().map(|(namespace, _)| *namespace));
            }
        }
        let mut names = permit.node().namespace_names(&of);
        names.retain(|_, name| permit.caller().may(Right::Observe, Target::SomeQueue(name)).is_ok());
        Names(names)
    }

    fn name(&self, namespace: NamespaceId) -> String {
        self.0.get(&namespace).cloned().unwrap_or_else(|| format!("#{}", namespace.0))
    }

    fn shown(&self, one: &InDoubt) -> Transaction {
        let transaction = one.id().to_string();
        let coordinator = self.name(one.id().coordinator);
        match one {
            InDoubt::Prepared(view) => Transaction {
                transaction,
                state: Word(State::Prepared),
                coordinator,
                parts: Vec::new(),
                since_at_ms: view.prepared_at_us / 1_000,
                undecided_until_ms: Some(view.until_us / 1_000),
                operation_count: view.operations.into(),
                operations: None,
            },
            InDoubt::Decided(view) => Transaction {
                transaction,
                state: Word(State::Decided),
                coordinator,
                parts: view.participants.iter().map(|(namespace, _)| self.name(*namespace)).collect(),
                since_at_ms: view.decided_at_us / 1_000,
                undecided_until_ms: None,
                operation_count: 0,
                operations: None,
            },
        }
    }
}

/// The transactions that are in doubt in a namespace, by id.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "InDoubtListRequest")]
pub struct InDoubtList {
    /// `next` of the page before.
    after: Option<String>,
    /// Most transactions of the page.
    limit: Option<PageSize>,
}

/// A page of transactions that are in doubt.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "InDoubtList", example = json!({"transactions": [example()]}))]
pub struct Transactions {
    /// By id.
    transactions: Vec<Transaction>,
    /// Id after which the next page begins; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Unary for InDoubtList {
    type Answer = Transactions;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Transactions>, CallError> {
        let after = given(self.after.as_deref()).map(str::parse::<TransactionId>).transpose()?;
        let size = page_size(self.limit);
        let found = permit.node().in_doubt(permit.namespace_id()?, after, size + 1).await?;
        let names = Names::of(&found, permit);
        let mut transactions: Vec<_> = found.iter().map(|one| names.shown(one)).collect();
        let next = cut_page(&mut transactions, size, |one| &one.transaction);
        Ok(Transactions { transactions, next }.into())
    }
}

/// A transaction that is in doubt, to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "InDoubtShowRequest")]
pub struct InDoubtShow {}

impl Unary for InDoubtShow {
    type Answer = Shown<Transaction>;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Shown<Transaction>>, CallError> {
        let found = permit.node().in_doubt_shown(permit.namespace_id()?, permit.name().parse()?).await?;
        let (found, operations) = found.ok_or_else(|| not_in_doubt(permit))?;
        let shown = Names::of(std::slice::from_ref(&found), permit).shown(&found);
        Ok(Shown(Transaction { operations: Some(staged(operations)), ..shown }).into())
    }
}

fn staged(operations: Vec<OperationView>) -> Vec<StagedOperation> {
    operations.into_iter().map(StagedOperation::from).collect()
}

/// A decision by an operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Force {
    Commit,
    Abort,
}

/// The end of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Committed,
    Aborted,
}

/// A transaction that is in doubt, to finish.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "InDoubtResolveRequest", example = json!({}), example = json!({"force": "abort"}))]
pub struct Resolve {
    /// Finishes the prepared part of this namespace in this way if the shard that decides does not answer.
    /// The other parts may be finished otherwise: the transaction is done by halves then. Left out, it is
    /// finished only by the decision.
    force: Option<Word<Force>>,
}

/// The end of a transaction that was in doubt.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "InDoubtResolved", example = json!({"outcome": "committed", "forced": false}))]
pub struct Resolved {
    /// The outcome.
    outcome: Word<Outcome>,
    /// True if the decision is not known, and the part was finished as forced.
    forced: bool,
}

impl Unary for Resolve {
    type Answer = Resolved;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Resolved>, CallError> {
        let (namespace, id) = (permit.namespace_id()?, permit.name().parse()?);
        let force = self.force.map(|force| force.0 == Force::Commit);
        let resolved = permit.node().resolve_in_doubt(namespace, id, force).await;
        let (commit, forced) = resolved.map_err(|refused| not_resolved(refused, permit))?;
        let outcome = if commit { Outcome::Committed } else { Outcome::Aborted };
        let answer = Resolved { outcome: Word(outcome), forced };
        Ok(match (forced, commit) {
            (true, true) => Done::named(answer, How::Done, "forced-commit".to_owned()),
            (true, false) => Done::named(answer, How::Done, "forced-abort".to_owned()),
            (false, _) => answer.into(),
        })
    }
}

fn not_resolved(refused: NotResolved, permit: &Permit<'_>) -> CallError {
    let name = permit.name();
    let wrong_state = |decision: &str, what: &str| {
        CallError::new("wrong_state", format!("transaction {name} {what}")).with(|details| {
            details.text("transaction", name);
            details.text("decision", decision);
        })
    };
    match refused {
        NotResolved::NotInDoubt => not_in_doubt(permit),
        NotResolved::Failed(error) => error.into(),
        NotResolved::TooEarly => {
            let what = "may still be committed by whoever has made it: that is over within ten seconds";
            wrong_state("open", what)
        }
        NotResolved::Decided(true) => {
            wrong_state("committed", "is committed: it cannot be aborted, resolve it without force")
        }
        NotResolved::Decided(false) => {
            wrong_state("aborted", "is aborted: it cannot be committed, resolve it without force")
        }
        NotResolved::Silent => wrong_state(
            "unknown",
            "is not resolved, since a shard that it takes for that does not answer: bring its nodes back. A \
             prepared part whose coordinator is lost for good can be committed or aborted by force",
        ),
    }
}

fn not_in_doubt(permit: &Permit<'_>) -> CallError {
    let message = format!(
        "transaction {} is not in doubt in this namespace: it is finished, or was never prepared here",
        permit.name()
    );
    CallError::new("transaction_not_found", message)
        .with(|details| details.text("transaction", permit.name()))
}

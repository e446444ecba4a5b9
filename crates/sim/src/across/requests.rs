//! Requests for transactions over several namespaces: their operations, what was answered, and what the
//! accounts have to show in the end.

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::Engine;
use sluice_engine::command::Deliver;
use sluice_engine::documents::DocumentCondition;
use sluice_engine::id::{BlobRef, NamespaceId};
use sluice_engine::item::SendOptions;
use sluice_node::{Committed, RefusedPart};

use crate::model::ensure;
use crate::rng::Rng;
use crate::workload::{DocumentOp, Item, Op, QUEUES, Relations, TransactionOp};

/// Accounts of each namespace.
pub(crate) const ACCOUNTS: [&str; 4] = ["account/1", "account/2", "account/3", "account/4"];
/// Largest sum that a part moves.
const MOVED_MAX: u64 = 100;

/// A namespace and its shard.
pub(crate) type Place = (NamespaceId, u32);

/// An account of a namespace.
type Name = (NamespaceId, &'static str);

/// The content of an account.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Account {
    pub(crate) balance: i64,
    /// Numbers of the requests that have changed it.
    pub(crate) marks: Vec<u64>,
}

impl Account {
    fn parse(content: &[u8]) -> Option<Account> {
        let text = std::str::from_utf8(content).ok()?;
        let (balance, marks) = text.split_once(':')?;
        let marks = marks.split_terminator(',').map(|mark| mark.parse().ok()).collect::<Option<_>>()?;
        Some(Account { balance: balance.parse().ok()?, marks })
    }

    fn content(&self) -> Vec<u8> {
        let marks: String = self.marks.iter().map(|mark| format!("{mark},")).collect();
        format!("{}:{marks}", self.balance).into_bytes()
    }
}

/// An account as an engine has it, with its version; 0: there is none. `read` gives the content of a blob.
pub(crate) fn look(
    engine: &Engine,
    (namespace, key): Name,
    read: impl FnOnce(BlobRef) -> Option<Vec<u8>>,
) -> Result<(u64, Account), String> {
    let Some(view) = engine.document(namespace, key) else { return Ok((0, Account::default())) };
    let account = read(view.blob).and_then(|content| Account::parse(&content));
    let account = account.ok_or_else(|| format!("{key} of {namespace:?} cannot be read"))?;
    Ok((view.version.version, account))
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) number: u64,
    /// Namespaces with their shards, that of the coordinator first.
    pub(crate) places: Vec<Place>,
    /// The operations of each, in the same order.
    pub(crate) parts: Vec<TransactionOp>,
    accounts: Vec<Name>,
}

impl Request {
    /// True if a repeat is known by its idempotency key.
    pub(crate) fn has_key(&self) -> bool {
        !self.parts[0].key.is_empty()
    }
}

/// Answers to the calls of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    calls: u32,
    committed: bool,
    /// Number of answers that nothing is done.
    refused: u32,
}

/// All requests of a run.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    known: BTreeMap<u64, (Request, Answers)>,
    /// Numbers of requests with a key that may be repeated.
    repeatable: Vec<u64>,
}

impl Requests {
    /// Draws a request over these namespaces, of which there are at least two; or repeats one. `account`
    /// gives what its clients know of an account.
    pub(crate) fn draw(
        &mut self,
        mut places: Vec<Place>,
        rng: &mut Rng,
        mut account: impl FnMut(&Place, &'static str) -> Result<(u64, Account), String>,
    ) -> Result<Request, String> {
        if !self.repeatable.is_empty() && rng.chance(1, 6) {
            let number = *rng.pick(&self.repeatable);
            if let Some((request, answers)) = self.known.get_mut(&number) {
                answers.calls += 1;
                return Ok(request.clone());
            }
        }
        let count = if rng.chance(2, 3) { 2 } else { places.len() };
        while places.len() > count {
            places.swap_remove(rng.index(places.len()));
        }
        let first = rng.index(count);
        places.rotate_left(first);
        let number = self.known.len() as u64 + 1;
        let key = if rng.chance(1, 3) { format!("across-{number}").into_bytes() } else { Vec::new() };
        let (mut parts, mut accounts, mut sum) = (Vec::new(), Vec::new(), 0);
        for (at, place) in places.iter().enumerate() {
            let moved =
                if at + 1 == count { -sum } else { rng.below(2 * MOVED_MAX) as i64 - MOVED_MAX as i64 };
            sum += moved;
            let name = *rng.pick(&ACCOUNTS);
            let (version, mut account) = account(place, name)?;
            account.balance += moved;
            account.marks.push(number);
            accounts.push((place.0, name));
            let put = put(place.0, name, version, account.content());
            let mut operations = vec![put];
            if rng.chance(1, 2) {
                let queue: &str = rng.pick::<&str>(&QUEUES);
                operations.push(send(place.0, queue, number));
            }
            parts.push(TransactionOp { namespace: place.0, key: key.clone(), digest: number, operations });
        }
        if !key.is_empty() {
            self.repeatable.push(number);
        }
        let request = Request { number, places, parts, accounts };
        self.known.insert(number, (request.clone(), Answers { calls: 1, ..Answers::default() }));
        Ok(request)
    }

    /// Notes the answer to a call.
    pub(crate) fn answered(&mut self, number: u64, answer: &Result<Vec<Committed>, RefusedPart>) {
        let Some((_, answers)) = self.known.get_mut(&number) else { return };
        match answer {
            Ok(_) => answers.committed = true,
            Err(refused) => {
                answers.refused += u32::from(refused.refused.error.code() != "outcome_unknown");
            }
        }
    }

    /// Number of requests that are known to be committed, and to be refused.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let count = |is: fn(&Answers) -> bool| self.known.values().filter(|(_, answers)| is(answers)).count();
        (count(|it| it.committed), count(|it| it.refused == it.calls))
    }

    /// Checks what the accounts show when nothing is prepared any more: each request is done in all of its
    /// namespaces or in none, as was answered, and no money has come or gone. Returns the number of those
    /// that are done.
    pub(crate) fn judge(
        &self,
        mut account: impl FnMut(&Name) -> Result<Account, String>,
    ) -> Result<usize, String> {
        let names: BTreeSet<Name> =
            self.known.values().flat_map(|(request, _)| request.accounts.iter().copied()).collect();
        let mut accounts = BTreeMap::new();
        for name in names {
            accounts.insert(name, account(&name)?);
        }
        let mut count = 0;
        for (request, answers) in self.known.values() {
            let number = request.number;
            let times = |name: &Name| accounts[name].marks.iter().filter(|mark| **mark == number).count();
            let done: Vec<usize> = request.accounts.iter().map(times).collect();
            let (all, none) = (done.iter().all(|it| *it == 1), done.iter().all(|it| *it == 0));
            ensure!(all || none, "request {number} is done {done:?} times in {:?}", request.accounts);
            ensure!(all || !answers.committed, "request {number} was answered as done, and is not");
            let is_refused = answers.refused == answers.calls;
            ensure!(none || !is_refused, "request {number} was answered as refused, and is done");
            count += usize::from(all);
        }
        let sum: i64 = accounts.values().map(|account| account.balance).sum();
        ensure!(sum == 0, "the accounts have {sum} together: {accounts:?}");
        Ok(count)
    }
}

/// A write of an account over the version that its client has seen.
pub(crate) fn put(namespace: NamespaceId, key: &'static str, version: u64, content: Vec<u8>) -> Op {
    Op::Document(DocumentOp::Put {
        namespace,
        key,
        when: DocumentCondition { version: Some(version), ..DocumentCondition::default() },
        ttl_ms: Some(0),
        history: None,
        request: 0,
        content,
        terms: Vec::new(),
    })
}

/// A write that leaves an account as it is.
pub(crate) fn touch(namespace: NamespaceId, key: &'static str, (version, account): &(u64, Account)) -> Op {
    put(namespace, key, *version, account.content())
}

fn send(namespace: NamespaceId, queue: &str, number: u64) -> Op {
    let item = Item {
        payload: format!("across:{number}:{}", namespace.0).into_bytes(),
        content_type: "",
        headers: Vec::new(),
        tags: Vec::new(),
        priority: 0,
        deliver: Deliver::Now,
        max_attempts: 0,
        backoff: None,
        options: SendOptions::default(),
        relations: Relations::default(),
    };
    Op::Send { namespace, queue: queue.to_owned(), key: Vec::new(), digest: 0, items: vec![item] }
}

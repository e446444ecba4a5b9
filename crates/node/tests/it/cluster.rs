//! Three nodes with their threads in one process, between which messages are handed over in memory.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sluice_engine::Error;
use sluice_engine::command::SendItem;
use sluice_engine::id::{EPOCH_SHIFT, NamespaceId};
use sluice_engine::settings::Quotas;
use sluice_node::{
    Asking, ClusterOptions, Durability, Link, Node, NotChanged, Options, Recovery, StartError, Transport,
};
use sluice_replica::{BootId, Change, Envelope, Members, NodeId, Refused, StateMessage};

use crate::in_doubt::{finish, prepare};
use crate::support::{options, payloads, receive, send, sending};

/// Nodes by their numbers, from 1.
pub type Nodes = Arc<[OnceLock<Node>; 3]>;

#[derive(Debug)]
pub struct InMemory(pub Nodes);

impl Transport for InMemory {
    fn send(&self, shard: u32, envelope: Envelope) {
        let place = envelope.message.to.get() as usize - 1;
        if let Some(node) = self.0[place].get() {
            // A shard that is not there changes nothing.
            node.deliver(shard as u16 + 9, envelope.clone());
            node.deliver(shard as u16, envelope);
        }
    }

    fn send_state(&self, shard: u32, message: StateMessage) {
        let place = message.to.get() as usize - 1;
        if let Some(node) = self.0[place].get() {
            node.deliver_state(shard as u16, message);
        }
    }

    fn ask(&self, node: NodeId, question: Bytes, within: Duration) -> Asking<'_> {
        Box::pin(async move {
            let node = self.0[node.get() as usize - 1].get()?;
            tokio::time::timeout(within, node.answer(&question)).await.ok()?
        })
    }

    fn nodes(&self) -> Vec<NodeId> {
        (1..=3).filter_map(NodeId::new).collect()
    }

    fn link(&self, _node: NodeId) -> Link {
        Link::default()
    }
}

pub fn cluster(number: u64, nodes: &Nodes) -> ClusterOptions {
    let ids = [1, 2, 3].map(|number| NodeId::new(number).unwrap());
    let members = Members::new(ids.to_vec(), Vec::new(), 3).unwrap();
    let id = NodeId::new(number).unwrap();
    let transport = Arc::new(InMemory(Arc::clone(nodes)));
    ClusterOptions { id, members, is_new: false, kept_bytes: 1 << 30, boot: BootId([1; 16]), transport }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (entry, from) = entry.map(|entry| (to.join(entry.file_name()), entry.path())).unwrap();
        if from.is_dir() {
            copy(&from, &entry);
        } else {
            std::fs::copy(from, entry).unwrap();
        }
    }
}

/// The place of the node that leads shard 0.
pub fn leader(nodes: &Nodes) -> usize {
    leader_of(nodes, 0)
}

/// The place of the node that leads a shard.
pub fn leader_of(nodes: &Nodes, shard: usize) -> usize {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        let named = nodes.iter().filter_map(|node| node.get()?.leaders()[shard].elsewhere());
        let named: Vec<u64> = named.collect();
        if named.len() == 2 && named[0] == named[1] {
            return named[0] as usize - 1;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no node leads");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_agree_on_one_log_whatever_the_durability() {
    agree(Durability::Always).await;
    agree(Durability::Os).await;
}

/// Three nodes of a cluster, after one of them was alone and `alone` was done to it.
pub async fn three(dir: &Path, settings: Options, alone: impl AsyncFnOnce(&Node)) -> Nodes {
    let first = Node::start(Options { data_dir: Some(dir.join("1")), ..settings.clone() }).unwrap();
    alone(&first).await;
    first.shutdown(Duration::from_secs(10)).await.unwrap();
    three_on(dir, settings)
}

/// Three nodes of a cluster on the data of one that was alone, which is in the folder `1`.
pub fn three_on(dir: &Path, settings: Options) -> Nodes {
    three_through(dir, settings, cluster)
}

/// As [`three_on`], with the ways between them that each node is given.
pub fn three_through(
    dir: &Path,
    settings: Options,
    cluster: impl Fn(u64, &Nodes) -> ClusterOptions,
) -> Nodes {
    let data = |number: u64| dir.join(number.to_string());
    let settings = |number: u64| Options { data_dir: Some(data(number)), ..settings.clone() };
    (2..=3).for_each(|number| copy(&data(1), &data(number)));
    let nodes: Nodes = Arc::default();
    for number in 1..=3 {
        let node = Node::start_in_cluster(settings(number), cluster(number, &nodes));
        nodes[number as usize - 1].set(node.unwrap()).unwrap();
    }
    nodes
}

pub async fn stop(nodes: &Nodes) {
    // The threads of a node end with it, those between nodes among them.
    for node in nodes.iter().filter_map(OnceLock::get) {
        node.shutdown(Duration::from_secs(10)).await.unwrap();
    }
}

async fn agree(durability: Durability) {
    let dir = tempfile::tempdir().unwrap();
    let settings = Options { durability, ..options(None) };
    let nodes = three(dir.path(), settings, async |alone| drop(send(alone, "jobs", &[b"alone"]).await)).await;
    let leads = leader(&nodes);
    let at = |place: usize| nodes[place % 3].get().unwrap();
    send(at(leads), "jobs", &[b"together"]).await;
    let items = [SendItem { payload: b"elsewhere", ..SendItem::default() }];
    let refused = at(leads + 1).send(&sending(NamespaceId::DEFAULT, "jobs", &items)).await;
    assert_eq!(refused, Err(Error::NotLeader { leader: leads as u64 + 1 }));
    let taken = receive(at(leads), "jobs", 10, 0).await.unwrap();
    assert_eq!(payloads(&taken), [&b"alone"[..], b"together"]);
    let former = at(leads).leaders()[0].clone();
    let watching = tokio::task::spawn_blocking(move || {
        while former.is_here() {
            if former.is_unsettled() && former.is_here() {
                return true;
            }
            std::thread::yield_now();
        }
        false
    });
    let began = Instant::now();
    at(leads).hand_over(Duration::from_secs(10)).await;
    assert!(watching.await.unwrap(), "it tells that it hands over");
    let next = leader(&nodes);
    assert!(next != leads && began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    send(at(next), "jobs", &[b"afterwards"]).await;
    stop(&nodes).await;
}

/// Options of a node of a cluster that began with the first one.
fn grown(number: u64, nodes: &Nodes) -> ClusterOptions {
    let first = Members::new(vec![NodeId::new(1).unwrap()], Vec::new(), 1);
    ClusterOptions { members: first.unwrap(), ..cluster(number, nodes) }
}

/// Asks for a change until it is in force, or refused for good: one ends after the other, and a learner has
/// to catch up first.
async fn change(node: &Node, change: Change) -> Result<(), NotChanged> {
    let began = Instant::now();
    loop {
        match node.change_members(0, change).await {
            Err(NotChanged::Refused(Refused::ChangeUnderWay | Refused::Behind { .. } | Refused::NotYet))
                if began.elapsed() < Duration::from_secs(10) => {}
            decided => return decided,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_one_grows_and_lets_its_first_node_go() {
    let dir = tempfile::tempdir().unwrap();
    let data = |number: u64| dir.path().join(number.to_string());
    let alone = Node::start(options(Some(&data(1)))).unwrap();
    assert_eq!(alone.members(0).await, None);
    let node = |number| NodeId::new(number).unwrap();
    assert_eq!(alone.change_members(0, Change::Add(node(2))).await, Err(NotChanged::NoCluster));
    alone.shutdown(Duration::from_secs(10)).await.unwrap();
    (2..=3).for_each(|number| copy(&data(1), &data(number)));
    let nodes: Nodes = Arc::default();
    let start = |number| Node::start_in_cluster(options(Some(&data(number))), grown(number, &nodes)).unwrap();
    (1..=3).for_each(|number| nodes[number as usize - 1].set(start(number)).unwrap());
    let at = |place: usize| nodes[place].get().unwrap();
    await_leader(at(0)).await;
    send(at(0), "jobs", &[b"alone"]).await;
    for number in 2..=3 {
        change(at(0), Change::Add(node(number))).await.unwrap();
        change(at(0), Change::Promote(node(number))).await.unwrap();
    }
    let shown = at(0).members(0).await.unwrap();
    assert_eq!(shown.members, Members::new([1, 2, 3].map(node).to_vec(), Vec::new(), 3).unwrap());
    assert_eq!(shown.followers.iter().map(|follower| follower.node).collect::<Vec<_>>(), [2, 3].map(node));
    let refused = change(at(0), Change::Remove(node(1))).await;
    assert_eq!(refused, Err(NotChanged::Refused(Refused::Leads)));
    at(0).hand_over(Duration::from_secs(10)).await;
    let next = leader(&nodes);
    change(at(next), Change::Remove(node(1))).await.unwrap();
    at(0).shutdown(Duration::from_secs(10)).await.unwrap();
    send(at(next), "jobs", &[b"without it"]).await;
    let other = 3 - next;
    at(other).shutdown(Duration::from_secs(10)).await.unwrap();
    // Members that its owner names do not count any more.
    let again = start(other as u64 + 1);
    let shown = again.members(0).await.unwrap();
    assert_eq!(shown.members, Members::new([2, 3].map(node).to_vec(), Vec::new(), 3).unwrap());
    assert!(shown.followers.is_empty());
    at(next).shutdown(Duration::from_secs(10)).await.unwrap();
    again.shutdown(Duration::from_secs(10)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_node_has_of_a_lost_cluster_goes_on_as_a_cluster_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let data = |number: u64| dir.path().join(number.to_string());
    let alone = Node::start(options(Some(&data(1)))).unwrap();
    let before = send(&alone, "jobs", &[b"alone"]).await;
    alone.shutdown(Duration::from_secs(10)).await.unwrap();
    (2..=3).for_each(|number| copy(&data(1), &data(number)));
    let nodes: Nodes = Arc::default();
    for number in 1..=3 {
        let node = Node::start_in_cluster(options(Some(&data(number))), cluster(number, &nodes));
        nodes[number as usize - 1].set(node.unwrap()).unwrap();
    }
    send(nodes[leader(&nodes)].get().unwrap(), "jobs", &[b"together"]).await;
    for node in nodes.iter() {
        node.get().unwrap().shutdown(Duration::from_secs(10)).await.unwrap();
    }
    let of_two = options(Some(&data(2)));
    let recovery = Recovery::open(&of_two).unwrap();
    assert!(matches!(Recovery::open(&of_two), Err(StartError::InUse(_))));
    let (number, ends) = (recovery.next_number().unwrap(), recovery.ends());
    assert_eq!(number, NodeId::new(4).unwrap());
    assert_eq!(ends.iter().map(|end| end.members.voters().len()).collect::<Vec<_>>(), [3]);
    recovery.make_sole_voter(number).unwrap();
    // The same again changes nothing, and a number that was given before is refused.
    Recovery::open(&of_two).unwrap().make_sole_voter(number).unwrap();
    let again = Recovery::open(&of_two).unwrap();
    assert_eq!(again.ends()[0].members.voters(), [number]);
    assert_eq!((again.ends()[0].index, again.ends()[0].term), (ends[0].index, ends[0].term));
    assert!(again.make_sole_voter(NodeId::new(3).unwrap()).is_err());
    let refused = Node::start_in_cluster(options(Some(&data(2))), cluster(2, &nodes)).unwrap_err();
    assert!(refused.to_string().contains("may have forgotten"), "{refused}");
    let again = Node::start_in_cluster(options(Some(&data(2))), cluster(4, &nodes)).unwrap();
    await_leader(&again).await;
    let after = send(&again, "jobs", &[b"afterwards"]).await;
    let epochs = [before, after].map(|sent| sent.first.sequence >> EPOCH_SHIFT);
    assert!(epochs[1] >= epochs[0] + (1 << 28), "{epochs:?}");
    let taken = receive(&again, "jobs", 10, 0).await.unwrap();
    assert_eq!(payloads(&taken), [&b"alone"[..], b"together", b"afterwards"]);
    again.shutdown(Duration::from_secs(10)).await.unwrap();
}

/// Waits until a node leads its shard.
async fn await_leader(node: &Node) {
    let began = Instant::now();
    while !node.leaders()[0].is_here() {
        assert!(began.elapsed() < Duration::from_secs(20), "it does not lead");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn a_node_of_a_cluster_has_a_data_directory() {
    let refused = Node::start_in_cluster(options(None), cluster(1, &Nodes::default())).unwrap_err();
    assert!(matches!(refused, StartError::Refused(_)), "{refused}");
}

#[test]
fn a_node_of_a_cluster_does_not_begin_without_data_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let refused = Node::start_in_cluster(options(Some(&data)), cluster(1, &Nodes::default())).unwrap_err();
    assert!(matches!(&refused, StartError::Refused(why) if why.contains("copy")), "{refused}");
    assert!(!data.exists());
}

/// Three nodes with two shards, of which the first leads shard 0 and the second shard 1.
async fn two_leaders(dir: &Path) -> Nodes {
    let settings = Options { shards: 2, ..options(None) };
    let nodes = three(dir, settings, async |_| ()).await;
    for shard in 0..2 {
        while leader_of(&nodes, shard) != shard {
            // Any node is asked, and asks the leader.
            nodes[2].get().unwrap().transfer(shard as u32, shard as u64 + 1).await.unwrap();
        }
    }
    nodes
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_are_changed_while_two_nodes_lead_the_two_shards() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = two_leaders(dir.path()).await;
    let [first, second] = [0, 1].map(|place| nodes[place].get().unwrap());
    let within = Duration::from_secs(20);
    let change = async {
        for name in ["kept", "gone", "empty"] {
            let made = first.namespace_create(name, Some(1), Quotas::default()).await.unwrap();
            assert_eq!((made.shard, made.queues), (1, 0));
            // Whoever was told of it can use it at once.
            let items = [SendItem { payload: b"x", ..SendItem::default() }];
            let namespace = second.namespace_id(name).unwrap();
            second.send(&sending(namespace, "jobs", &items)).await.unwrap();
        }
        let limit = |_| Quotas { messages: 7, ..Quotas::default() };
        let set = first.namespace_set("kept", None, limit).await.unwrap();
        assert_eq!(set.quotas.messages, 7);
        assert_eq!(second.namespace("kept").await.unwrap().quotas.messages, 7);
        let refused = first.namespace_delete("empty", false).await;
        assert!(matches!(refused, Err(Error::NamespaceNotEmpty { queues: 1, .. })), "{refused:?}");
        second.queue_delete(second.namespace_id("empty").unwrap(), "jobs").await.unwrap();
        first.namespace_delete("empty", false).await.unwrap();
        first.namespace_delete("gone", true).await.unwrap();
        for gone in ["gone", "empty"] {
            assert!(second.namespace(gone).await.is_err() && first.namespace_id(gone).is_err(), "{gone}");
        }
        let again = first.namespace_create("gone", Some(1), Quotas::default()).await.unwrap();
        assert_eq!(again.messages, 0);
    };
    tokio::time::timeout(within, change).await.expect("no change waits for ever");
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_with_a_prepared_part_is_in_doubt_for_who_deletes_it_from_another_node() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = two_leaders(dir.path()).await;
    let [first, second] = [0, 1].map(|place| nodes[place].get().unwrap());
    first.namespace_create("other", Some(1), Quotas::default()).await.unwrap();
    let other = second.namespace_id("other").unwrap();
    prepare(second, other).await;
    let began = Instant::now();
    let refused = first.namespace_delete("other", false).await;
    assert_eq!(refused, Err(Error::InDoubt { what: "namespace \"other\"".into() }));
    assert!(began.elapsed() < Duration::from_secs(4), "asked once: {:?}", began.elapsed());
    finish(second, other, false).await;
    first.namespace_delete("other", false).await.unwrap();
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_of_a_namespace_that_is_led_elsewhere_are_those_of_its_leader() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = two_leaders(dir.path()).await;
    let [first, second] = [0, 1].map(|place| nodes[place].get().unwrap());
    first.namespace_create("shop", Some(1), Quotas::default()).await.unwrap();
    let namespace = second.namespace_id("shop").unwrap();
    let shop = async |node: &Node| {
        let all = node.namespaces().await.unwrap();
        all.into_iter().find(|view| view.name == "shop").unwrap().messages
    };
    let items = [SendItem { payload: b"x", ..SendItem::default() }];
    for sent in 1..=100 {
        second.send(&sending(namespace, "jobs", &items)).await.unwrap();
        assert_eq!(shop(first).await, sent, "what was acknowledged is there");
    }
    assert!(shop(&first.stale()).await <= 100);
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_change_of_namespaces_has_left_is_finished_by_the_next_leader() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = two_leaders(dir.path()).await;
    let [first, second, third] = [0, 1, 2].map(|place| nodes[place].get().unwrap());
    first.namespace_create("kept", Some(1), Quotas::default()).await.unwrap();
    // Nobody leads shard 1 after this: a change is begun, and nobody follows.
    second.shutdown(Duration::from_secs(10)).await.unwrap();
    let created = first.namespace_create("late", Some(1), Quotas::default());
    let deleted = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        first.namespace_delete("kept", true).await
    };
    let (created, deleted) = tokio::join!(created, deleted);
    let is_unknown = |error: &Error| matches!(error, Error::OutcomeUnknown {});
    assert!(created.as_ref().err().is_none_or(is_unknown), "{created:?}");
    assert!(deleted.as_ref().err().is_none_or(is_unknown), "{deleted:?}");
    let keeps = [first, third].map(|node| {
        let node = node.clone();
        tokio::spawn(async move { node.keep_placement().await })
    });
    let began = Instant::now();
    let in_line = async |node: &Node| {
        let at = node.stale();
        at.namespace("late").await.is_ok() && at.namespace("kept").await.is_err()
    };
    while !(in_line(first).await && in_line(third).await) {
        assert!(began.elapsed() < Duration::from_secs(20), "the next leader follows shard 0");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop(&nodes).await;
    keeps.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Number of messages of the default namespace, as a node has its state.
async fn messages(node: &Node) -> u64 {
    let states = node.metrics().await.shards[0].counters.states;
    states.iter().sum()
}

/// Length of a payload of which a state is full, in bytes.
const PAYLOAD_BYTES: usize = 64 << 10;
/// Number of messages of a send.
const BATCH: usize = 16;
/// Number of sends that a node misses: more than one segment of the log.
const SENDS: usize = 100;

/// `cargo test -p sluice-node --test it -- --nocapture catches_up` tells how fast.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_away_catches_up_by_a_state() {
    let dir = tempfile::tempdir().unwrap();
    let data = |number: u64| dir.path().join(number.to_string());
    let alone = Node::start(options(Some(&data(1)))).unwrap();
    alone.shutdown(Duration::from_secs(10)).await.unwrap();
    (2..=3).for_each(|number| copy(&data(1), &data(number)));
    let nodes: Nodes = Arc::default();
    let start = |number: u64| {
        let cluster = ClusterOptions { kept_bytes: 1 << 20, ..cluster(number, &nodes) };
        let node = Node::start_in_cluster(options(Some(&data(number))), cluster);
        nodes[number as usize - 1].set(node.unwrap()).unwrap();
    };
    (1..=2).for_each(start);
    let leading = || nodes.iter().flat_map(OnceLock::get).find(|node| node.leaders()[0].is_here());
    let began = Instant::now();
    while leading().is_none() {
        assert!(began.elapsed() < Duration::from_secs(20), "no node leads");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let leader = leading().unwrap();
    let payload = vec![b'x'; PAYLOAD_BYTES];
    for _ in 0..SENDS {
        send(leader, "jobs", &[payload.as_slice(); BATCH]).await;
    }
    let (began, mut slowest) = (Instant::now(), Duration::ZERO);
    start(3);
    let third = nodes[2].get().unwrap();
    while messages(third).await < messages(leader).await {
        let sent = Instant::now();
        send(leader, "jobs", &[&payload]).await;
        slowest = slowest.max(sent.elapsed());
        assert!(began.elapsed() < Duration::from_secs(120), "it does not catch up");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (bytes, took) = (PAYLOAD_BYTES * BATCH * SENDS, began.elapsed());
    let rate = bytes as f64 / took.as_secs_f64() / 1e6;
    println!("{} MB in {took:.1?}, {rate:.0} MB/s; slowest send {slowest:.1?}", bytes / 1_000_000);
    for node in nodes.iter().flat_map(OnceLock::get) {
        node.shutdown(Duration::from_secs(10)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_journal_failed_may_have_forgotten_what_it_had_not_synced() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Options { durability: Durability::Os, ..options(None) };
    let nodes = three(dir.path(), settings.clone(), async |_| {}).await;
    leader(&nodes);
    stop(&nodes).await;
    let data = dir.path().join("3");
    let settings = Options { data_dir: Some(data.clone()), ..settings };
    let forgets = async || {
        let node = Node::start_in_cluster(settings.clone(), cluster(3, &Arc::default())).unwrap();
        node.shutdown(Duration::from_secs(10)).await.unwrap();
        node.has_forgotten()
    };
    assert!(!forgets().await, "it was stopped in order");
    std::fs::write(data.join("failed"), "").unwrap();
    assert!(forgets().await && !data.join("failed").exists());
    assert!(forgets().await, "the journals keep that in mind");
}

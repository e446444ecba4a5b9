//! Indexes of documents: an index that is built finds every document with a term that is looked for, whoever
//! has told its terms and when; and no other, once nothing is left to be told.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::Driver;
use sluice_engine::command::{DocumentDelete, DocumentPut};
use sluice_engine::documents::DocumentCondition;
use sluice_engine::documents::DocumentTerms;
use sluice_engine::id::NamespaceId;
use sluice_engine::indexes::{FilledDocument, IndexFill, IndexLookup, IndexView, IndexWork};
use sluice_engine::limits::NAMESPACE_INDEXES_MAX;
use sluice_engine::settings::Quotas;
use sluice_engine::{BEHAVIOUR_VERSION, Command, Engine, Error, ReceiptKey};

const START_US: u64 = 1_700_000_000_000_000;
const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
const POINTERS: [&str; 2] = ["/a", "/b"];
const NAMES: [&str; 3] = ["x", "y", "z"];

/// A document: the terms at each pointer, and when it is over.
struct Document {
    terms: [BTreeSet<u128>; 2],
    until_us: u64,
}

struct Run {
    driver: Driver,
    now_us: u64,
    random: u64,
    documents: BTreeMap<String, Document>,
    /// Work that was taken, and is done later.
    taken: Vec<(IndexWork, Vec<[BTreeSet<u128>; 2]>)>,
    /// Numbers of all indexes that there were.
    numbers: Vec<u64>,
}

fn engine() -> Driver {
    let mut driver = Driver::new();
    driver.apply(START_US, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
    driver.apply(START_US, &Command::ReceiptKey(ReceiptKey([7; 16])));
    driver
}

impl Run {
    fn new(seed: u64) -> Run {
        let (documents, taken, numbers) = (BTreeMap::new(), Vec::new(), Vec::new());
        Run { driver: engine(), now_us: START_US, random: seed, documents, taken, numbers }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33) % limit
    }

    fn apply(&mut self, command: &Command<'_>) {
        command.check(&sluice_engine::limits::Limits::default()).unwrap();
        self.driver.apply(self.now_us, command);
        assert_eq!(self.driver.out.error, None, "{command:?}");
    }

    fn indexes(&self) -> Vec<IndexView> {
        self.driver.engine.document_indexes(NAMESPACE)
    }

    fn step(&mut self) {
        match self.below(20) {
            0..8 => self.put(),
            8 | 9 => self.delete(),
            10 | 11 => {
                let (name, pointer) = (self.below(3) as usize, self.below(2) as usize);
                let (name, pointer) = (NAMES[name], POINTERS[pointer]);
                self.apply(&Command::IndexPut { namespace: NAMESPACE, name, pointer });
                self.numbers.extend(self.indexes().iter().map(|index| index.number));
            }
            12 => {
                let name = NAMES[self.below(3) as usize];
                let is_there = self.indexes().iter().any(|index| index.name == name);
                self.driver.apply(self.now_us, &Command::IndexDelete { namespace: NAMESPACE, name });
                let error = self.driver.out.error.as_ref().map(Error::code);
                assert_eq!(error, (!is_there).then_some("index_not_found"));
            }
            13 | 14 => self.take_work(),
            15 | 16 => {
                if !self.taken.is_empty() {
                    let at = self.below(self.taken.len() as u64) as usize;
                    let (work, terms) = self.taken.swap_remove(at);
                    self.fill(&work, &terms);
                }
            }
            17 => self.restart(),
            18 => {
                self.now_us += self.below(3_000_000);
                self.apply(&Command::Tick);
            }
            _ => self.apply(&Command::Tick),
        }
        self.forget_over();
        self.check(false);
    }

    fn put(&mut self) {
        let key = format!("k{}", self.below(12));
        let mut of = || (0..self.below(3)).map(|_| u128::from(self.below(6)) + 1).collect::<BTreeSet<u128>>();
        let terms = [of(), of()];
        let mut told = Vec::new();
        for index in self.indexes() {
            if self.below(3) > 0 {
                let at = POINTERS.iter().position(|pointer| *pointer == index.pointer).unwrap();
                told.push(DocumentTerms { index: index.number, terms: terms[at].iter().copied().collect() });
            }
        }
        if let Some(&index) = self.numbers.first().filter(|_| told.len() < 3) {
            let is_live = self.indexes().iter().any(|live| live.number == index);
            told.extend((!is_live).then(|| DocumentTerms { index, terms: vec![77] }));
        }
        let ttl_ms = [Some(0), Some(1_000), None][self.below(3) as usize];
        let put = DocumentPut {
            namespace: NAMESPACE,
            key: &key,
            when: DocumentCondition::default(),
            ttl_ms,
            history: Some(self.below(3) as u16),
            request: 0,
            content_type: "",
            attributes: &[],
            content: b"c",
            terms: &told,
        };
        self.apply(&Command::DocumentPut(put));
        let before = self.documents.get(&key).map_or(u64::MAX, |document| document.until_us);
        let until_us = match ttl_ms {
            None => before,
            Some(0) => u64::MAX,
            Some(ttl_ms) => self.now_us + ttl_ms * 1_000,
        };
        self.documents.insert(key, Document { terms, until_us });
    }

    fn delete(&mut self) {
        let key = format!("k{}", self.below(12));
        if self.documents.remove(&key).is_some() {
            let when = DocumentCondition::default();
            self.apply(&Command::DocumentDelete(DocumentDelete { namespace: NAMESPACE, key: &key, when }));
        }
    }

    fn forget_over(&mut self) {
        let now_us = self.now_us;
        self.documents.retain(|_, document| document.until_us > now_us);
    }

    fn take_work(&mut self) {
        let (most, at) = (self.below(4) as usize + 1, self.below(4) as usize);
        let behind = self.numbers.get(at).copied().unwrap_or(0);
        let Some(work) = self.driver.engine.index_work(behind, most) else { return };
        let of = |key: &String| self.documents.get(key).map_or_else(Default::default, |it| it.terms.clone());
        let terms = work.documents.iter().map(|view| of(&view.key)).collect();
        self.taken.push((work, terms));
    }

    fn fill(&mut self, work: &IndexWork, terms: &[[BTreeSet<u128>; 2]]) {
        let at = POINTERS.iter().position(|pointer| *pointer == work.pointer).unwrap();
        let filled = work.documents.iter().zip(terms).map(|(view, terms)| FilledDocument {
            key: &view.key,
            revision: view.version.revision,
            terms: terms[at].iter().copied().collect(),
        });
        let documents: Vec<FilledDocument<'_>> = filled.collect();
        self.apply(&Command::IndexFill(IndexFill {
            namespace: work.namespace,
            index: work.index,
            documents: &documents,
            until: work.until.as_deref(),
            is_last: work.is_last,
        }));
    }

    fn restored(&mut self) -> Engine {
        let mut bytes = Vec::new();
        self.driver.engine.snapshot_begin();
        while !self.driver.engine.snapshot_step(1_000, &mut bytes) {}
        let mut piece = Some(bytes);
        Engine::restore(&mut || piece.take()).unwrap()
    }

    fn restart(&mut self) {
        self.driver.engine = self.restored();
    }

    /// Compares lookups with the documents; `all_known`: no terms are left to be told.
    fn check(&mut self, all_known: bool) {
        self.driver.engine.recount().unwrap();
        let (first, more) = (u128::from(self.below(7)), u128::from(self.below(3)));
        let range = first..=first + more;
        for IndexView { number, pointer, is_built, .. } in self.indexes() {
            let ranges = std::slice::from_ref(&range);
            let lookup = IndexLookup { index: number, ranges, prefix: "", after: None };
            let found = self.driver.engine.indexed_documents(NAMESPACE, &lookup, 100);
            assert_eq!(found.is_some(), is_built);
            let Some(found) = found else { continue };
            let found: Vec<String> = found.into_iter().map(|view| view.key).collect();
            let at = POINTERS.iter().position(|other| *other == pointer).unwrap();
            let matching = |document: &Document| document.terms[at].iter().any(|term| range.contains(term));
            let matching = self.documents.iter().filter(|(_, document)| matching(document));
            let expected: Vec<String> = matching.map(|(key, _)| key.clone()).collect();
            assert!(found.is_sorted_by(|one, next| one < next));
            assert!(expected.iter().all(|key| found.contains(key)), "{range:?}: {found:?}, not {expected:?}");
            assert!(!all_known || found == expected, "{range:?}: {found:?}, not {expected:?}");
        }
    }

    fn finish(&mut self) {
        let mut rounds = 0;
        while self.driver.engine.index_work(0, 3).is_some() {
            self.take_work();
            let (work, terms) = self.taken.pop().unwrap();
            self.fill(&work, &terms);
            rounds += 1;
            assert!(rounds < 1_000, "the work does not end");
        }
        assert!(self.indexes().iter().all(|index| index.is_built));
        (0..20).for_each(|_| self.check(true));
    }
}

#[test]
fn lookups_find_what_the_documents_have() {
    for seed in 0..200 {
        let mut run = Run::new(seed);
        for _ in 0..150 {
            run.step();
        }
        run.finish();
    }
}

#[test]
fn deleted_indexes_and_namespaces_leave_nothing() {
    let mut run = Run::new(7);
    run.apply(&Command::NamespaceCreate { number: None, name: "n", shard: 0, quotas: Quotas::default() });
    let namespace = run.driver.engine.namespace_by_name("n").unwrap();
    for name in NAMES {
        run.apply(&Command::IndexPut { namespace, name, pointer: "/a" });
    }
    let numbers: Vec<u64> =
        run.driver.engine.document_indexes(namespace).iter().map(|index| index.number).collect();
    let when = DocumentCondition::default();
    for at in 0..2_000u32 {
        let terms: Vec<DocumentTerms> = numbers
            .iter()
            .map(|index| DocumentTerms { index: *index, terms: vec![at.into(), 9_999] })
            .collect();
        run.apply(&Command::DocumentPut(DocumentPut {
            namespace,
            key: &format!("k{at}"),
            when,
            ttl_ms: None,
            history: None,
            request: 0,
            content_type: "",
            attributes: &[],
            content: b"c",
            terms: &terms,
        }));
    }
    let found = |run: &Run, most| {
        let lookup = IndexLookup { index: numbers[1], ranges: &[9_999..=9_999], prefix: "", after: None };
        let found = run.driver.engine.indexed_documents(namespace, &lookup, most);
        found.map(|found| found.len())
    };
    assert_eq!((found(&run, 2_000), found(&run, 1_999)), (Some(2_000), None));
    run.apply(&Command::IndexDelete { namespace, name: "x" });
    let mut ticks = 0;
    while run.driver.engine.next_deadline().is_some_and(|due_us| due_us <= run.now_us) {
        run.restart();
        run.apply(&Command::Tick);
        run.driver.engine.recount().unwrap();
        ticks += 1;
    }
    assert!(ticks > 5, "4,000 terms go in slices, not in {ticks}");
    assert_eq!(found(&run, 2_000), Some(2_000));
    run.apply(&Command::NamespaceDelete { namespace, force: true });
    while run.driver.engine.next_deadline().is_some_and(|due_us| due_us <= run.now_us) {
        run.apply(&Command::Tick);
        run.driver.engine.recount().unwrap();
    }
    assert_eq!(found(&run, 2_000), None);
    assert_eq!(run.driver.engine.index_work(0, 10), None);
}

#[test]
fn a_namespace_has_so_many_indexes_and_no_more() {
    let mut run = Run::new(1);
    for at in 0..NAMESPACE_INDEXES_MAX {
        run.apply(&Command::IndexPut { namespace: NAMESPACE, name: &format!("i{at}"), pointer: "/a" });
    }
    let put = |name, pointer| Command::IndexPut { namespace: NAMESPACE, name, pointer };
    run.driver.apply(START_US, &put("more", "/a"));
    assert_eq!(run.driver.out.error.as_ref().map(Error::code), Some("limit_exceeded"));
    let before = run.indexes()[0].clone();
    run.apply(&put("i0", "/a"));
    assert_eq!(run.indexes()[0], before, "it is there already");
    run.apply(&put("i0", "/b"));
    assert!(run.indexes()[0].number > before.number && run.indexes()[0].pointer == "/b");
    let long = "/".repeat(256);
    for (name, pointer, code) in [
        ("", "/a", "invalid_name"),
        ("a b", "/a", "invalid_name"),
        ("a", "a", "invalid_argument"),
        ("a", &long, "invalid_argument"),
    ] {
        let refused = put(name, pointer).check(&sluice_engine::limits::Limits::default());
        assert_eq!(refused.unwrap_err().code(), code, "{name:?} {pointer:?}");
    }
}

#[test]
fn a_restored_engine_gives_the_same_slots() {
    let mut run = Run::new(1);
    let put = |name| Command::IndexPut { namespace: NAMESPACE, name, pointer: "/a" };
    run.apply(&put("a"));
    run.apply(&put("b"));
    run.apply(&Command::IndexDelete { namespace: NAMESPACE, name: "a" });
    run.apply(&Command::Tick);
    run.apply(&put("c"));
    let mut other = Run::new(1);
    other.driver.log = run.driver.log.clone();
    other.driver.engine = run.restored();
    for run in [&mut run, &mut other] {
        (0..20).for_each(|_| run.put());
    }
    assert_eq!(run.driver.engine.digest(), other.driver.engine.digest());
}

#[test]
fn a_lookup_is_narrowed_by_keys() {
    let mut run = Run::new(1);
    run.apply(&Command::IndexPut { namespace: NAMESPACE, name: "a", pointer: "/a" });
    (0..100).for_each(|_| run.put());
    let index = run.indexes()[0].number;
    let found = |prefix, after| {
        let lookup = IndexLookup { index, ranges: &[0..=u128::MAX], prefix, after };
        let found = run.driver.engine.indexed_documents(NAMESPACE, &lookup, 100).unwrap();
        found.into_iter().map(|view| view.key).collect::<Vec<_>>()
    };
    let all = found("", None);
    assert!(all.len() > 5);
    assert_eq!(found("", Some(&*all[2])), all[3..]);
    assert!(found("k1", Some("k1")).iter().all(|key| key.starts_with("k1") && key != "k1"));
}

#[test]
fn more_terms_than_a_record_has_are_refused() {
    let limits = sluice_engine::limits::Limits::default();
    let filled = |terms| FilledDocument { key: "k", revision: 1, terms: vec![7; terms] };
    for (counts, is_taken) in [(vec![256; 4], true), (vec![257], false), (vec![256, 256, 256, 256, 1], false)]
    {
        let documents: Vec<FilledDocument<'_>> = counts.into_iter().map(filled).collect();
        let (index, until, is_last) = (1, None, false);
        let fill = IndexFill { namespace: NAMESPACE, index, documents: &documents, until, is_last };
        let checked = Command::IndexFill(fill).check(&limits).map_err(|error| error.code());
        assert_eq!(checked, if is_taken { Ok(()) } else { Err("invalid_argument") });
    }
}

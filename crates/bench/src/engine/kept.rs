//! Memory that a document and a lock take in the index.

use serde_json::json;
use sluice_alloc_count::{Mode, set_mode};
use sluice_engine::Command;
use sluice_engine::command::{DocumentPut, LockAcquire};
use sluice_engine::documents::DocumentCondition;
use sluice_engine::id::NamespaceId;
use sluice_engine::locks::LockMode;

use crate::report::Report;
use crate::table::{Table, figure};
use sluice_bench_rows::rig::Rig;
use sluice_bench_rows::stats::per;

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;

/// Bytes of the index for each of so many documents, and for each of so many locks that are held.
pub(super) fn index_bytes(count: u64, report: &mut Report) {
    let document = bytes(count, report, |key, run| {
        run(&Command::DocumentPut(DocumentPut {
            namespace: NAMESPACE,
            key,
            when: DocumentCondition::default(),
            ttl_ms: None,
            history: None,
            request: 0,
            content_type: "application/json",
            attributes: &[],
            content: b"{\"state\":\"new\"}",
            terms: &[],
        }));
    });
    let lock = bytes(count, report, |key, run| {
        run(&Command::LockAcquire(LockAcquire {
            namespace: NAMESPACE,
            keys: &[key],
            owner: "worker-1",
            mode: LockMode::Exclusive,
            ttl_ms: 1_800_000,
            wait_ms: 0,
            if_absent: false,
            request: [0; 2],
        }));
    });
    let mut table = Table::new(&["kept", "index B each"]);
    for (name, bytes) in [("document", document), ("lock that is held", lock)] {
        table.row(vec![name.to_owned(), figure(bytes)]);
    }
    report.table("keys of 14 bytes", table);
    report.row("kept_bytes", json!({ "document": document, "lock": lock }));
    report.figure("document_bytes", document);
    report.figure("lock_bytes", lock);
}

fn bytes(count: u64, report: &mut Report, one: impl Fn(&str, &mut dyn FnMut(&Command<'_>))) -> f64 {
    set_mode(Mode::Count);
    let mut rig = Rig::new();
    rig.watch_memory();
    for number in 0..count {
        one(&format!("orders/{number:07}"), &mut |command| rig.run(command));
    }
    let held = rig.engine_held_bytes();
    set_mode(Mode::Off);
    report.check_equal("refused commands about keys", 0, rig.failures());
    per(held as f64, count)
}

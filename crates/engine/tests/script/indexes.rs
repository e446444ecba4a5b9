//! Indexes of documents: `index put NAME POINTER`, `index delete NAME` and `index fill TERMS`, which tells
//! these terms of the documents that the engine names as the next work, at most `most=` of them. `doc put`
//! has `in_NAME=TERMS`. Terms are small numbers with commas between them. `show index NAME` lists the
//! documents by key with a term `from=` to `to=`.

use sluice_engine::Command;
use sluice_engine::documents::DocumentTerms;
use sluice_engine::indexes::{FilledDocument, IndexFill, IndexLookup, IndexView};

use super::Player;
use super::line::{Line, words};

fn terms(text: &str) -> Vec<u128> {
    words(text).into_iter().map(|word| word.parse().unwrap()).collect()
}

impl Player {
    pub(super) fn index(&mut self, line: &Line<'_>) -> Vec<String> {
        let namespace = self.namespace(line);
        match line.words.as_slice() {
            ["put", name, pointer] => self.run(&Command::IndexPut { namespace, name, pointer }),
            ["delete", name] => self.run(&Command::IndexDelete { namespace, name }),
            ["fill", given @ ..] => self.fill(line, &terms(&given.join(","))),
            _ => panic!("{line:?} is no command"),
        }
    }

    fn fill(&mut self, line: &Line<'_>, terms: &[u128]) -> Vec<String> {
        let most = line.number("most").unwrap_or(100) as usize;
        let Some(work) = self.driver.engine.index_work(0, most) else {
            return vec!["nothing to fill".into()];
        };
        let filled = work.documents.iter().map(|view| FilledDocument {
            key: &view.key,
            revision: view.version.revision,
            terms: terms.to_vec(),
        });
        let (documents, until): (Vec<_>, _) = (filled.collect(), work.until.as_deref());
        let (namespace, index, is_last) = (work.namespace, work.index, work.is_last);
        let fill = IndexFill { namespace, index, documents: &documents, until, is_last };
        let keys: Vec<&str> = work.documents.iter().map(|view| view.key.as_str()).collect();
        let mut told = vec![format!("filled {} of {}", keys.join(" "), work.pointer)];
        told.extend(self.run(&Command::IndexFill(fill)));
        told
    }

    fn index_named(&self, line: &Line<'_>, name: &str) -> Option<IndexView> {
        let indexes = self.driver.engine.document_indexes(self.namespace(line));
        indexes.into_iter().find(|index| index.name == name)
    }

    /// The terms that a write tells.
    pub(super) fn terms(&self, line: &Line<'_>) -> Vec<DocumentTerms> {
        let told = line.under("in_").pairs().into_iter().map(|(name, text)| {
            let index = self.index_named(line, name).map_or(0, |index| index.number);
            DocumentTerms { index, terms: terms(text) }
        });
        told.collect()
    }

    pub(super) fn show_index(&self, line: &Line<'_>, name: &str) -> Vec<String> {
        let Some(IndexView { number, pointer, is_built, terms, .. }) = self.index_named(line, name) else {
            return vec!["none".into()];
        };
        let state = if is_built { "built" } else { "being built" };
        let mut lines = vec![format!("{pointer}: {state}, {terms} terms")];
        let place = |key| line.number(key).map(u128::from);
        if let (Some(from), Some(to)) = (place("from"), place("to")) {
            let namespace = self.namespace(line);
            let lookup = IndexLookup { index: number, ranges: &[from..=to], prefix: "", after: None };
            let found = self.driver.engine.indexed_documents(namespace, &lookup, 100);
            lines.push(match found {
                Some(found) => found.iter().map(|view| view.key.clone()).collect::<Vec<_>>().join(" "),
                None => "no answer".into(),
            });
        }
        lines
    }
}

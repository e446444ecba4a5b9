//! Documents: `doc put KEY CONTENT` with `type=`, `attr_NAME=`, `ttl_ms=` or `keep_ttl=1`, `history=`,
//! `request=`, `doc delete KEY` and `doc check KEY`; conditions are `version=`, `revision=`, `exists=1` and
//! `lock=GRANT`.

use sluice_engine::Command;
use sluice_engine::command::{DocumentCheck, DocumentDelete, DocumentPut};
use sluice_engine::documents::{
    ChangePosition, DocumentChange, DocumentCondition, DocumentVersion, DocumentView,
};
use sluice_engine::outcome::Reply;

use super::Player;
use super::line::{Line, epoch_and_count};

impl Player {
    pub(super) fn document(&mut self, line: &Line<'_>) -> Vec<String> {
        let namespace = self.namespace(line);
        let when = self.condition(line);
        match line.words.as_slice() {
            ["put", ..] => {
                let ((key, content), attributes) = (line.document(), line.under("attr_").pairs());
                let terms = self.terms(line);
                let put = DocumentPut { terms: &terms, ..self.put(line, &key, &content, &attributes) };
                self.run(&Command::DocumentPut(put))
            }
            ["delete", key] => self.run(&Command::DocumentDelete(DocumentDelete { namespace, key, when })),
            ["check", key] => self.run(&Command::DocumentCheck(DocumentCheck { namespace, key, when })),
            _ => panic!("{line:?} is no command"),
        }
    }

    pub(super) fn put<'a>(
        &self,
        line: &Line<'a>,
        key: &'a str,
        content: &'a [u8],
        attributes: &'a [(&'a str, &'a str)],
    ) -> DocumentPut<'a> {
        DocumentPut {
            namespace: self.namespace(line),
            key,
            when: self.condition(line),
            ttl_ms: line.get("keep_ttl").is_none().then(|| line.number("ttl_ms").unwrap_or(0)),
            history: line.number("history").map(|history| history as u16),
            request: line.number("request").unwrap_or(0),
            content_type: line.get("type").unwrap_or(""),
            attributes,
            content,
            terms: &[],
        }
    }

    pub(super) fn condition(&self, line: &Line<'_>) -> DocumentCondition {
        DocumentCondition {
            version: line.number("version"),
            revision: line.get("revision").map(epoch_and_count),
            exists: line.get("exists").is_some(),
            token: line.get("lock").map(|grant| self.token(grant)),
        }
    }

    /// What the last command says of a document.
    pub(super) fn written(&self, reply: Reply) -> Option<String> {
        let Reply::DocumentWritten { version, created } = reply else { return None };
        Some(format!("{}{}", if created { "new " } else { "" }, self.version(version)))
    }

    pub(super) fn version(&self, version: DocumentVersion) -> String {
        let DocumentVersion { version, revision, changed_at_us } = version;
        format!("version {version} = {} at {}", super::print::sequence(revision), self.time(changed_at_us))
    }

    fn document_view(&self, view: &DocumentView) -> String {
        let mut text = format!("{}, {} bytes", self.version(view.version), view.content_bytes);
        if let Some(until_us) = view.expires_at_us {
            text.push_str(&format!(", until {}", self.time(until_us)));
        }
        format!("{text}: {}", self.payload(&view.blob))
    }

    pub(super) fn show_documents(&self, line: &Line<'_>, limit: usize) -> Vec<String> {
        let prefix = line.get("prefix").unwrap_or("");
        let found =
            self.driver.engine.documents_after(self.namespace(line), prefix, line.get("after"), limit);
        found.iter().map(|view| format!("{}: version {}", view.key, view.version.version)).collect()
    }

    pub(super) fn show_changes(&self, line: &Line<'_>, limit: usize) -> Vec<String> {
        let prefix = line.get("prefix").unwrap_or("");
        let place = |key| line.get(key).map_or(0, epoch_and_count);
        let from = ChangePosition { after: place("after"), begun: place("begun") };
        let found = self.driver.engine.document_changes(self.namespace(line), prefix, from, limit);
        let Some(found) = found else { return vec!["too late".into()] };
        let one = |change: &DocumentChange| match change {
            DocumentChange::Written(view) => format!("{}: {}", view.key, self.version(view.version)),
            DocumentChange::Gone { key, at } => {
                let revision = super::print::sequence(at.revision);
                format!("{key}: gone = {revision} at {}", self.time(at.changed_at_us))
            }
        };
        let mut lines: Vec<String> = found.changes.iter().map(one).collect();
        let [until, begun] = [found.until.after, found.until.begun].map(super::print::sequence);
        lines.push(match found.is_last {
            true => format!("until {until}"),
            false => format!("until {until}, begun at {begun}, and more"),
        });
        lines
    }

    pub(super) fn show_document(&self, line: &Line<'_>, key: &str) -> Vec<String> {
        if let Err(error) = self.driver.engine.expect_decided(self.namespace(line), key) {
            return vec![format!("error {}: {error}", error.code())];
        }
        let found = self.driver.engine.document_versions(self.namespace(line), key);
        assert_eq!(found.first(), self.driver.engine.document(self.namespace(line), key).as_ref());
        if found.is_empty() {
            return vec!["none".into()];
        }
        found.iter().map(|view| self.document_view(view)).collect()
    }
}

//! Attachments: `upload begin KEY NAME` with `type=`, whose ids are `u1`, `u2` and so on; `upload chunk
//! UPLOAD CONTENT` with `offset=`, `request=` and `sum=`, a number for the SHA-256; `upload end UPLOAD`;
//! `file commit KEY NAME UPLOAD` with `bytes=` and `sum=`, and `file delete KEY NAME`, with conditions as
//! documents have them. `show upload UPLOAD`, `show file NAME key=` with `from=` and `limit=` of its chunks,
//! `show files key=`, `show uploads key= name=`.

use sluice_engine::Command;
use sluice_engine::attachments::{
    AttachmentCommit, AttachmentDelete, AttachmentView, UploadBegin, UploadChunk, UploadId,
};
use sluice_engine::outcome::Reply;

use super::Player;
use super::line::Line;

fn sum(number: u64) -> [u8; 32] {
    [number as u8; 32]
}

fn content(words: &[&str]) -> Vec<u8> {
    match words.join(" ").strip_prefix("bytes:") {
        Some(count) => vec![b'x'; count.parse().unwrap()],
        None => words.join(" ").into_bytes(),
    }
}

impl Player {
    fn upload_id(&self, name: &str) -> UploadId {
        match name.strip_prefix('u').and_then(|number| number.parse::<usize>().ok()) {
            Some(number) => self.uploads[number - 1],
            None => name.parse().unwrap(),
        }
    }

    pub(super) fn upload(&mut self, line: &Line<'_>) -> Vec<String> {
        let namespace = self.namespace(line);
        match line.words.as_slice() {
            ["begin", key, name] => {
                let content_type = line.get("type").unwrap_or("");
                let told =
                    self.run(&Command::UploadBegin(UploadBegin { namespace, key, name, content_type }));
                if let Reply::UploadBegun { upload } = self.driver.out.reply {
                    self.uploads.push(upload);
                }
                told
            }
            ["chunk", upload, words @ ..] => {
                let content = content(words);
                self.run(&Command::UploadChunk(UploadChunk {
                    namespace,
                    upload: self.upload_id(upload),
                    offset: line.number("offset").unwrap_or(0),
                    request: line.number("request").unwrap_or(0),
                    hash: b"hash",
                    sha256: sum(line.number("sum").unwrap_or(0)),
                    content: &content,
                }))
            }
            ["end", upload] => self.run(&Command::UploadEnd { namespace, upload: self.upload_id(upload) }),
            _ => panic!("{line:?} is no command"),
        }
    }

    pub(super) fn file(&mut self, line: &Line<'_>) -> Vec<String> {
        let (namespace, when) = (self.namespace(line), self.condition(line));
        match line.words.as_slice() {
            ["commit", ..] => {
                let commit = self.commit(line);
                self.run(&Command::AttachmentCommit(commit))
            }
            ["delete", key, name] => {
                self.run(&Command::AttachmentDelete(AttachmentDelete { namespace, key, name, when }))
            }
            _ => panic!("{line:?} is no command"),
        }
    }

    pub(super) fn commit<'a>(&self, line: &Line<'a>) -> AttachmentCommit<'a> {
        let ["commit", key, name, upload] = *line.words.as_slice() else { panic!("{line:?} is no commit") };
        AttachmentCommit {
            namespace: self.namespace(line),
            key,
            name,
            upload: self.upload_id(upload),
            bytes: line.number("bytes"),
            sha256: line.number("sum").map(sum),
            when: self.condition(line),
        }
    }

    fn file_view(&self, view: &AttachmentView) -> String {
        let AttachmentView { name, content_type, bytes, sha256, version } = view;
        let sum = sha256[0];
        format!("{name} {content_type:?}: {bytes} bytes, sum {sum}, {}", self.version(*version))
    }

    pub(super) fn show_files(&self, line: &Line<'_>, limit: usize) -> Vec<String> {
        let (namespace, key) = (self.namespace(line), line.get("key").unwrap());
        match self.driver.engine.attachments_after(namespace, key, line.get("after"), limit) {
            Some(found) => found.iter().map(|view| self.file_view(view)).collect(),
            None => vec!["no document".into()],
        }
    }

    pub(super) fn show_uploads(&self, line: &Line<'_>, limit: usize) -> Vec<String> {
        let (key, name) = (line.get("key").unwrap(), line.get("name").unwrap());
        let found = self.driver.engine.uploads_for(self.namespace(line), key, name, limit);
        found.iter().map(|view| format!("{} bytes", view.progress.bytes)).collect()
    }

    pub(super) fn show_upload(&self, line: &Line<'_>, name: &str) -> Vec<String> {
        let Some(view) = self.driver.engine.upload(self.namespace(line), self.upload_id(name)) else {
            return vec!["none".into()];
        };
        let (bytes, until) = (view.progress.bytes, self.time(view.expires_at_us));
        let (key, name, sum) = (view.key, view.name, view.sha256[0]);
        vec![format!("{key} {name} {:?}: {bytes} bytes, sum {sum}, until {until}", view.content_type)]
    }

    pub(super) fn show_file(&self, line: &Line<'_>, name: &str) -> Vec<String> {
        let (namespace, key) = (self.namespace(line), line.get("key").unwrap());
        let engine = &self.driver.engine;
        let Some(view) = engine.attachment(namespace, key, name) else { return vec!["none".into()] };
        let limit = line.number("limit").unwrap_or(10) as usize;
        let (revision, from) = (view.version.revision, line.number("from").unwrap_or(0));
        let chunks = engine.attachment_chunks(namespace, (key, name), revision, from, limit).unwrap();
        assert_eq!(engine.attachment_chunks(namespace, (key, name), revision + 1, from, limit), None);
        let chunk = |chunk: &sluice_engine::attachments::AttachmentChunk| {
            format!("from {}: {}#{} of {}", chunk.start, chunk.blob.index, chunk.blob.item, chunk.blob.len)
        };
        std::iter::once(self.file_view(&view)).chain(chunks.iter().map(chunk)).collect()
    }
}

//! `sluice doc edit`: a document in a file of its own, an editor, and the way back.

use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use clap::Args;
use sluice_client::{Document, DocumentPut, DocumentWritten};
use sluice_engine::limits::DOCUMENT_BYTES_MAX;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use super::bounded::read_file;
use super::connect::{ServerFlags, TRANSACTION};
use super::{CliError, Out, Result};

#[derive(Debug, Args)]
#[command(after_help = "\
The editor is $VISUAL, or else $EDITOR, with a file that only you can read. A document that does not exist is \
created. Nothing is written if the text is unchanged, or if the editor fails; a line end that the editor adds \
to a text without one is left out. The content type, the attributes and the history stay, and a ttl begins \
anew. If another has written in between, or the write fails, the file stays, and its path is printed.")]
pub(crate) struct EditArgs {
    /// Key of the document.
    key: String,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) async fn run(args: EditArgs, out: Out) -> Result<()> {
    if std::env::var_os(TRANSACTION).is_some_and(|id| !id.is_empty()) {
        let reason = format!("{TRANSACTION} is set, and an edit is not part of a transaction");
        return Err(CliError::usage(reason).hint("Use `sluice doc get` and `sluice doc put`, or unset it."));
    }
    let editor = editor()?;
    let connection = args.server.connect()?;
    let read = connection.client.document_get(&args.key, None).await.map_err(|e| connection.error(&e))?;
    let before = read.as_ref().map_or(&[][..], |read| &read.content);
    let draft = Draft::create(read.as_ref())?;
    if let Err(error) = edit(&editor, &draft).await {
        return Err(if draft.text(before)? == before { error } else { draft.kept(error) });
    }
    let after = draft.text(before)?;
    if after == before {
        out.note("nothing was changed, and nothing was written");
        return Ok(());
    }
    let put = DocumentPut::in_place_of(read.as_ref(), &after);
    let mut interrupted = watch(SignalKind::interrupt())?;
    let answer = tokio::select! {
        answer = connection.client.document_put(&args.key, &put) => answer,
        _ = interrupted.recv() => {
            let unknown = "interrupted: the server has not said whether it has written the document";
            return Err(draft.kept(CliError::failed(unknown)));
        }
    };
    match answer {
        Ok(version) => out.show(&version, written),
        Err(error) => Err(draft.kept(connection.error(&error))),
    }
}

/// The line that tells of a version that was written.
pub(super) fn written(written: &DocumentWritten) -> String {
    let verb = if written.created { "created" } else { "changed" };
    format!("{verb}, version {}, etag {}\n", written.version, written.etag)
}

fn editor() -> Result<String> {
    let set = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR")).ok_or_else(|| {
        CliError::usage("no editor: neither VISUAL nor EDITOR is set")
            .hint("Set one of them to the command of your editor, such as EDITOR=vi.")
    })
}

/// Runs the editor, whose command line may have arguments, until it has ended.
async fn edit(editor: &str, draft: &Draft) -> Result<()> {
    // Some editors use the terminal's interrupt key for themselves; it comes to this process, too.
    let _ignored = [watch(SignalKind::interrupt())?, watch(SignalKind::quit())?];
    let line = format!("{editor} \"$@\"");
    let status = Command::new("sh").arg("-c").arg(line).arg(editor).arg(&draft.path).status().await;
    let status = status.map_err(|e| CliError::usage(format!("cannot start {editor}: {e}")))?;
    if status.success() {
        return Ok(());
    }
    Err(CliError::failed(format!("the editor {editor} failed, and nothing was written: {status}")))
}

fn watch(kind: SignalKind) -> Result<tokio::signal::unix::Signal> {
    signal(kind).map_err(|e| CliError::failed(format!("cannot watch for signals: {e}")))
}

/// The file that is edited. Dropping it removes it.
struct Draft {
    path: PathBuf,
    is_kept: bool,
}

impl Draft {
    /// Creates the file with the content of the document that was read, or of none.
    fn create(read: Option<&Document>) -> Result<Draft> {
        let is_json = read
            .and_then(|read| read.content_type.as_deref())
            .is_some_and(|it| it.starts_with("application/json"));
        let extension = if is_json { "json" } else { "txt" };
        let number = RandomState::new().hash_one(std::process::id());
        let path = std::env::temp_dir().join(format!("sluice-{number:016x}.{extension}"));
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let mut file = created.map_err(|e| CliError::unwritable(&path, &e))?;
        let draft = Draft { path, is_kept: false };
        let content = read.map_or(&[][..], |read| &read.content);
        file.write_all(content).map_err(|e| CliError::unwritable(&draft.path, &e))?;
        Ok(draft)
    }

    /// The text of the file, with the line end that the content had `before`.
    fn text(&self, before: &[u8]) -> Result<Vec<u8>> {
        // The line end that is left out may be one too many.
        let text = read_file(&self.path, DOCUMENT_BYTES_MAX as u64 + 1)?;
        Ok(with_line_end_as(before, text))
    }

    /// Keeps the file, and says so with the error.
    fn kept(mut self, error: CliError) -> CliError {
        self.is_kept = true;
        error.hint(format!("The edited text is kept in {}.", self.path.display()))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_kept {
            // The editor may have moved it away.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Leaves out the line end that many editors add to a text without one.
fn with_line_end_as(before: &[u8], mut text: Vec<u8>) -> Vec<u8> {
    if !before.is_empty() && !before.ends_with(b"\n") && text.ends_with(b"\n") {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_a_line_end_gets_none() {
        for (before, text, expected) in [
            ("on", "off\n", "off"),
            ("on", "off\n\n", "off\n"),
            ("on\n", "off\n", "off\n"),
            ("on\n", "off", "off"),
            ("", "new\n", "new\n"),
        ] {
            let text = with_line_end_as(before.as_bytes(), text.as_bytes().to_vec());
            assert_eq!(text, expected.as_bytes(), "{before:?}");
        }
    }
}

//! `sluice doc`.

use std::borrow::Cow;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use sluice_client::{
    Document, DocumentChange, DocumentDelete, DocumentPatch, DocumentPut, DocumentVersion, StageResult,
    Transaction,
};
use sluice_engine::limits::{DOCUMENT_BYTES_MAX, DOCUMENT_HISTORY_MAX};

use super::bounded::{read_file, read_stdin};
use super::connect::{ReadFlags, ServerFlags};
use super::doc_edit::{self, EditArgs};
use super::doc_index::{self, IndexVerb};
use super::doc_query::{self, QueryArgs};
use super::doc_watch::{self, WatchArgs};
use super::format::{quoted, relative, size, time};
use super::joined::{self, JoinFlag};
use super::output::Table;
use super::request::ended;
use super::values::header;
use super::{CliError, Out, Result, duration, number};

#[derive(Debug, Subcommand)]
pub(crate) enum DocVerb {
    /// Print the content of a document unchanged, at a terminal with a line end.
    Get(GetArgs),
    /// Write a document: create it, or replace its content, content type and attributes.
    Put(Box<PutArgs>),
    /// Change a document whose content is JSON, in the place where it lies.
    Patch(PatchArgs),
    /// Edit a document in $VISUAL or $EDITOR, and write it unless another has written in between.
    Edit(EditArgs),
    /// List documents by key.
    List {
        /// List only keys that begin with this.
        #[arg(default_value = "", hide_default_value = true)]
        prefix: String,
        #[command(flatten)]
        server: ReadFlags,
    },
    /// Find documents by what their JSON contains.
    Query(QueryArgs),
    /// Manage indexes, by which queries find documents without looking at all of them.
    #[command(subcommand)]
    Index(IndexVerb),
    /// Print changes of documents as they happen.
    Watch(WatchArgs),
    /// List the versions of a document that are kept, the current one first.
    History {
        /// Key of the document.
        key: String,
        #[command(flatten)]
        server: ReadFlags,
    },
    /// Delete a document with its former versions.
    Delete {
        /// Key of the document.
        key: String,
        #[command(flatten)]
        when: ConditionFlags,
        #[command(flatten)]
        join: JoinFlag,
        #[command(flatten)]
        server: ServerFlags,
    },
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Key of the document.
    key: String,
    /// Version to print instead of the current one, as shown by `sluice doc history`.
    #[arg(long, value_name = "N", value_parser = number(1u64..))]
    version: Option<u64>,
    /// Print the version, the times and the attributes, too.
    #[arg(long, conflicts_with = "json")]
    show: bool,
    #[command(flatten)]
    join: JoinFlag,
    #[command(flatten)]
    server: ReadFlags,
}

/// Conditions under which a document is written or deleted.
#[derive(Debug, Args)]
pub(crate) struct ConditionFlags {
    /// Only if the document has this version.
    #[arg(long, value_name = "N", value_parser = number(1u64..))]
    if_version: Option<u64>,
    /// Only if the document has this ETag.
    #[arg(long, value_name = "ETAG")]
    if_etag: Option<String>,
    /// Only while the lock of the key is held, whose token this is.
    #[arg(long)]
    token: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sluice doc put orders/17 order.json\n  \
    sluice doc put leader --if-absent --ttl 30s - <<< node-1\n  \
    sluice doc put orders/17 order.json --if-version 3 --attribute by=ann\n\n\
    Prints the version and the ETag. A condition that does not hold is exit code 4, and nothing is written.")]
pub(crate) struct PutArgs {
    /// Key of the document.
    key: String,
    /// File with the content. If it is missing or `-`, all of stdin is the content.
    file: Option<PathBuf>,
    /// Media type of the content [default: application/json if FILE ends in .json].
    #[arg(long = "type", value_name = "TYPE")]
    content_type: Option<String>,
    /// Attribute of the document; repeat the flag for several attributes.
    #[arg(long, value_name = "NAME=VALUE", value_parser = header)]
    attribute: Vec<(String, String)>,
    /// Time after which the document is gone [default: it stays].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    ttl: Option<Duration>,
    /// Number of former versions to keep [default: as before, and none of a new document].
    #[arg(long, value_name = "N", value_parser = number(0..=DOCUMENT_HISTORY_MAX))]
    history: Option<u16>,
    /// Only if there is a document.
    #[arg(long)]
    if_exists: bool,
    /// Only if there is no document.
    #[arg(long, conflicts_with_all = ["if_exists", "if_version", "if_etag"])]
    if_absent: bool,
    #[command(flatten)]
    when: ConditionFlags,
    #[command(flatten)]
    join: JoinFlag,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) async fn run(verb: DocVerb, out: Out) -> Result<u8> {
    match verb {
        DocVerb::Get(args) => get(args, out).await?,
        DocVerb::Put(args) => put(&args, out).await?,
        DocVerb::Patch(args) => patch(&args, out).await?,
        DocVerb::Edit(args) => doc_edit::run(args, out).await?,
        DocVerb::List { prefix, server } => {
            let connection = server.connect()?;
            let documents = connection.client.documents(&prefix).await.map_err(|e| connection.error(&e))?;
            if documents.is_empty() {
                out.note(&format!("no documents to list in namespace {}", connection.namespace));
                return Ok(0);
            }
            out.list(&documents, table)?;
        }
        DocVerb::Index(verb) => doc_index::run(verb, out).await?,
        DocVerb::Query(args) => doc_query::run(args, out).await?,
        DocVerb::Watch(args) => doc_watch::run(args, out).await?,
        DocVerb::History { key, server } => {
            let connection = server.connect()?;
            let versions = connection.client.document_history(&key).await;
            out.list(&versions.map_err(|e| connection.error(&e))?, versions_table)?;
        }
        DocVerb::Delete { key, when, join, server } => {
            let connection = server.connect()?;
            let delete = DocumentDelete {
                if_version: when.if_version,
                if_etag: when.if_etag.as_deref(),
                token: when.token.as_deref(),
            };
            let staged = || Transaction::new().delete(&*key, delete.clone());
            if let Some(results) = join.stage(&connection, staged).await? {
                joined::told(out, &results)?;
                return Ok(0);
            }
            connection.client.document_delete(&key, &delete).await.map_err(|e| connection.error(&e))?;
            out.show(&json!({ "deleted": key }), |_| format!("deleted {key}\n"))?;
        }
    }
    Ok(0)
}

async fn get(args: GetArgs, out: Out) -> Result<()> {
    let connection = args.server.connect()?;
    if let Some(results) = args.join.stage(&connection, || Transaction::new().get(&*args.key)).await? {
        return read_in_transaction(&args, &results, out);
    }
    let document = connection.client.document_show(&args.key, args.version).await;
    let document = document.map_err(|e| connection.error(&e))?;
    if out.json || args.show {
        return out.show(&document, details);
    }
    out.bytes(&ended(Cow::Borrowed(&document.content), std::io::stdout().is_terminal()))
}

/// Prints a document as its transaction sees it.
fn read_in_transaction(args: &GetArgs, results: &[StageResult], out: Out) -> Result<()> {
    if args.version.is_some() || args.show {
        return Err(CliError::usage(
            "a transaction reads the content of the current version: leave --version and --show out",
        ));
    }
    if out.json {
        return results.iter().try_for_each(|result| out.show(result, |_| String::new()));
    }
    let content = results.iter().find_map(|result| result.document.as_ref()?.bytes());
    let absent = || {
        let told = format!("there is no document {}", quoted(&args.key));
        CliError::server("document_not_found", &told, &json!({ "key": args.key }))
    };
    out.bytes(&ended(Cow::Owned(content.ok_or_else(absent)?), std::io::stdout().is_terminal()))
}

async fn put(args: &PutArgs, out: Out) -> Result<()> {
    let content = content(args)?;
    let connection = args.server.connect()?;
    let is_json = || args.file.as_ref().is_some_and(|file| file.extension().is_some_and(|it| it == "json"));
    let guessed = || is_json().then_some("application/json");
    let put = DocumentPut {
        content_type: args.content_type.as_deref().or_else(guessed),
        attributes: args.attribute.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        ttl: args.ttl,
        history: args.history,
        if_version: args.when.if_version,
        if_etag: args.when.if_etag.as_deref(),
        if_exists: args.if_exists,
        if_absent: args.if_absent,
        token: args.when.token.as_deref(),
        ..DocumentPut::new(&content)
    };
    let staged = || Transaction::new().put(&*args.key, put.clone());
    if let Some(results) = args.join.stage(&connection, staged).await? {
        return joined::told(out, &results);
    }
    let written = connection.client.document_put(&args.key, &put).await;
    out.show(&written.map_err(|e| connection.error(&e))?, doc_edit::written)
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice doc patch orders/17 --merge '{\"state\":\"paid\",\"draft\":null}'\n  \
    sluice doc patch orders/17 --json-patch '[{\"op\":\"add\",\"path\":\"/items/-\",\"value\":7}]'\n  \
    sluice doc patch pages/home --increment /visits --increment /bytes=512"
)]
#[group(id = "change", required = true, args = ["merge", "json_patch", "increment"])]
pub(crate) struct PatchArgs {
    /// Key of the document.
    key: String,
    /// Merge patch (RFC 7396): members to replace; null removes one.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["json_patch", "increment"])]
    merge: Option<String>,
    /// JSON patch (RFC 6902): operations, all or none.
    #[arg(long, value_name = "JSON", conflicts_with = "increment")]
    json_patch: Option<String>,
    /// Add N (default 1) to the number behind a JSON pointer; repeat the flag for several numbers.
    #[arg(long, value_name = "POINTER[=N]")]
    increment: Vec<String>,
    #[command(flatten)]
    when: ConditionFlags,
    #[command(flatten)]
    join: JoinFlag,
    #[command(flatten)]
    server: ServerFlags,
}

async fn patch(args: &PatchArgs, out: Out) -> Result<()> {
    let increments = args.increment.iter().map(|one| one.rsplit_once('=').unwrap_or((one, "1")));
    let change = match (&args.merge, &args.json_patch) {
        (Some(text), _) => DocumentChange::Merge(text),
        (None, Some(text)) => DocumentChange::Patch(text),
        (None, None) => DocumentChange::Increment(increments.collect()),
    };
    let patch = DocumentPatch {
        if_version: args.when.if_version,
        if_etag: args.when.if_etag.as_deref(),
        token: args.when.token.as_deref(),
        ..DocumentPatch::new(change)
    };
    let connection = args.server.connect()?;
    let staged = || Transaction::new().patch(&*args.key, patch.clone());
    if let Some(results) = args.join.stage(&connection, staged).await? {
        return joined::told(out, &results);
    }
    let written = connection.client.document_patch(&args.key, &patch).await;
    out.show(&written.map_err(|e| connection.error(&e))?, doc_edit::written)
}

/// Reads the content of a document to write.
fn content(args: &PutArgs) -> Result<Vec<u8>> {
    let limit = DOCUMENT_BYTES_MAX as u64;
    if let Some(path) = &args.file {
        return read_file(path, limit);
    }
    if std::io::stdin().is_terminal() {
        return Err(CliError::usage("no content given").hint("Give a file with the content, or pipe it in."));
    }
    let content = read_stdin(limit)?;
    if content.is_empty() {
        let empty = format!("`sluice doc put {} /dev/null` writes an empty document.", quoted(&args.key));
        return Err(CliError::usage("no content given: stdin is empty").hint(empty));
    }
    Ok(content)
}

fn until(document: &DocumentVersion) -> String {
    document.expires_at_ms.map_or_else(|| "-".to_owned(), time)
}

fn table(documents: &[DocumentVersion]) -> String {
    let mut table = Table::new(&["KEY", ">VERSION", ">SIZE", ">CHANGED", "UNTIL", "ETAG"]);
    for document in documents {
        table.row([
            document.key.clone(),
            document.version.to_string(),
            size(document.content_bytes),
            relative(document.changed_at_ms),
            until(document),
            document.etag.clone(),
        ]);
    }
    table.render()
}

fn versions_table(versions: &[DocumentVersion]) -> String {
    let mut table = Table::new(&[">VERSION", ">SIZE", "CHANGED", "ETAG"]);
    for version in versions {
        table.row([
            version.version.to_string(),
            size(version.content_bytes),
            time(version.changed_at_ms),
            version.etag.clone(),
        ]);
    }
    table.render()
}

fn details(document: &Document) -> String {
    let (mut table, about) = (Table::fields(), &document.about);
    table.field("key", about.key.clone());
    table.field("version", about.version.to_string());
    table.field("etag", about.etag.clone());
    table.field("changed", format!("{} ({})", time(about.changed_at_ms), relative(about.changed_at_ms)));
    table.field("until", until(about));
    table.field("size", size(about.content_bytes));
    table.field("history", about.history.to_string());
    if let Some(content_type) = &document.content_type {
        table.field("content type", content_type.as_str());
    }
    for (name, value) in &document.attributes {
        table.field("attribute", format!("{name}={value}"));
    }
    let binary = "The content is binary: without --show it is printed unchanged.";
    let content = std::str::from_utf8(&document.content).unwrap_or(binary);
    format!("{}\n{content}\n", table.render())
}

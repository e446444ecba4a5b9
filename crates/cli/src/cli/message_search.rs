//! `sluice message search`.

use clap::Args;
use sluice_client::MessageSearch;

use super::connect::ServerFlags;
use super::filter::FilterFlag;
use super::message_list::{PageFlags, table};
use super::progress::Progress;
use super::{Out, Result};

/// Messages of a page.
const PAGE: u32 = 500;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sluice message search orders --where '{\"/payload/customer\":4711}' --payload\n  \
    sluice message search orders --where '{\"/state\":\"dead\",\"/error\":{\"contains\":\"451\"}}'\n  \
    sluice message search orders --where '{\"/sent_at_ms\":{\"ge\":{\"now\":\"-1h\"}}}' --all")]
pub(crate) struct SearchArgs {
    /// Name of the queue.
    queue: String,
    #[command(flatten)]
    filter: FilterFlag,
    #[command(flatten)]
    page: PageFlags,
    /// Include payloads.
    #[arg(long)]
    payload: bool,
    #[command(flatten)]
    server: ServerFlags,
}

/// Prints the messages that match, a page at a time, up to the maximum or the end.
pub(super) async fn run(args: SearchArgs, out: Out) -> Result<()> {
    let filter = args.filter.read()?;
    let connection = args.server.connect()?;
    let (mut left, mut cursor) = args.page.begin();
    let (mut found, mut scanned, mut index) = (0, 0, None);
    let mut progress: Option<Progress> = None;
    loop {
        let search = MessageSearch {
            filter: filter.clone(),
            limit: Some(u32::try_from(left).unwrap_or(PAGE).min(PAGE)),
            cursor: cursor.as_deref(),
            payload: args.payload,
        };
        let page = connection.client.message_search(&args.queue, &search).await;
        let page = page.map_err(|e| connection.error(&e))?;
        // An index finds some of all messages, and nobody knows how many.
        let total = Some(page.total).filter(|_| page.index.is_none());
        let progress = progress.get_or_insert_with(|| Progress::things(out, total, "scanned"));
        progress.add(page.scanned);
        if !page.messages.is_empty() {
            progress.suspend(|| out.list(&page.messages, table))?;
        }
        found += page.messages.len();
        scanned += page.scanned;
        index = index.or(page.index);
        left -= page.messages.len() as u64;
        cursor = page.next;
        if cursor.is_none() || left == 0 {
            progress.finish();
            break;
        }
    }
    match cursor {
        Some(cursor) => out.note(&format!(
            "there may be more: continue with --cursor {cursor}, or find everything with --all"
        )),
        None if found == 0 && index.is_some() => out.note(&format!("no message in {} matches", args.queue)),
        None if found == 0 => out.note(&format!("none of {scanned} messages in {} matches", args.queue)),
        None => {}
    }
    if let Some(kind) = index {
        out.note(&format!("messages looked at: {scanned}, by the index of {kind}"));
    }
    Ok(())
}

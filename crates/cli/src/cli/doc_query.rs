//! `sluice doc query`.

use clap::Args;
use serde_json::Value;
use sluice_client::{Document, DocumentQuery, DocumentVersion, DocumentsFound};

use super::connect::{Connection, ServerFlags};
use super::filter::FilterFlag;
use super::{Out, Result, number};

/// Documents of a page.
const PAGE: u32 = 1_000;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sluice doc query --prefix orders/ --where '{\"/state\":\"paid\",\"/total\":{\"ge\":100}}'\n  \
    sluice doc query --where '{\"/at\":{\"lt\":{\"now\":\"-7d\"}}}' --keys\n  \
    sluice doc query --where filter.json --sort -/total,/name --limit 10\n\n\
    Prints a JSON object with key and content for each document, on a line of its own. \
    What is not JSON is passed over.")]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    filter: FilterFlag,
    /// Look only at keys that begin with this.
    #[arg(long, default_value = "", hide_default_value = true)]
    prefix: String,
    /// Sort by the values behind these JSON pointers, with a minus from the last to the first; separate
    /// several with commas, or repeat the flag [default: by key].
    #[arg(long, value_name = "[-]POINTER", value_delimiter = ',', allow_hyphen_values = true)]
    sort: Vec<String>,
    /// Print at most so many documents.
    #[arg(long, value_name = "N", value_parser = number(1u64..))]
    limit: Option<u64>,
    /// Print only the keys.
    #[arg(long)]
    keys: bool,
    #[command(flatten)]
    server: ServerFlags,
}

/// Prints the documents that match, a page at a time.
pub(super) async fn run(args: QueryArgs, out: Out) -> Result<()> {
    let filter = args.filter.read()?;
    let sort = args.sort.iter().map(|one| match one.strip_prefix('-') {
        Some(pointer) => (pointer, true),
        None => (one.as_str(), false),
    });
    let sort: Vec<_> = sort.collect();
    let connection = args.server.connect()?;
    let (mut left, mut found, mut scanned) = (args.limit.unwrap_or(u64::MAX), 0, 0);
    let mut after = None;
    loop {
        let limit = u32::try_from(left).unwrap_or(PAGE).min(PAGE);
        let query = DocumentQuery {
            filter: filter.clone(),
            prefix: &args.prefix,
            sort: sort.clone(),
            limit: Some(limit),
            after: after.as_deref(),
        };
        let page = page(&connection, &query, args.keys, out).await?;
        left -= page.found;
        found += page.found;
        scanned += page.scanned;
        after = page.next;
        if after.is_none() || left == 0 {
            break;
        }
    }
    if found == 0 {
        // An index may have said that there is none to look at.
        let none =
            if scanned == 0 { "no document".to_owned() } else { format!("none of {scanned} documents") };
        out.note(&format!("{none} in namespace {} matches", connection.namespace));
    }
    Ok(())
}

/// A page that was printed.
struct Printed {
    found: u64,
    scanned: u64,
    next: Option<String>,
}

async fn page(
    connection: &Connection,
    query: &DocumentQuery<'_>,
    is_keys: bool,
    out: Out,
) -> Result<Printed> {
    if is_keys {
        let page = connection.client.document_query_keys(query).await.map_err(|e| connection.error(&e))?;
        let line = |one: &DocumentVersion| format!("{}\n", one.key);
        return printed(page, line, out);
    }
    let page = connection.client.document_query(query).await.map_err(|e| connection.error(&e))?;
    printed(page, line, out)
}

fn printed<T: serde::Serialize>(
    page: DocumentsFound<T>,
    line: impl Fn(&T) -> String,
    out: Out,
) -> Result<Printed> {
    out.list(&page.documents, |all| all.iter().map(line).collect())?;
    Ok(Printed { found: page.documents.len() as u64, scanned: page.scanned, next: page.next })
}

/// The key and the content of a document, as an object of JSON on one line.
fn line(document: &Document) -> String {
    // Between the values of JSON a line end is a blank, and within texts there is none.
    let content = String::from_utf8_lossy(&document.content).replace(['\n', '\r'], " ");
    format!("{{\"key\":{},\"content\":{}}}\n", Value::from(document.about.key.as_str()), content.trim())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_one_line() {
        let about = json!({
            "key": "a\"b", "version": 1, "etag": "7", "changed_at_ms": 1, "content_bytes": 2, "history": 0,
            "content": " {\r\n \"a\":\n\"x\\n\"}\n",
        });
        let document: Document = serde_json::from_value(about).unwrap();
        assert_eq!(line(&document), "{\"key\":\"a\\\"b\",\"content\":{   \"a\": \"x\\n\"}}\n");
    }
}

//! `sluice doc index`.

use clap::Subcommand;
use serde_json::json;
use sluice_client::DocumentIndex;

use super::connect::ServerFlags;
use super::output::Table;
use super::{Out, Result};

#[derive(Debug, Subcommand)]
pub(crate) enum IndexVerb {
    /// List the indexes of documents.
    List {
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Declare an index; one with this name and another pointer is replaced.
    #[command(after_help = "Example:\n  sluice doc index put state /state\n\n\
        Queries whose filter needs a value at this place use it as soon as it knows all documents.")]
    Put {
        /// Name of the index.
        name: String,
        /// JSON pointer (RFC 6901) of the values by which documents are found.
        pointer: String,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Delete an index.
    Delete {
        /// Name of the index.
        name: String,
        #[command(flatten)]
        server: ServerFlags,
    },
}

pub(super) async fn run(verb: IndexVerb, out: Out) -> Result<()> {
    match verb {
        IndexVerb::List { server } => {
            let connection = server.connect()?;
            let indexes = connection.client.document_indexes().await.map_err(|e| connection.error(&e))?;
            out.list(&indexes, table)?;
            if indexes.is_empty() {
                out.note(&format!("no indexes in namespace {}", connection.namespace));
            }
        }
        IndexVerb::Put { name, pointer, server } => {
            let connection = server.connect()?;
            let index = connection.client.document_index_put(&name, &pointer).await;
            out.show(&index.map_err(|e| connection.error(&e))?, |index| format!("{}\n", index.state))?;
        }
        IndexVerb::Delete { name, server } => {
            let connection = server.connect()?;
            connection.client.document_index_delete(&name).await.map_err(|e| connection.error(&e))?;
            out.show(&json!({}), |_| "deleted\n".to_owned())?;
        }
    }
    Ok(())
}

fn table(indexes: &[DocumentIndex]) -> String {
    let mut table = Table::new(&["NAME", "POINTER", "STATE", ">TERMS"]);
    for DocumentIndex { name, pointer, state, terms } in indexes {
        table.row([name.clone(), pointer.clone(), state.clone(), terms.to_string()]);
    }
    table.render()
}

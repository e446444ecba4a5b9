//! `sluice flow` and `sluice group`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;
use sluice_client::{Flow, FlowNode, FlowParent, Group, GroupSent, QueueMessage};

use super::connect::{ReadFlags, ServerFlags};
use super::output::Table;
use super::send::objects::{self, read_all};
use super::send::strict;
use super::{CliError, Out, Result};

#[derive(Debug, Subcommand)]
pub(crate) enum FlowVerb {
    /// Show the messages that a message waits for, the steps that follow it, and as a tree the messages that
    /// wait for it.
    Show {
        /// Id of the message.
        id: String,
        #[command(flatten)]
        server: ReadFlags,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum GroupVerb {
    /// Send messages to several queues, and a callback that is delivered when all of them have ended.
    ///
    /// Prints the id of the group, which is the callback's id, and then the ids of the messages, one per
    /// line.
    Send(SendGroupArgs),
    /// Show the progress of a group.
    Show {
        /// Id of the group, which is the id of its callback.
        group: String,
        #[command(flatten)]
        server: ReadFlags,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    echo '{\"messages\":[{\"queue\":\"mail\",\"payload\":\"ann\"}],\"callback\":{\"queue\":\"reports\",\"payload\":\"all out\"}}' |\n  \
    sluice group send -")]
pub(crate) struct SendGroupArgs {
    /// File with a JSON object as in the HTTP API: a list `messages`, and `callback`; `-`: stdin.
    file: PathBuf,
    /// A repeat with the same key within the server's window sends nothing and prints the ids of the first
    /// send.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) async fn run(verb: FlowVerb, out: Out) -> Result<u8> {
    let FlowVerb::Show { id, server } = verb;
    let connection = server.connect()?;
    let flow = connection.client.flow(&id).await.map_err(|e| connection.error(&e))?;
    out.show(&flow, tree)?;
    Ok(0)
}

pub(super) async fn run_group(verb: GroupVerb, out: Out) -> Result<u8> {
    match verb {
        GroupVerb::Send(args) => {
            let (messages, callback) = read_group(&args.file)?;
            let connection = args.server.connect()?;
            let sent = connection.client.group_send(&messages, &callback, args.idempotency_key.as_deref());
            let sent = sent.await.map_err(|e| connection.error(&e))?;
            if sent.duplicate {
                out.note("this was sent before; nothing was added");
            }
            out.show(&sent, ids)?;
        }
        GroupVerb::Show { group, server } => {
            let connection = server.connect()?;
            let group = connection.client.group(&group).await.map_err(|e| connection.error(&e))?;
            out.show(&group, details)?;
        }
    }
    Ok(0)
}

fn read_group(file: &std::path::Path) -> Result<(Vec<QueueMessage<'static>>, QueueMessage<'static>)> {
    let (text, name) = read_all(file)?;
    let wrong = |why: String| CliError::usage(format!("{name}: {why}"));
    let value = strict::value(&text).map_err(|e| wrong(format!("not a group: {e}")))?;
    let Value::Object(mut fields) = value else {
        return Err(wrong("not a group: expected an object with messages and callback".to_owned()));
    };
    let (messages, callback) = (fields.remove("messages"), fields.remove("callback"));
    if let Some(unknown) = fields.keys().next() {
        return Err(wrong(format!("unknown field {unknown:?}: a group has messages and callback")));
    }
    let (Some(Value::Array(messages)), Some(callback)) = (messages, callback) else {
        return Err(wrong("a group needs messages, a list, and callback".to_owned()));
    };
    let member =
        |(at, value)| objects::queue_message(value).map_err(|why| wrong(format!("messages[{at}]: {why}")));
    let messages = messages.into_iter().enumerate().map(member).collect::<Result<_>>()?;
    Ok((messages, objects::queue_message(callback).map_err(|why| wrong(format!("callback: {why}")))?))
}

fn ids(sent: &GroupSent) -> String {
    std::iter::once(&sent.group).chain(&sent.ids).map(|id| format!("{id}\n")).collect()
}

fn details(group: &Group) -> String {
    let mut about = Table::fields();
    about.field("group", group.group.clone());
    about.field("pending", group.counts.pending.to_string());
    about.field("done", group.counts.done.to_string());
    about.field("dead", group.counts.dead.to_string());
    about.field("callback", group.callback.clone());
    about.render()
}

/// The parents, then the message with the tree of messages that wait for it.
fn tree(flow: &Flow) -> String {
    let mut text: String = flow.parents.iter().map(parent).collect();
    text.push_str(&node(&flow.node));
    branches(&flow.node.children, "", &mut text);
    if flow.truncated {
        text.push_str("The flow is larger than shown.\n");
    }
    text
}

fn parent(parent: &FlowParent) -> String {
    let queue = parent.queue.as_deref().unwrap_or("-");
    let state = parent.state.as_deref().unwrap_or("gone");
    let ended = parent.ended.as_ref().map(|ended| format!(", has ended: {ended}")).unwrap_or_default();
    format!("waits for {} {queue} {state}{ended}\n", parent.id)
}

fn node(node: &FlowNode) -> String {
    let mut text = format!("{} {} {}", node.id, node.queue, node.state);
    if let Some(reason) = &node.reason {
        text.push_str(&format!(" ({reason})"));
    }
    if let Some(group) = &node.group {
        text.push_str(&format!(
            ", group: {} pending, {} done, {} dead",
            group.pending, group.done, group.dead
        ));
    }
    if !node.chain.is_empty() {
        text.push_str(&format!(", then {}", node.chain.join(", ")));
    }
    if let Some(queue) = &node.on_failure {
        text.push_str(&format!(", on failure {queue}"));
    }
    text.push('\n');
    text
}

fn branches(children: &[FlowNode], indent: &str, text: &mut String) {
    for (at, child) in children.iter().enumerate() {
        let last = at + 1 == children.len();
        text.push_str(indent);
        text.push_str(if last { "└─ " } else { "├─ " });
        text.push_str(&node(child));
        branches(&child.children, &format!("{indent}{}", if last { "   " } else { "│  " }), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_shows_who_waits_for_whom() {
        let flow: Flow = serde_json::from_str(
            r#"{"parents":[{"id":"p","ended":"done"},{"id":"r","queue":"a","state":"leased"}],"id":"m","queue":"b",
            "state":"blocked","chain":["c","d"],"on_failure":"e","children":[{"id":"x","queue":"a","state":"held",
            "reason":"parent_failed","children":[{"id":"z","queue":"a","state":"ready"}]},{"id":"y","queue":"a",
            "state":"blocked","group":{"pending":1,"done":2,"dead":0}}],"truncated":true}"#,
        )
        .unwrap();
        let expected = "waits for p - gone, has ended: done\nwaits for r a leased\n\
            m b blocked, then c, d, on failure e\n\
            ├─ x a held (parent_failed)\n│  └─ z a ready\n\
            └─ y a blocked, group: 1 pending, 2 done, 0 dead\n\
            The flow is larger than shown.\n";
        assert_eq!(tree(&flow), expected);
    }
}

//! Sending: the command, and who may send onward.

use sluice_calls::CallError;
use sluice_calls::access::Right;
use sluice_calls::digest::send_digest;
use sluice_engine::chain::Chain;
use sluice_engine::command::{Send, SendItem};
use sluice_engine::{Error, MessageId, NamespaceId};
use sluice_node::{Node, Sending};

use super::permission::Asking;

/// Sends `items` to a queue; an empty key is none.
pub(crate) fn begin(
    node: &Node,
    namespace: NamespaceId,
    queue: &str,
    idempotency_key: &[u8],
    items: &[SendItem<'_>],
) -> Result<Sending, Error> {
    let request_digest = if idempotency_key.is_empty() { 0 } else { send_digest(queue, items) };
    node.begin_send(&Send { namespace, queue, idempotency_key, request_digest, items })
}

/// Whether the caller may also send to the queues that these lead to, for their results and for the steps
/// that follow, and may learn what becomes of the messages that they wait for.
pub(crate) async fn allow_onward<'i>(
    asking: Asking<'_>,
    node: &Node,
    namespace: NamespaceId,
    items: impl IntoIterator<Item = &'i SendItem<'i>> + Clone,
) -> Result<(), CallError> {
    if asking.caller.may_everywhere(Right::Send, asking.namespace) {
        return Ok(());
    }
    allow_queues(asking, items.clone())?;
    asking.allow_messages(node, namespace, Right::Result, parents(items).into_iter()).await
}

/// The messages that these wait for.
pub(crate) fn parents<'i>(items: impl IntoIterator<Item = &'i SendItem<'i>>) -> Vec<MessageId> {
    let parents = |item: &SendItem<'i>| item.options.and_then(|options| options.depends_on);
    items.into_iter().filter_map(parents).flat_map(|parents| parents.ids()).collect()
}

/// The same of items that wait for no other messages.
pub(crate) fn allow_queues<'i>(
    asking: Asking<'_>,
    items: impl IntoIterator<Item = &'i SendItem<'i>>,
) -> Result<(), CallError> {
    for options in items.into_iter().filter_map(|item| item.options) {
        if !options.reply_to.is_empty() {
            asking.allow_queue(Right::Send, options.reply_to)?;
        }
        if let Chain::Given(steps) = options.chain {
            for step in steps.steps.iter().chain(steps.on_failure) {
                asking.allow_queue(Right::Send, step.queue)?;
                allow_queues(asking, [&step.item])?;
            }
        }
    }
    Ok(())
}

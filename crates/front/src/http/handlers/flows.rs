//! Messages that wait for others, and how a message hangs together with those.

use http::StatusCode;
use http::response::Response;
use sluice_calls::CallError;
use sluice_engine::Error;
use sluice_engine::flow::{FlowNode, FlowParent};
use sluice_engine::id::MessageId;

use super::groups::write_counts;
use crate::http::route::call::Call;
use crate::json::{Object, object, push_text};
use crate::net::body::Body;
use crate::net::respond;

/// `GET P/flows/{id}`
pub(crate) async fn show(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let id: MessageId = call.name.parse()?;
    if id.namespace != call.namespace_id()? {
        return Err(Error::MessageNotFound { id: id.to_string() }.into());
    }
    let view = call.node().flow(id).await?;
    let mut out = Vec::with_capacity(512);
    object(&mut out, |o| {
        o.list("parents", &view.parents, |out, parent| object(out, |o| write_parent(o, parent)));
        write_node(o, &view.node);
        o.boolean("truncated", view.truncated);
    });
    Ok(respond::json(StatusCode::OK, out))
}

fn write_parent(o: &mut Object<'_>, parent: &FlowParent) {
    o.ascii("id", &parent.id.to_text());
    if let Some((queue, state)) = &parent.here {
        o.text("queue", queue);
        o.text("state", state.name());
    }
    if let Some(done) = parent.done {
        o.text("ended", if done { "done" } else { "failed" });
    }
}

fn write_node(o: &mut Object<'_>, node: &FlowNode) {
    o.ascii("id", &node.id.to_text());
    o.text("queue", &node.queue);
    o.text("state", node.state.name());
    if let Some(reason) = node.reason {
        o.text("reason", reason);
    }
    if !node.chain.is_empty() {
        o.list("chain", &node.chain, |out, queue| push_text(out, queue));
    }
    if let Some(queue) = &node.on_failure {
        o.text("on_failure", queue);
    }
    if let Some(group) = &node.group {
        o.object("group", |o| write_counts(o, group));
    }
    if !node.children.is_empty() {
        o.list("children", &node.children, |out, child| object(out, |o| write_node(o, child)));
    }
}

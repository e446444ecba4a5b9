//! Messages that wait for others, and how a message hangs together with those.

use http::StatusCode;
use http::response::Response;
use sluice_calls::CallError;
use sluice_engine::Error;
use sluice_engine::flow::{FlowNode, FlowParent};
use sluice_engine::id::MessageId;
use sluice_engine::limits::PARENTS_MAX;
use sluice_engine::options::DependsOn;

use super::call::Call;
use super::groups::write_counts;
use crate::json::{Fault, Object, Read, Reader, clip, object, push_text};
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

/// The parents of a message, as they were read.
#[derive(Debug, Default)]
pub(crate) struct Parents {
    /// Each as [`DependsOn::id_bytes`] gives it.
    pub(crate) ids: Vec<[u8; 12]>,
    /// Places in the send, as little-endian bytes.
    pub(crate) places: Vec<[u8; 4]>,
}

impl Parents {
    /// Reads a list of ids, and of places like `"#0"`.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Read<Parents> {
        let mut parents = Parents::default();
        let mut count = 0u64;
        reader.array(|reader, _| {
            count += 1;
            let text = reader.string()?;
            let text = text.get(reader.scratch());
            if count <= PARENTS_MAX as u64 {
                parents.add(text)?;
            }
            Ok(())
        })?;
        if !(1..=PARENTS_MAX as u64).contains(&count) {
            return Err(Fault::invalid(format!("expected 1 to {PARENTS_MAX} ids, got {count}")));
        }
        Ok(parents)
    }

    fn add(&mut self, text: &str) -> Read<()> {
        if let Some(place) = text.strip_prefix('#') {
            let digits = !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit());
            let place: Option<u32> = if digits { place.parse().ok() } else { None };
            let reason = || {
                format!(
                    "{:?} is not the place of a message in this send: use \"#0\" for its first",
                    clip(text)
                )
            };
            let place = place.ok_or_else(|| Fault::invalid(reason()))?;
            self.places.push(place.to_le_bytes());
        } else {
            self.ids.push(DependsOn::id_bytes(text.parse::<MessageId>()?));
        }
        Ok(())
    }
}

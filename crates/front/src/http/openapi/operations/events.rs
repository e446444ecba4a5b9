//! What operations that stream events do.

use sluice_calls::Operation;

use super::{Content, Description, Kind, PLAIN, Parameter, answer, header, query};

pub(super) fn events(operation: Operation) -> Description {
    let types = query("types", Kind::Text, "Types of events with commas between them; default: all");
    let after =
        query("after", Kind::Text, "The id of the last event that came; Last-Event-ID goes before it");
    let last = header("Last-Event-ID", Kind::Text, "The id of the last event that came, as browsers send it");
    let mut parameters: Vec<Parameter> = vec![types, after, last];
    if operation == Operation::Events {
        let pattern = "Only queues whose names match; * stands for any number of characters";
        parameters.push(query("queue", Kind::Text, pattern));
    }
    let answers = vec![answer(200, "What happens, as it happens", Content::Events("Event"))];
    Description { parameters, answers, ..PLAIN }
}

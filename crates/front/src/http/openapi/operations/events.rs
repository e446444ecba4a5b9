//! What operations that stream events do.

use super::{Content, Description, Kind, PLAIN, Parameter, answer, header, query};
use crate::http::route::table::Operation;

const ABOUT: &str = "Server-sent events, for as long as the client reads: the JSON of each is an Event. Whoever comes back with \
                     the id of the last one gets what has happened since, or is told by a gap what is not to be had.";

pub(super) fn events(operation: Operation) -> Description {
    let types = query("types", Kind::Text, "Types of events with commas between them; default: all");
    let after =
        query("after", Kind::Text, "The id of the last event that came; Last-Event-ID goes before it");
    let last = header("Last-Event-ID", Kind::Text, "The id of the last event that came, as browsers send it");
    let mut parameters: Vec<Parameter> = vec![types, after, last];
    let summary = match operation {
        Operation::Events => {
            let pattern = "Only queues whose names match; * stands for any number of characters";
            parameters.push(query("queue", Kind::Text, pattern));
            "Watch what happens to the messages of a namespace"
        }
        _ => "Watch what happens to the messages of a queue",
    };
    let answers = vec![answer(200, "What happens, as it happens", Content::Events("Event"))];
    Description { summary, about: ABOUT, parameters, answers, ..PLAIN }
}

//! `sluice events`.

use clap::Args;
use sluice_client::{Event, WatchOptions};

use super::connect::ServerFlags;
use super::format::{counted, time};
use super::outage::Outage;
use super::{Out, Result, number};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice events emails\n  sluice events --types died,dropped --match 'mail.*'\n  \
                  sluice events --json | jq -r .type\n\n\
                  After a broken connection the command continues after the last event. Events that it has missed, \
                  because it was too slow or disconnected for too long, are reported as a gap."
)]
pub(crate) struct EventsArgs {
    /// Queue to watch [default: all queues of the namespace].
    queue: Option<String>,
    /// Only events of these types, such as sent,acked,died.
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    types: Vec<String>,
    /// Only queues whose names match; * stands for any number of characters.
    #[arg(long = "match", value_name = "PATTERN", conflicts_with = "queue")]
    pattern: Option<String>,
    /// Begin after this event, the `event_id` of --json.
    #[arg(long, value_name = "ID")]
    since: Option<String>,
    /// End after this number of events.
    #[arg(long, value_name = "N", value_parser = number(1u64..))]
    max: Option<u64>,
    #[command(flatten)]
    server: ServerFlags,
}

/// Prints events until it is interrupted.
pub(super) async fn run(args: EventsArgs, out: Out) -> Result<u8> {
    let EventsArgs { queue, types, pattern, since, max, server } = args;
    let connection = server.connect()?;
    let mut watch = connection.client.watch(WatchOptions { queue, pattern, types, after: since });
    let (mut count, mut outage) = (0, Outage::default());
    while max.is_none_or(|max| count < max) {
        let event = match watch.next().await {
            Ok(event) => event,
            Err(error) => {
                outage.begins(&connection, &error, watch.has_begun(), out)?;
                continue;
            }
        };
        outage.ends(&connection, out);
        count += 1;
        out.show(&event, line)?;
    }
    Ok(0)
}

fn line(event: &Event) -> String {
    if event.kind == "gap" {
        return gap(event);
    }
    let at = event.at_ms.map_or_else(String::new, time);
    let what = match (&event.id, event.messages) {
        (Some(id), _) => id.clone(),
        (None, Some(messages)) => counted(messages, "message"),
        (None, None) => String::new(),
    };
    let queue = event.queue.as_deref().unwrap_or_default();
    let text = format!("{at}  {:<9}  {what:<20}  {queue}{}", event.kind, details(event));
    format!("{}\n", text.trim_end())
}

fn details(event: &Event) -> String {
    let parts = [
        event.from_queue.as_ref().map(|from| format!("from {from}")),
        event.attempt.map(|attempt| format!("attempt {attempt}")),
        event.consumer.as_ref().map(|consumer| format!("to consumer {consumer}")),
        event.lease_until_ms.or(event.ready_at_ms).map(|until| format!("until {}", time(until))),
        event.reason.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) }
}

fn gap(event: &Event) -> String {
    let lost = event.lost.map_or_else(|| "events".to_owned(), |lost| counted(lost, "event"));
    let why = match event.reason.as_deref().unwrap_or_default() {
        "slow" => "this reader was too slow",
        "window" => "the connection was lost for too long",
        "unwatched" => "events are not kept while nobody reads them",
        "restarted" => "the server was restarted",
        other => other,
    };
    format!("gap: {lost} missed, {why}\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(event: serde_json::Value) -> String {
        line(&serde_json::from_value(event).unwrap())
    }

    #[test]
    fn an_event_is_a_line() {
        let id = "00000081k7pvm120000g";
        assert_eq!(
            shown(
                json!({"type": "delivered", "at_ms": 1_767_225_600_000_u64, "queue": "mail", "id": id, "attempt": 2,
                "lease_until_ms": 1_767_225_630_000_u64, "consumer": "7"})
            ),
            "2026-01-01 00:00:00Z  delivered  00000081k7pvm120000g  mail: attempt 2, to consumer 7, until \
            2026-01-01 00:00:30Z\n"
        );
        assert_eq!(
            shown(
                json!({"type": "dropped", "at_ms": 1_767_225_600_000_u64, "queue": "mail", "messages": 13, "reason": "purged"})
            ),
            "2026-01-01 00:00:00Z  dropped    13 messages           mail: purged\n"
        );
        assert_eq!(
            shown(json!({"type": "gap", "reason": "slow", "lost": 1})),
            "gap: 1 event missed, this reader was too slow\n"
        );
        assert_eq!(
            shown(json!({"type": "gap", "reason": "restarted"})),
            "gap: events missed, the server was restarted\n"
        );
    }
}

//! The body of a receive, which may be a part of a transaction.

use std::time::Duration;

use crate::encode::{millis, number, separated, string};
use crate::message::Receive;

/// The transaction that messages are received in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Enlisting<'a> {
    /// None.
    Apart,
    /// An open one.
    In(&'a str),
    /// One that is begun for them, and is open for so long.
    Begin(Duration),
}

/// The body of a receive; the queues go into it unless the path names the only one.
pub(crate) fn body(receive: &Receive, with_queues: bool, enlisting: Enlisting<'_>) -> String {
    let mut out = String::with_capacity(96);
    number("{\"max\":", u64::from(receive.max), &mut out);
    number(",\"wait_ms\":", millis(receive.wait), &mut out);
    if let Some(lease) = receive.lease {
        number(",\"lease_ms\":", millis(lease), &mut out);
    }
    if !receive.consumer.is_empty() {
        out.push_str(",\"consumer\":");
        string(&receive.consumer, &mut out);
    }
    match enlisting {
        Enlisting::Apart => {}
        Enlisting::In(transaction) => {
            out.push_str(",\"transaction\":");
            string(transaction, &mut out);
        }
        Enlisting::Begin(ttl) => number(",\"transaction_ttl_ms\":", millis(ttl), &mut out),
    }
    if with_queues {
        out.push_str(",\"queues\":[");
        separated(&receive.queues, &mut out, |(name, weight), out| {
            if *weight == 0 {
                return string(name, out);
            }
            out.push_str("{\"name\":");
            string(name, out);
            number(",\"weight\":", u64::from(*weight), out);
            out.push('}');
        });
        out.push(']');
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(receive: &Receive, with_queues: bool, enlisting: Enlisting<'_>) -> Value {
        serde_json::from_str(&body(receive, with_queues, enlisting)).unwrap()
    }

    #[test]
    fn a_receive_names_its_queues_with_weights_and_its_transaction() {
        let what = Receive::from_queues(vec![("a".into(), 0), ("b".into(), 3)]).max(2);
        let expected = json!({"max": 2, "wait_ms": 0, "queues": ["a", {"name": "b", "weight": 3}]});
        assert_eq!(written(&what, true, Enlisting::Apart), expected);
        assert_eq!(written(&what, false, Enlisting::Apart), json!({"max": 2, "wait_ms": 0}));
        let expected = json!({"max": 2, "wait_ms": 0, "transaction": "\"t"});
        assert_eq!(written(&what, false, Enlisting::In("\"t")), expected);
        let expected = json!({"max": 2, "wait_ms": 0, "transaction_ttl_ms": 60_000});
        assert_eq!(written(&what, false, Enlisting::Begin(Duration::from_secs(60))), expected);
    }
}

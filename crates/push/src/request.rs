//! A message as a request to an endpoint.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body_util::Full;
use sluice_engine::blob::MessageBlob;
use sluice_engine::push::PushHeaders;
use sluice_node::Delivered;

use crate::secret::Signer;
use crate::target::Target;

/// Headers of messages that are passed on under their own names (W3C Trace Context).
const TRACE: [&str; 2] = ["traceparent", "tracestate"];
/// The beginning of the names under which the others are.
const HEADER_PREFIX: &str = "sluice-header-";
/// The content type of a message that has none.
const OCTETS: &str = "application/octet-stream";
/// Headers that a setting cannot set: those of the connection, of the request itself, and those that would
/// be shown to whoever may see the queue.
const NOT_TO_SET: [&str; 14] = [
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Checks a header of the settings.
///
/// # Errors
/// What would be right.
pub(crate) fn check_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let own = ["webhook-", "sluice-"].iter().any(|prefix| name.starts_with(prefix));
    if NOT_TO_SET.contains(&name) || own || TRACE.contains(&name) {
        return Err(format!(
            "{name} cannot be set: the server sets it, or it would be shown to whoever may see the queue"
        ));
    }
    if name.chars().any(|c| c.is_ascii_uppercase()) {
        return Err(format!("expected the name in small letters: {}", name.to_ascii_lowercase()));
    }
    let parsed = name.parse().map_err(|_| format!("{name:?} is no name of a header"))?;
    let value = HeaderValue::from_str(value)
        .map_err(|_| format!("the value of {name} has characters that no header has"))?;
    Ok((parsed, value))
}

/// The parts of a request that all messages of a queue share.
#[derive(Debug)]
pub(crate) struct Template {
    signer: Signer,
    headers: HeaderMap,
    path: String,
}

impl Template {
    pub(crate) fn new(target: &Target, signer: Signer, headers: &PushHeaders, agent: &str) -> Template {
        let mut all = HeaderMap::new();
        let mut put = |name: HeaderName, text: &str| {
            if let Ok(value) = HeaderValue::from_str(text) {
                all.insert(name, value);
            }
        };
        put(HOST, target.authority());
        put(USER_AGENT, agent);
        for (name, value) in headers.0.iter() {
            // They were checked when they were set.
            if let Ok((name, value)) = check_header(name, value) {
                all.insert(name, value);
            }
        }
        Template { signer, headers: all, path: target.path().to_owned() }
    }

    /// The request for a message, at a time in seconds since the Unix epoch. `None`: the message cannot be
    /// read.
    pub(crate) fn request(&self, message: &Delivered, at_s: u64) -> Option<Request<Full<Bytes>>> {
        let blob = MessageBlob::parse(&message.blob)?;
        let body = message.blob.slice(message.blob.len() - blob.payload.len()..);
        let (id, timestamp) = (message.delivery.receipt.id.to_string(), at_s.to_string());
        let mut request = Request::post(&self.path).body(Full::new(body.clone())).ok()?;
        let headers = request.headers_mut();
        headers.extend(self.headers.clone());
        let content_type = HeaderValue::from_str(blob.content_type).ok();
        let content_type = content_type.filter(|text| !text.is_empty());
        headers.insert(CONTENT_TYPE, content_type.unwrap_or(HeaderValue::from_static(OCTETS)));
        headers.insert(CONTENT_LENGTH, body.len().into());
        let details = message.details.iter().flat_map(|details| &details.headers);
        let own = details.map(|(name, value)| (&**name, &**value));
        pass_on(headers, without(blob.headers(), own.clone()));
        pass_on(headers, own);
        let mut put = |name: &'static str, text: &str| {
            if let Ok(value) = HeaderValue::from_str(text) {
                headers.insert(name, value);
            }
        };
        put("sluice-queue", &message.queue);
        put("sluice-attempt", &message.delivery.attempt.to_string());
        put("webhook-id", &id);
        put("webhook-timestamp", &timestamp);
        let signature = self.signer.sign(&id, &timestamp, &body);
        if !signature.is_empty() {
            put("webhook-signature", &signature);
        }
        Some(request)
    }
}

/// Puts in headers of a message, as far as HTTP can have them.
fn pass_on<'a>(headers: &mut HeaderMap, of_message: impl Iterator<Item = (&'a str, &'a str)>) {
    for (name, value) in of_message {
        let lower = name.to_ascii_lowercase();
        let is_trace = TRACE.contains(&lower.as_str());
        let name = if is_trace { lower } else { format!("{HEADER_PREFIX}{lower}") };
        match (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            (Ok(name), Ok(value)) if is_trace => drop(headers.insert(name, value)),
            // Names of a message may differ in nothing but small and large letters.
            (Ok(name), Ok(value)) => drop(headers.append(name, value)),
            _ => {}
        }
    }
}

/// The headers of a sender but those with names of the server's own, which count alone.
fn without<'a>(
    of_sender: impl Iterator<Item = (&'a str, &'a str)>,
    own: impl Iterator<Item = (&'a str, &'a str)> + Clone,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    of_sender.filter(move |(name, _)| !own.clone().any(|(other, _)| other.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_cannot_speak_in_the_name_of_a_header_of_the_server() {
        let of_sender = [("Sluice-Dead", "0"), ("to", "ann")].into_iter();
        let left: Vec<_> = without(of_sender, [("sluice-dead", "1")].into_iter()).collect();
        assert_eq!(left, [("to", "ann")]);
    }

    #[test]
    fn headers_that_differ_in_case_are_all_passed_on_but_for_a_trace() {
        let mut headers = HeaderMap::new();
        pass_on(
            &mut headers,
            [("a", "1"), ("A", "3"), ("traceparent", "x"), ("TraceParent", "y")].into_iter(),
        );
        let all: Vec<&HeaderValue> = headers.get_all("sluice-header-a").iter().collect();
        assert_eq!(all, ["1", "3"]);
        assert_eq!(headers.get_all("traceparent").iter().count(), 1);
    }

    #[test]
    fn headers_of_the_server_and_secrets_cannot_be_set() {
        for name in
            ["authorization", "host", "webhook-id", "sluice-queue", "traceparent", "Accept", "a b", "ä"]
        {
            assert!(check_header(name, "v").is_err(), "{name}");
        }
        assert!(check_header("x-a", "v\n").is_err());
        assert!(check_header("x-a", "v").is_ok());
    }
}

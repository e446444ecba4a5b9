//! The meaning of an answer: what becomes of the message.

use std::time::{Duration, SystemTime};

use http::header::{LOCATION, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use sluice_engine::limits::ERROR_TEXT_BYTES_MAX;

/// Shortest delay that an answer gets: an endpoint that says "now" is busy all the same.
pub const DELAY_MIN: Duration = Duration::from_secs(1);
/// Longest delay that an answer asks for and gets.
pub const DELAY_MAX: Duration = Duration::from_secs(3_600);
/// Most characters of an answer's body, or of an address as it is written in an error, that the error tells.
pub(crate) const EXCERPT_CHARS_MAX: usize = 512;

/// Effect of an answer on the message that was pushed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The endpoint has taken it: it is acked.
    Taken,
    /// The endpoint wants it later, and nothing before then: it is released with a delay, and the attempt
    /// does not count.
    Later {
        /// Time until then.
        delay: Duration,
        /// The reason, for people.
        error: String,
    },
    /// The endpoint is gone for good: the message is released, and the queue's pushes are paused.
    Gone {
        /// The reason, for people.
        error: String,
    },
    /// The attempt has failed: it is nacked, and the queue's rules decide.
    Failed {
        /// The reason, for people.
        error: String,
    },
}

impl Verdict {
    /// The verdict of an answer with this head and these first bytes of its body.
    pub fn of(status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Verdict {
        if status.is_success() {
            return Verdict::Taken;
        }
        let error = told(status, headers, body);
        match status {
            StatusCode::GONE => Verdict::Gone { error },
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                match retry_after(headers, now) {
                    Some(delay) => Verdict::Later { delay, error },
                    None => Verdict::Failed { error },
                }
            }
            _ => Verdict::Failed { error },
        }
    }
}

/// The delay that an answer asks for (RFC 9110 §10.2.3), from [`DELAY_MIN`] to [`DELAY_MAX`].
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let delay = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        // A time that is past asks for nothing.
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(delay.clamp(DELAY_MIN, DELAY_MAX))
}

/// An error that fits into a settlement.
pub(crate) fn cut(mut error: String) -> String {
    error.truncate(error.floor_char_boundary(ERROR_TEXT_BYTES_MAX));
    error
}

fn told(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> String {
    let status_text = match status.canonical_reason() {
        Some(reason) => format!("HTTP {} {reason}", status.as_str()),
        None => format!("HTTP {}", status.as_str()),
    };
    if status.is_redirection()
        && let Some(to) = headers.get(LOCATION)
    {
        // Behind the escapes: each may be ten characters for one.
        let to = String::from_utf8_lossy(to.as_bytes());
        let to: String = to.trim().escape_debug().take(EXCERPT_CHARS_MAX).collect();
        return format!("{status_text}: redirects are not followed (to \"{to}\"): set the address itself");
    }
    let text: String = String::from_utf8_lossy(body).trim().chars().take(EXCERPT_CHARS_MAX).collect();
    match text {
        body if body.is_empty() => status_text,
        body => format!("{status_text}: {body}"),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn verdict(status: u16, headers: &[(http::HeaderName, &'static str)], body: &str) -> Verdict {
        let headers = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        let status = StatusCode::from_u16(status).unwrap();
        Verdict::of(status, &headers.collect(), body.as_bytes(), SystemTime::UNIX_EPOCH)
    }

    fn failed(error: &str) -> Verdict {
        Verdict::Failed { error: error.to_owned() }
    }

    #[test]
    fn each_status_has_a_verdict() {
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(verdict(status, &[], "x"), Verdict::Taken);
        }
        assert_eq!(verdict(500, &[], " boom\n"), failed("HTTP 500 Internal Server Error: boom"));
        assert_eq!(verdict(404, &[], ""), failed("HTTP 404 Not Found"));
        let moved =
            "HTTP 302 Found: redirects are not followed (to \"http://10.0.0.1/\"): set the address itself";
        assert_eq!(verdict(302, &[(LOCATION, "http://10.0.0.1/")], "x"), failed(moved));
        assert_eq!(verdict(410, &[], ""), Verdict::Gone { error: "HTTP 410 Gone".to_owned() });
        assert_eq!(verdict(304, &[], ""), failed("HTTP 304 Not Modified"));
        assert_eq!(verdict(599, &[], "x"), failed("HTTP 599: x"));
    }

    #[test]
    fn an_endpoint_that_is_busy_says_for_how_long() {
        let later = |status, value| match verdict(status, &[(RETRY_AFTER, value)], "") {
            Verdict::Later { delay, .. } => Some(delay.as_secs()),
            Verdict::Failed { .. } => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(later(429, "7"), Some(7));
        assert_eq!(later(503, "0"), Some(1), "not at once, again and again");
        assert_eq!(later(429, "Thu, 01 Jan 1970 00:00:00 GMT"), Some(1));
        assert_eq!(later(503, "99999999999"), Some(3_600));
        assert_eq!(later(429, "Thu, 01 Jan 1970 00:01:00 GMT"), Some(60));
        assert_eq!(later(429, "soon"), None);
        assert_eq!(later(429, "-1"), None);
        assert_eq!(later(500, "7"), None, "of other statuses the backoff counts");
        assert_eq!(verdict(429, &[], ""), failed("HTTP 429 Too Many Requests"));
    }

    #[test]
    fn a_long_or_binary_body_is_cut() {
        let Verdict::Failed { error } = verdict(500, &[], &"ä".repeat(2_000)) else { panic!() };
        assert_eq!(error.chars().count(), "HTTP 500 Internal Server Error: ".len() + EXCERPT_CHARS_MAX);
        let longest = verdict(500, &[], &"\u{e0001}".repeat(EXCERPT_CHARS_MAX));
        assert!(matches!(longest, Verdict::Failed { error } if error.len() < ERROR_TEXT_BYTES_MAX));
        let to = HeaderValue::from_bytes("\u{e0001}".repeat(EXCERPT_CHARS_MAX).as_bytes()).unwrap();
        let headers = [(LOCATION, to)].into_iter().collect();
        let Verdict::Failed { error } = Verdict::of(StatusCode::FOUND, &headers, b"", SystemTime::UNIX_EPOCH)
        else {
            panic!()
        };
        assert!(error.contains("\\u{e0001}") && error.ends_with("set the address itself"), "{error}");
        assert!(error.len() < 1_024, "{}", error.len());
        assert_eq!(cut("ä".repeat(ERROR_TEXT_BYTES_MAX)), "ä".repeat(ERROR_TEXT_BYTES_MAX / 2));
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        let told = Verdict::of(status, &HeaderMap::new(), &[0xff, b'x'], SystemTime::UNIX_EPOCH);
        assert_eq!(told, failed("HTTP 500 Internal Server Error: \u{fffd}x"));
    }
}

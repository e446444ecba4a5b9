//! Settings of a queue that pushes its messages to an endpoint. The engine keeps them and checks their sizes;
//! who pushes, and how an address has to look, is decided above it.

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::id::{NamespaceId, QueueId};
use crate::rules::{at_most_of, between_of, invalid};
use crate::setting::Setting;
use crate::wire::{Put, Reader};

/// Longest address of an endpoint, in bytes.
pub const PUSH_URL_BYTES_MAX: usize = 2_048;
/// Most secrets that a push is signed with, one signature for each.
pub const PUSH_SECRETS_MAX: usize = 4;
/// Shortest and longest secret, in bytes (Standard Webhooks, "Signature scheme").
pub const PUSH_SECRET_BYTES: (usize, usize) = (24, 64);
/// Shortest and longest time for a push, in milliseconds.
pub const PUSH_TIMEOUT_MS: (u32, u32) = (100, 300_000);
/// Most pushes of a queue at a time.
pub const PUSH_CONCURRENCY_MAX: u16 = 256;
/// Most pushes of a queue in a second.
pub const PUSH_RATE_MAX: u32 = 100_000;
/// Most headers that pushes get.
pub const PUSH_HEADERS_MAX: usize = 16;
/// Longest name or value of such a header, in bytes.
pub const PUSH_HEADER_BYTES_MAX: usize = 1_024;

/// Address of an endpoint; empty: none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PushUrl(pub Box<str>);

/// Secrets that pushes are signed with. `Debug` tells their number alone.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct PushSecrets(pub Arc<[Box<[u8]>]>);

/// Headers that pushes get, by name, each once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PushHeaders(pub Arc<[(Box<str>, Box<str>)]>);

/// A queue that pushes, with what its pusher needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PushView {
    /// Number of its namespace.
    pub namespace: NamespaceId,
    /// Its number.
    pub queue: QueueId,
    /// Its name.
    pub name: Box<str>,
    /// Address of the endpoint; never empty.
    pub url: PushUrl,
    /// Secrets that pushes are signed with.
    pub secrets: PushSecrets,
    /// Longest time for a push, in milliseconds.
    pub timeout_ms: u32,
    /// Pushes at a time.
    pub concurrency: u16,
    /// Pushes in a second; 0: any number.
    pub rate: u32,
    /// Headers that pushes get.
    pub headers: PushHeaders,
    /// True while nothing is pushed: its pushes are paused, or it is as a whole.
    pub paused: bool,
}

impl PushUrl {
    /// True if there is no endpoint.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        at_most_of("bytes", "push_url", self.0.len() as u64, PUSH_URL_BYTES_MAX as u64)?;
        no_controls("push_url", &self.0)
    }
}

impl fmt::Debug for PushSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

impl PushSecrets {
    pub(crate) fn check(&self) -> Result<(), Error> {
        at_most_of("secrets", "push_secrets", self.0.len() as u64, PUSH_SECRETS_MAX as u64)?;
        for (at, secret) in self.0.iter().enumerate() {
            let field = format!("push_secrets[{at}]");
            let (least, most) = PUSH_SECRET_BYTES;
            between_of("bytes", &field, secret.len() as u64, least as u64, most as u64)?;
            if self.0[..at].contains(secret) {
                return Err(invalid(field, "this secret is given twice: give each once".to_owned()));
            }
        }
        Ok(())
    }
}

impl PushHeaders {
    /// Headers by name; of a name that is given twice the first counts.
    pub fn new(mut headers: Vec<(Box<str>, Box<str>)>) -> PushHeaders {
        headers.sort_by(|(one, _), (other, _)| one.cmp(other));
        headers.dedup_by(|(later, _), (earlier, _)| later == earlier);
        PushHeaders(headers.into())
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        at_most_of("headers", "push_headers", self.0.len() as u64, PUSH_HEADERS_MAX as u64)?;
        for (name, value) in self.0.iter() {
            let most = PUSH_HEADER_BYTES_MAX as u64;
            between_of("bytes of a name", "push_headers", name.len() as u64, 1, most)?;
            let field = format!("push_headers.{name}");
            at_most_of("bytes", &field, value.len() as u64, most)?;
            no_controls(&field, name)?;
            no_controls(&field, value)?;
        }
        Ok(())
    }
}

fn no_controls(field: &str, text: &str) -> Result<(), Error> {
    if text.chars().any(char::is_control) {
        return Err(invalid(field, format!("{text:?} has control characters: use text without them")));
    }
    Ok(())
}

fn text16<'a>(reader: &mut Reader<'a>) -> Option<&'a str> {
    std::str::from_utf8(reader.bytes16()?).ok()
}

impl Setting for PushUrl {
    fn write(&self, out: &mut Vec<u8>) {
        out.bytes16(self.0.as_bytes());
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(PushUrl(text16(reader)?.into()))
    }
}

impl Setting for PushSecrets {
    fn write(&self, out: &mut Vec<u8>) {
        out.u8(self.0.len() as u8);
        self.0.iter().for_each(|secret| out.bytes16(secret));
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let count = reader.u8()?;
        (0..count).map(|_| Some(reader.bytes16()?.into())).collect::<Option<_>>().map(PushSecrets)
    }
}

impl Setting for PushHeaders {
    fn write(&self, out: &mut Vec<u8>) {
        out.u8(self.0.len() as u8);
        for (name, value) in self.0.iter() {
            out.bytes16(name.as_bytes());
            out.bytes16(value.as_bytes());
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let count = reader.u8()?;
        let read = |_| Some((text16(reader)?.into(), text16(reader)?.into()));
        Some(PushHeaders::new((0..count).map(read).collect::<Option<_>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(lengths: &[usize]) -> PushSecrets {
        PushSecrets(lengths.iter().map(|length| vec![*length as u8; *length].into()).collect())
    }

    #[test]
    fn sizes_are_checked_to_their_limits() {
        let url = |bytes: usize| PushUrl("x".repeat(bytes).into()).check();
        assert!(url(PUSH_URL_BYTES_MAX).is_ok() && url(PUSH_URL_BYTES_MAX + 1).is_err());
        assert!(PushUrl("https://a\n".into()).check().is_err());
        assert!(secrets(&[]).check().is_ok() && secrets(&[24, 64, 25, 26]).check().is_ok());
        for wrong in [&[23][..], &[65], &[24, 24], &[24, 25, 26, 27, 28]] {
            assert!(secrets(wrong).check().is_err(), "{wrong:?}");
        }
        let headers = |count: usize, bytes: usize| {
            let header = |at: usize| (format!("h{at}").into(), "v".repeat(bytes).into());
            PushHeaders::new((0..count).map(header).collect()).check()
        };
        assert!(headers(PUSH_HEADERS_MAX, PUSH_HEADER_BYTES_MAX).is_ok());
        assert!(headers(PUSH_HEADERS_MAX + 1, 1).is_err());
        assert!(headers(1, PUSH_HEADER_BYTES_MAX + 1).is_err());
        let named = |name: &str| PushHeaders::new(vec![(name.into(), "v".into())]).check();
        assert!(named("").is_err() && named("a\r").is_err() && named("a").is_ok());
    }

    #[test]
    fn secrets_are_not_told() {
        let told = format!("{:?}", secrets(&[24, 30]));
        assert_eq!(told, "2 secrets");
    }
}

//! What a header list has to be, to be a request or trailers (RFC 9113 §8).
//!
//! A list that is not is malformed, an error of its stream. The rules keep a request from meaning one thing here and another
//! behind a proxy: names in lower case, no control characters, no fields of HTTP/1.1 connections, one host, one length.

use crate::emit::Priority;
use crate::hpack::HeaderArena;

/// What was found out about a request whose list is right.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Checked {
    /// How many pseudo-header fields the list begins with.
    pub(super) pseudo_fields: usize,
    /// What the list counts for (RFC 9113 §10.5.1).
    pub(super) list_bytes: u32,
    pub(super) content_length: Option<u64>,
    /// Whether the client may wait for 100 before it sends the body (RFC 9110 §10.1.1).
    pub(super) expects_continue: bool,
    pub(super) priority: Option<Priority>,
}

/// The head of the request that came last.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    pub(super) fields: &'a HeaderArena,
    pub(super) pseudo_fields: usize,
    pub(super) content_length: Option<u64>,
}

impl<'a> RequestHead<'a> {
    /// The method: a token.
    pub fn method(&self) -> &'a [u8] {
        self.pseudo(b":method").unwrap_or_default()
    }

    /// The scheme; none of a plain CONNECT.
    pub fn scheme(&self) -> Option<&'a [u8]> {
        self.pseudo(b":scheme")
    }

    /// The authority, which is not empty if there is one. Else there is a `host` field.
    pub fn authority(&self) -> Option<&'a [u8]> {
        self.pseudo(b":authority")
    }

    /// Path and query, beginning with `/`, or `*`; none of a plain CONNECT.
    pub fn path(&self) -> Option<&'a [u8]> {
        self.pseudo(b":path")
    }

    /// The protocol of an extended CONNECT (RFC 8441 §4).
    pub fn protocol(&self) -> Option<&'a [u8]> {
        self.pseudo(b":protocol")
    }

    /// What `content-length` says, in bytes.
    pub fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    /// The value of the first field of this name, which is in lower case.
    pub fn field(&self, wanted: &[u8]) -> Option<&'a [u8]> {
        self.fields().find(|(name, _)| *name == wanted).map(|(_, value)| value)
    }

    /// The fields in order, without those that begin with a colon.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.fields.iter().skip(self.pseudo_fields)
    }

    fn pseudo(&self, wanted: &[u8]) -> Option<&'a [u8]> {
        let fields: &'a HeaderArena = self.fields;
        fields.iter().take(self.pseudo_fields).find(|(name, _)| *name == wanted).map(|(_, value)| value)
    }
}

/// A head that outlives the next header block, in storage that is used again.
#[derive(Debug, Default)]
pub(crate) struct KeptHead {
    fields: HeaderArena,
    pseudo_fields: usize,
    content_length: Option<u64>,
}

/// Storage that a kept head keeps from one request to the next.
const KEPT_BYTES: usize = 512;
const KEPT_FIELDS: usize = 16;

impl KeptHead {
    pub(crate) fn keep(&mut self, head: RequestHead<'_>) {
        self.fields.copy_from(head.fields);
        self.pseudo_fields = head.pseudo_fields;
        self.content_length = head.content_length;
    }

    pub(crate) fn head(&self) -> RequestHead<'_> {
        RequestHead {
            fields: &self.fields,
            pseudo_fields: self.pseudo_fields,
            content_length: self.content_length,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.fields.clear_to(KEPT_BYTES, KEPT_FIELDS);
    }
}

/// What a field counts for beyond its name and value.
const FIELD_OVERHEAD_BYTES: u32 = 32;

/// What is wrong with a header list.
pub(super) type Malformed = &'static str;

#[derive(Default)]
struct Pseudo<'a> {
    method: Option<&'a [u8]>,
    scheme: Option<&'a [u8]>,
    authority: Option<&'a [u8]>,
    path: Option<&'a [u8]>,
    protocol: Option<&'a [u8]>,
    count: usize,
}

/// Checks the header list of a request (RFC 9113 §8.2, §8.3; RFC 8441 §4).
pub(super) fn check_request(list: &HeaderArena) -> Result<Checked, Malformed> {
    let mut pseudo = Pseudo::default();
    let mut checked = Checked::default();
    let mut host = None;
    let mut in_pseudo = true;
    for (name, value) in list.iter() {
        checked.list_bytes += (name.len() + value.len()) as u32 + FIELD_OVERHEAD_BYTES;
        if name.first() == Some(&b':') {
            if !in_pseudo {
                return Err("a pseudo-header field stands after others");
            }
            pseudo.take(name, value)?;
            continue;
        }
        in_pseudo = false;
        check_field(name, value)?;
        match name {
            b"content-length" => take_length(&mut checked.content_length, value)?,
            b"expect" => checked.expects_continue = value.eq_ignore_ascii_case(b"100-continue"),
            b"host" if host.replace(value).is_some() => return Err("there are two host fields"),
            b"priority" => checked.priority = Some(Priority::parse(value)),
            _ => {}
        }
    }
    pseudo.check(host)?;
    checked.pseudo_fields = pseudo.count;
    Ok(checked)
}

/// Checks the header list of trailers (RFC 9113 §8.1, §8.2).
pub(super) fn check_trailers(list: &HeaderArena) -> Result<(), Malformed> {
    for (name, value) in list.iter() {
        if name.first() == Some(&b':') {
            return Err("a pseudo-header field stands in trailers");
        }
        check_field(name, value)?;
    }
    Ok(())
}

impl<'a> Pseudo<'a> {
    fn take(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), Malformed> {
        let place = match name {
            b":method" => &mut self.method,
            b":scheme" => &mut self.scheme,
            b":authority" => &mut self.authority,
            b":path" => &mut self.path,
            b":protocol" => &mut self.protocol,
            _ => return Err("there is a pseudo-header field that requests do not have"),
        };
        self.count += 1;
        if place.replace(value).is_some() { Err("a pseudo-header field stands there twice") } else { Ok(()) }
    }

    fn check(&self, host: Option<&[u8]>) -> Result<(), Malformed> {
        let method = self.method.ok_or(":method is missing")?;
        if method.is_empty() || !method.iter().all(|&byte| is_token(byte)) {
            return Err(":method is not a token");
        }
        for authority in [self.authority, host].into_iter().flatten() {
            check_authority(authority)?;
        }
        if method == b"CONNECT" && self.protocol.is_none() {
            return self.check_connect();
        }
        if self.protocol.is_some_and(|protocol| method != b"CONNECT" || protocol.is_empty()) {
            return Err(":protocol is empty, or the method is not CONNECT");
        }
        let scheme = self.scheme.ok_or(":scheme is missing")?;
        let starts_right = scheme.first().is_some_and(u8::is_ascii_alphabetic);
        if !starts_right || !scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte)) {
            return Err(":scheme is not a scheme");
        }
        check_path(method, self.path.ok_or(":path is missing")?)?;
        match (self.authority, host) {
            (None, None) => Err("neither :authority nor host is there"),
            (Some(authority), Some(host)) if !authority.eq_ignore_ascii_case(host) => {
                Err(":authority and host differ")
            }
            _ => Ok(()),
        }
    }

    /// RFC 9113 §8.5.
    fn check_connect(&self) -> Result<(), Malformed> {
        if self.scheme.is_some() || self.path.is_some() {
            return Err("CONNECT has no :scheme and no :path");
        }
        self.authority.map(|_| ()).ok_or("CONNECT needs :authority")
    }
}

fn check_path(method: &[u8], path: &[u8]) -> Result<(), Malformed> {
    let starts_right = path.first() == Some(&b'/') || (path == b"*" && method == b"OPTIONS");
    if starts_right && path.iter().all(|&byte| byte > b' ' && byte != 0x7f) {
        Ok(())
    } else {
        Err(":path does not begin with /, or has a character that it may not have")
    }
}

fn check_authority(authority: &[u8]) -> Result<(), Malformed> {
    if !authority.is_empty() && authority.iter().all(|&byte| byte > b' ' && !b"@/?#\x7f".contains(&byte)) {
        Ok(())
    } else {
        Err("the authority is empty, or has a character that it may not have")
    }
}

/// Checks a field by itself (RFC 9113 §8.2.1, §8.2.2).
fn check_field(name: &[u8], value: &[u8]) -> Result<(), Malformed> {
    if name.is_empty() || !name.iter().all(|&byte| is_token(byte) && !byte.is_ascii_uppercase()) {
        return Err("the name of a field has a character that it may not have");
    }
    if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
        return Err("a field has a control character");
    }
    if value.trim_ascii().len() != value.len() {
        return Err("a field begins or ends with white space");
    }
    match name {
        b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
            Err("there is a field that belongs to connections of HTTP/1.1")
        }
        b"te" if value != b"trailers" => Err("te says something else than trailers"),
        _ => Ok(()),
    }
}

fn take_length(length: &mut Option<u64>, value: &[u8]) -> Result<(), Malformed> {
    let digits =
        std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let read: u64 = digits.and_then(|text| text.parse().ok()).ok_or("content-length is not a number")?;
    if length.replace(read).is_some_and(|before| before != read) {
        return Err("there are two content-length fields that differ");
    }
    Ok(())
}

/// Whether a byte may stand in a token (RFC 9110 §5.6.2).
fn is_token(byte: u8) -> bool {
    const TOKEN: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0;
        while byte < 128 {
            table[byte] = (byte as u8).is_ascii_alphanumeric();
            byte += 1;
        }
        let others = b"!#$%&'*+-.^_`|~";
        let mut at = 0;
        while at < others.len() {
            table[others[at] as usize] = true;
            at += 1;
        }
        table
    };
    TOKEN[byte as usize]
}

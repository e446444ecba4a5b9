//! Checks that a header list is a request or trailers (RFC 9113 §8).
//!
//! A list that is not is malformed, an error of its stream. The rules keep a request from meaning one thing
//! here and another behind a proxy: names in lower case, no control characters, no fields of HTTP/1.1
//! connections, one host, one length.

use crate::hpack::HeaderArena;
use crate::streams::Priority;

/// The properties of a request whose header list is valid.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Checked {
    /// Number of pseudo-header fields at the beginning of the list.
    pseudo_fields: u8,
    /// Index of each of them, in the order of [`Pseudo`]; the number of fields, if it is missing.
    places: [u8; PSEUDO_FIELDS],
    /// Size of the list (RFC 9113 §10.5.1).
    pub(super) list_bytes: u32,
    pub(super) content_length: Option<u64>,
    /// True when the client may wait for 100 before it sends the body (RFC 9110 §10.1.1).
    pub(super) expects_continue: bool,
    pub(super) priority: Option<Priority>,
}

/// The head of the last request.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    pub(super) fields: &'a HeaderArena,
    pub(super) checked: &'a Checked,
}

impl<'a> RequestHead<'a> {
    /// Method, a token (RFC 9110 §9.1).
    pub fn method(&self) -> &'a [u8] {
        self.pseudo(Pseudo::Method).unwrap_or_default()
    }

    /// Scheme; `None` of a plain CONNECT.
    pub fn scheme(&self) -> Option<&'a [u8]> {
        self.pseudo(Pseudo::Scheme)
    }

    /// Authority, never empty. `None`: the head has a `host` field instead.
    pub fn authority(&self) -> Option<&'a [u8]> {
        self.pseudo(Pseudo::Authority)
    }

    /// Path and query, which begins with `/` or is `*`; `None` of a plain CONNECT.
    pub fn path(&self) -> Option<&'a [u8]> {
        self.pseudo(Pseudo::Path)
    }

    /// Protocol of an extended CONNECT (RFC 8441 §4).
    pub fn protocol(&self) -> Option<&'a [u8]> {
        self.pseudo(Pseudo::Protocol)
    }

    /// Value of `content-length`, in bytes.
    pub fn content_length(&self) -> Option<u64> {
        self.checked.content_length
    }

    /// Value of the first field with this name, which is in lower case.
    pub fn field(&self, wanted: &[u8]) -> Option<&'a [u8]> {
        self.fields().find(|(name, _)| *name == wanted).map(|(_, value)| value)
    }

    /// The fields in order, without pseudo-header fields.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.fields.iter().skip(self.checked.pseudo_fields.into())
    }

    fn pseudo(&self, wanted: Pseudo) -> Option<&'a [u8]> {
        self.checked.pseudo(self.fields, wanted)
    }
}

/// A copy of a head that outlives the next header block, in reused storage.
#[derive(Debug, Default)]
pub(crate) struct KeptHead {
    fields: HeaderArena,
    checked: Checked,
}

/// Storage that a kept head keeps from one request to the next.
const KEPT_BYTES: usize = 512;
const KEPT_FIELDS: usize = 16;

impl KeptHead {
    pub(crate) fn keep(&mut self, head: RequestHead<'_>) {
        self.fields.copy_from(head.fields);
        self.checked = *head.checked;
    }

    pub(crate) fn head(&self) -> RequestHead<'_> {
        RequestHead { fields: &self.fields, checked: &self.checked }
    }

    pub(crate) fn clear(&mut self) {
        self.fields.clear_to(KEPT_BYTES, KEPT_FIELDS);
    }
}

/// Overhead of a field in bytes, counted beside its name and value.
const FIELD_OVERHEAD_BYTES: u32 = 32;

/// The fault of a header list.
pub(super) type InvalidFields = &'static str;

/// The pseudo-header fields of requests (RFC 9113 §8.3.1; RFC 8441 §4).
#[derive(Clone, Copy)]
enum Pseudo {
    Method,
    Scheme,
    Authority,
    Path,
    Protocol,
}

const PSEUDO_FIELDS: usize = 5;

/// Checks the header list of a request (RFC 9113 §8.2, §8.3; RFC 8441 §4).
pub(super) fn check_request(list: &HeaderArena) -> Result<Checked, InvalidFields> {
    let mut checked = Checked { places: [u8::MAX; PSEUDO_FIELDS], ..Checked::default() };
    let mut host = None;
    let mut in_pseudo = true;
    for (name, value) in list.iter() {
        checked.list_bytes += (name.len() + value.len()) as u32 + FIELD_OVERHEAD_BYTES;
        if name.first() == Some(&b':') {
            if !in_pseudo {
                return Err("a pseudo-header field stands after others");
            }
            checked.take_pseudo(name)?;
            continue;
        }
        in_pseudo = false;
        check_field(name, value)?;
        match name {
            b"content-length" => take_length(&mut checked.content_length, value)?,
            b"expect" => checked.expects_continue = value.eq_ignore_ascii_case(b"100-continue"),
            b"host" if host.replace(value).is_some() => return Err("there are two host fields"),
            // Several are one list (RFC 8941 §4.2).
            b"priority" => {
                checked.priority = Some(checked.priority.unwrap_or(Priority::parse(b"")).and(value));
            }
            _ => {}
        }
    }
    checked.check_pseudo(list, host)?;
    Ok(checked)
}

/// Checks the header list of trailers (RFC 9113 §8.1, §8.2).
pub(super) fn check_trailers(list: &HeaderArena) -> Result<(), InvalidFields> {
    for (name, value) in list.iter() {
        if name.first() == Some(&b':') {
            return Err("a pseudo-header field stands in trailers");
        }
        check_field(name, value)?;
    }
    Ok(())
}

impl Checked {
    fn pseudo<'a>(&self, list: &'a HeaderArena, wanted: Pseudo) -> Option<&'a [u8]> {
        list.value(self.places[wanted as usize].into()).filter(|_| self.has(wanted))
    }

    fn has(&self, wanted: Pseudo) -> bool {
        self.places[wanted as usize] < self.pseudo_fields
    }

    /// Notes the next pseudo-header field.
    fn take_pseudo(&mut self, name: &[u8]) -> Result<(), InvalidFields> {
        let which = match name {
            b":method" => Pseudo::Method,
            b":scheme" => Pseudo::Scheme,
            b":authority" => Pseudo::Authority,
            b":path" => Pseudo::Path,
            b":protocol" => Pseudo::Protocol,
            _ => return Err("there is a pseudo-header field that requests do not have"),
        };
        if self.has(which) {
            return Err("a pseudo-header field stands there twice");
        }
        self.places[which as usize] = self.pseudo_fields;
        self.pseudo_fields += 1;
        Ok(())
    }

    fn check_pseudo(&self, list: &HeaderArena, host: Option<&[u8]>) -> Result<(), InvalidFields> {
        let method = self.pseudo(list, Pseudo::Method).ok_or(":method is missing")?;
        if method.is_empty() || !all(method, class::TOKEN) {
            return Err(":method is not a token");
        }
        let authority = self.pseudo(list, Pseudo::Authority);
        for authority in [authority, host].into_iter().flatten() {
            check_authority(authority)?;
        }
        if let (Some(authority), Some(host)) = (authority, host)
            && !authority.eq_ignore_ascii_case(host)
        {
            return Err(":authority and host differ");
        }
        let protocol = self.pseudo(list, Pseudo::Protocol);
        if method == b"CONNECT" && protocol.is_none() {
            return self.check_connect();
        }
        if protocol.is_some_and(|protocol| method != b"CONNECT" || protocol.is_empty()) {
            return Err(":protocol is empty, or the method is not CONNECT");
        }
        let scheme = self.pseudo(list, Pseudo::Scheme).ok_or(":scheme is missing")?;
        if !scheme.first().is_some_and(u8::is_ascii_alphabetic) || !all(scheme, class::SCHEME) {
            return Err(":scheme is not a scheme");
        }
        check_path(method, self.pseudo(list, Pseudo::Path).ok_or(":path is missing")?)?;
        authority.or(host).map(|_| ()).ok_or("neither :authority nor host is there")
    }

    /// RFC 9113 §8.5.
    fn check_connect(&self) -> Result<(), InvalidFields> {
        if self.has(Pseudo::Scheme) || self.has(Pseudo::Path) {
            return Err("CONNECT has no :scheme and no :path");
        }
        if self.has(Pseudo::Authority) { Ok(()) } else { Err("CONNECT needs :authority") }
    }
}

fn check_path(method: &[u8], path: &[u8]) -> Result<(), InvalidFields> {
    let starts_right = path.first() == Some(&b'/') || (path == b"*" && method == b"OPTIONS");
    if starts_right && all(path, class::PATH) {
        Ok(())
    } else {
        Err(":path does not begin with /, or has a character that it may not have")
    }
}

fn check_authority(authority: &[u8]) -> Result<(), InvalidFields> {
    if !authority.is_empty() && all(authority, class::AUTHORITY) {
        Ok(())
    } else {
        Err("the authority is empty, or has a character that it may not have")
    }
}

/// Checks a field by itself (RFC 9113 §8.2.1, §8.2.2).
fn check_field(name: &[u8], value: &[u8]) -> Result<(), InvalidFields> {
    if name.is_empty() || !all(name, class::NAME) {
        return Err("the name of a field has a character that it may not have");
    }
    if !all(value, class::VALUE) {
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

fn take_length(length: &mut Option<u64>, value: &[u8]) -> Result<(), InvalidFields> {
    let digits =
        std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let read: u64 = digits.and_then(|text| text.parse().ok()).ok_or("content-length is not a number")?;
    if length.replace(read).is_some_and(|before| before != read) {
        return Err("there are two content-length fields that differ");
    }
    Ok(())
}

/// Classes of bytes.
mod class {
    /// In a token (RFC 9110 §5.6.2).
    pub(super) const TOKEN: u8 = 1;
    /// In the name of a field: in a token, in lower case.
    pub(super) const NAME: u8 = 1 << 1;
    /// In the value of a field.
    pub(super) const VALUE: u8 = 1 << 2;
    /// In a path. A fragment is no part of it (RFC 9113 §8.3.1), and would be cut off here, but perhaps not
    /// by a proxy that decides by the path.
    pub(super) const PATH: u8 = 1 << 3;
    /// In an authority.
    pub(super) const AUTHORITY: u8 = 1 << 4;
    /// In a scheme (RFC 3986 §3.1).
    pub(super) const SCHEME: u8 = 1 << 5;

    /// All of that, for each byte.
    pub(super) static OF: [u8; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            table[byte] = of(byte as u8);
            byte += 1;
        }
        table
    };

    const fn of(byte: u8) -> u8 {
        let is_token = byte.is_ascii_alphanumeric() || is_one_of(byte, b"!#$%&'*+-.^_`|~");
        let is_printed = byte > b' ' && byte != 0x7f;
        let mut classes = 0;
        classes |= if is_token { TOKEN } else { 0 };
        classes |= if is_token && !byte.is_ascii_uppercase() { NAME } else { 0 };
        classes |= if is_one_of(byte, b"\0\r\n") { 0 } else { VALUE };
        classes |= if is_printed && byte != b'#' { PATH } else { 0 };
        classes |= if is_printed && !is_one_of(byte, b"@/?#") { AUTHORITY } else { 0 };
        classes | if byte.is_ascii_alphanumeric() || is_one_of(byte, b"+-.") { SCHEME } else { 0 }
    }

    const fn is_one_of(byte: u8, others: &[u8]) -> bool {
        let mut at = 0;
        while at < others.len() {
            if others[at] == byte {
                return true;
            }
            at += 1;
        }
        false
    }
}

/// True when all bytes of a text belong to a class.
fn all(text: &[u8], class: u8) -> bool {
    text.iter().fold(class, |left, &byte| left & class::OF[byte as usize]) != 0
}

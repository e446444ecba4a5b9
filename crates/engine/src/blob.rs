//! The blob of a message: content type, headers and payload, written once and handed out as it is.
//!
//! Layout: `u16` length of the head, then the head (`u8` content type length, content type, `u8` number of
//! headers, each `u16` + name and `u16` + value; a tag is one without a name), then the payload to the end.
//! Integers are little endian. A message without content type and headers has a head of length 0.

/// Heads up to this size are built without an allocation.
const HEAD_BYTES_SMALL: usize = 256;

/// The head of a message's blob, built on the sender's side.
#[derive(Clone, Debug, Default)]
pub struct BlobHead {
    bytes: Vec<u8>,
}

impl BlobHead {
    /// Builds the head into reused memory. Lengths were checked against the limits before.
    pub fn build(&mut self, content_type: &str, headers: &[(&str, &str)]) -> &[u8] {
        self.bytes.resize(BlobHead::len(content_type, headers), 0);
        fill(&mut self.bytes, content_type, headers, &[]);
        &self.bytes
    }

    /// Builds the head, on the stack if it is small, and gives it to `take`.
    #[inline(always)]
    pub(crate) fn with<T>(
        content_type: &str,
        headers: &[(&str, &str)],
        tags: &[&str],
        mut take: impl FnMut(&[u8]) -> T,
    ) -> T {
        if content_type.is_empty() && headers.is_empty() && tags.is_empty() {
            return take(&[0, 0]);
        }
        BlobHead::with_fields(content_type, headers, tags, &mut take)
    }

    #[inline(never)]
    fn with_fields<T>(
        content_type: &str,
        headers: &[(&str, &str)],
        tags: &[&str],
        take: &mut impl FnMut(&[u8]) -> T,
    ) -> T {
        let len = BlobHead::len_tagged(content_type, headers, tags);
        if len > HEAD_BYTES_SMALL {
            let mut large = vec![0; len];
            fill(&mut large, content_type, headers, tags);
            return take(&large);
        }
        let mut small = [0; HEAD_BYTES_SMALL];
        fill(&mut small[..len], content_type, headers, tags);
        take(&small[..len])
    }

    /// Length that [`BlobHead::build`] would give.
    pub fn len(content_type: &str, headers: &[(&str, &str)]) -> usize {
        BlobHead::len_tagged(content_type, headers, &[])
    }

    /// Length of a head with tags.
    #[inline]
    pub fn len_tagged(content_type: &str, headers: &[(&str, &str)], tags: &[&str]) -> usize {
        if content_type.is_empty() && headers.is_empty() && tags.is_empty() {
            return 2;
        }
        4 + content_type.len()
            + headers.iter().map(|(name, value)| 4 + name.len() + value.len()).sum::<usize>()
            + tags.iter().map(|tag| 4 + tag.len()).sum::<usize>()
    }
}

/// Writes a head into memory of its length.
fn fill(mut head: &mut [u8], content_type: &str, headers: &[(&str, &str)], tags: &[&str]) {
    let len = (head.len() - 2) as u16;
    put(&mut head, &len.to_le_bytes());
    if len == 0 {
        return;
    }
    put(&mut head, &[content_type.len() as u8]);
    put(&mut head, content_type.as_bytes());
    // For those who look at the bytes: readers go by the length.
    put(&mut head, &[(headers.len() + tags.len()).min(255) as u8]);
    let tags = tags.iter().map(|tag| ("", *tag));
    for (name, value) in headers.iter().copied().chain(tags) {
        put(&mut head, &(name.len() as u16).to_le_bytes());
        put(&mut head, name.as_bytes());
        put(&mut head, &(value.len() as u16).to_le_bytes());
        put(&mut head, value.as_bytes());
    }
}

#[inline]
fn put(head: &mut &mut [u8], bytes: &[u8]) {
    let (place, rest) = std::mem::take(head).split_at_mut(bytes.len());
    place.copy_from_slice(bytes);
    *head = rest;
}

/// A message's blob as read back.
#[derive(Clone, Copy, Debug)]
pub struct MessageBlob<'a> {
    /// Media type; empty: unstated.
    pub content_type: &'a str,
    headers: &'a [u8],
    /// The payload.
    pub payload: &'a [u8],
}

impl<'a> MessageBlob<'a> {
    /// Reads a blob; `None` if it was not written by [`BlobHead`].
    pub fn parse(blob: &'a [u8]) -> Option<MessageBlob<'a>> {
        let (head_len, rest) = take_u16(blob)?;
        let (head, payload) = rest.split_at_checked(head_len)?;
        if head.is_empty() {
            return Some(MessageBlob { content_type: "", headers: &[], payload });
        }
        let (&type_len, rest) = head.split_first()?;
        let (content_type, rest) = rest.split_at_checked(usize::from(type_len))?;
        let content_type = std::str::from_utf8(content_type).ok()?;
        let (_, headers) = rest.split_first()?;
        Some(MessageBlob { content_type, headers, payload })
    }

    /// Names and values, in the order sent.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.fields().filter(|(name, _)| !name.is_empty())
    }

    /// The tags that it was sent with, in the order given.
    pub fn tags(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.fields().filter(|(name, _)| name.is_empty()).map(|(_, tag)| tag)
    }

    fn fields(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let mut rest = self.headers;
        std::iter::from_fn(move || {
            let name = take_text(&mut rest)?;
            let value = take_text(&mut rest)?;
            Some((name, value))
        })
    }
}

fn take_u16(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (len, rest) = bytes.split_at_checked(2)?;
    Some((usize::from(u16::from_le_bytes([len[0], len[1]])), rest))
}

fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let (len, rest) = take_u16(bytes)?;
    let (text, rest) = rest.split_at_checked(len)?;
    *bytes = rest;
    std::str::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_comes_back_as_written() {
        for (content_type, headers) in
            [("", &[][..]), ("text/plain", &[][..]), ("", &[("traceparent", "00-a"), ("b", "")][..])]
        {
            let mut head = BlobHead::default();
            let mut blob = head.build(content_type, headers).to_vec();
            assert_eq!(blob.len(), BlobHead::len(content_type, headers));
            blob.extend_from_slice(b"payload");
            let read = MessageBlob::parse(&blob).expect("just written");
            assert_eq!(read.content_type, content_type);
            assert_eq!(read.headers().collect::<Vec<_>>(), headers);
            assert_eq!(read.payload, b"payload");
        }
    }

    #[test]
    fn cut_blobs_are_refused() {
        let mut head = BlobHead::default();
        let blob = head.build("text/plain", &[("a", "b")]).to_vec();
        for cut in 0..blob.len() {
            assert!(MessageBlob::parse(&blob[..cut]).is_none(), "cut at {cut}");
        }
    }
}

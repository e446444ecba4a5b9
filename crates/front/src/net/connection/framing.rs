//! Where the body of a request of HTTP/1.1 ends (RFC 9112 §6, §7.1), as far as it takes to find the next
//! head.
//!
//! hyper decodes the body and closes the connection on whatever is not well-formed. So nothing is refused
//! here: of a body that is not well-formed no next head is ever read.

/// The rest of a body that is still to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Framing {
    /// This many bytes.
    Length(u64),
    /// The line with the size of a chunk: its digits so far, and whether more of them may come.
    ChunkSize { bytes: u64, in_digits: bool },
    /// This many bytes of a chunk, the end of its last line included.
    Chunk(u64),
    /// Trailers, up to a line that is empty.
    Trailers { line_is_empty: bool },
}

impl Framing {
    /// The framing of a body whose length is given.
    pub(super) fn length(bytes: u64) -> Framing {
        Framing::Length(bytes)
    }

    /// The framing of a chunked body.
    pub(super) fn chunked() -> Framing {
        Framing::ChunkSize { bytes: 0, in_digits: true }
    }

    /// True if the body has ended.
    pub(super) fn is_over(self) -> bool {
        self == Framing::Length(0)
    }

    /// Passes over what of `bytes` belongs to the body; tells how many these are.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() && !self.is_over() {
            at += match self {
                Framing::Length(left) => pass_up_to(left, bytes.len() - at),
                Framing::Chunk(left) => {
                    let passed = pass_up_to(left, bytes.len() - at);
                    if *left == 0 {
                        *self = Framing::chunked();
                    }
                    passed
                }
                Framing::ChunkSize { .. } | Framing::Trailers { .. } => {
                    self.pass_byte(bytes[at]);
                    1
                }
            };
        }
        at
    }

    /// Passes over a byte of a line.
    fn pass_byte(&mut self, byte: u8) {
        *self = match (*self, byte) {
            (Framing::ChunkSize { bytes: 0, .. }, b'\n') => Framing::Trailers { line_is_empty: true },
            (Framing::ChunkSize { bytes, .. }, b'\n') => Framing::Chunk(bytes.saturating_add(2)),
            (Framing::ChunkSize { bytes, in_digits }, _) => match char::from(byte).to_digit(16) {
                Some(digit) if in_digits => {
                    let bytes = bytes.saturating_mul(16).saturating_add(u64::from(digit));
                    Framing::ChunkSize { bytes, in_digits }
                }
                _ => Framing::ChunkSize { bytes, in_digits: false },
            },
            (Framing::Trailers { line_is_empty: true }, b'\n') => Framing::Length(0),
            (Framing::Trailers { .. }, b'\n') => Framing::Trailers { line_is_empty: true },
            (Framing::Trailers { line_is_empty }, b'\r') => Framing::Trailers { line_is_empty },
            (Framing::Trailers { .. }, _) => Framing::Trailers { line_is_empty: false },
            (other, _) => other,
        };
    }
}

/// Takes from `left` what there is of it; tells how many bytes.
fn pass_up_to(left: &mut u64, there: usize) -> usize {
    let passed = usize::try_from(*left).unwrap_or(usize::MAX).min(there);
    *left -= passed as u64;
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_ends_where_its_length_or_its_last_chunk_says() {
        let chunks = Framing::chunked();
        for (framing, body) in [
            (Framing::length(5), "abcde"),
            (chunks, "0\r\n\r\n"),
            (chunks, "2\r\nab\r\n0\r\n\r\n"),
            (chunks, "00A;x=3\r\n0123456789\r\n2 \r\n\r\n\r\n0\r\n\r\n"),
            (chunks, "1\r\na\r\n0\r\ntrailer: 1\r\nother:\r\n\r\n"),
        ] {
            let bytes = [body.as_bytes(), b"GET / HTTP/1.1"].concat();
            for piece in [1, 3, bytes.len()] {
                let (mut framing, mut passed) = (framing, 0);
                for part in bytes.chunks(piece) {
                    passed += framing.pass(part);
                }
                assert!(framing.is_over(), "{body}");
                assert_eq!(passed, body.len(), "{body}");
            }
        }
    }
}

//! The content codings (RFC 9110 §8.4.1; RFC 8878, RFC 7932, RFC 1952), at levels that cost little more than
//! sending would.

use std::io::Write as _;

use brotli::enc::BrotliEncoderParams;
use flate2::write::GzEncoder;

const ZSTD_LEVEL: i32 = 3;
const BROTLI_QUALITY: i32 = 4;
const GZIP_LEVEL: u32 = 5;

/// A way to make an answer smaller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Coding {
    Zstd,
    Brotli,
    Gzip,
}

impl Coding {
    /// As we like them, best first. Of the description of the API they make a tenth, all three; zstd is made
    /// to be quick at it.
    pub(crate) const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

    /// The coding's name in the IANA registry.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Coding::Zstd => "zstd",
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
        }
    }

    /// The compressed bytes; `None` when the library fails, which it has no reason to.
    pub(crate) fn encode(self, plain: &[u8]) -> Option<Vec<u8>> {
        match self {
            Coding::Zstd => zstd::bulk::compress(plain, ZSTD_LEVEL).ok(),
            Coding::Brotli => brotli(plain),
            Coding::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
                encoder.write_all(plain).ok()?;
                encoder.finish().ok()
            }
        }
    }
}

fn brotli(mut plain: &[u8]) -> Option<Vec<u8>> {
    // A window as large as the text, within what the format has without its extension for large ones.
    let window_bits = plain.len().next_power_of_two().ilog2().clamp(10, 22);
    let parameters = BrotliEncoderParams {
        quality: BROTLI_QUALITY,
        lgwin: window_bits as i32,
        size_hint: plain.len(),
        ..BrotliEncoderParams::default()
    };
    let mut out = Vec::new();
    brotli::BrotliCompress(&mut plain, &mut out, &parameters).ok()?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn decode(coding: Coding, bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        match coding {
            Coding::Zstd => plain = zstd::bulk::decompress(bytes, 1 << 24).unwrap(),
            Coding::Brotli => brotli::BrotliDecompress(&mut &bytes[..], &mut plain).unwrap(),
            Coding::Gzip => drop(flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).unwrap()),
        }
        plain
    }

    #[test]
    fn what_is_compressed_is_smaller_and_comes_back() {
        for len in [0, 1, 1_024, 1_025, 70_000, 1_100_000] {
            let plain: Vec<u8> = (0..len)
                .map(|at: u32| b"{\"queue\":\"mail\",\"ready\":"[at as usize % 24] ^ (at / 9_000) as u8)
                .collect();
            for coding in Coding::ALL {
                let compressed = coding.encode(&plain).unwrap();
                assert!(
                    len < 1_024 || compressed.len() < plain.len() / 4,
                    "{coding:?} {len}: {}",
                    compressed.len()
                );
                assert!(decode(coding, &compressed) == plain, "{coding:?} {len}");
            }
        }
    }
}

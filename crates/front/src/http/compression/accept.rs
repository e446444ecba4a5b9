//! `Accept-Encoding` (RFC 9110 §12.5.3).

use http::header::{ACCEPT_ENCODING, HeaderMap};

use crate::net::compression::coding::Coding;

/// Weights in thousandths, as the client gave them.
#[derive(Debug, Default)]
struct Weights {
    codings: [Option<u16>; Coding::ALL.len()],
    identity: Option<u16>,
    any: Option<u16>,
}

/// The coding that the client likes best, and among equals we; `None`: as it is.
pub(super) fn choose(headers: &HeaderMap) -> Option<Coding> {
    let mut weights = Weights::default();
    for value in headers.get_all(ACCEPT_ENCODING) {
        // A value that is not ASCII names no coding that we know.
        value.to_str().unwrap_or_default().split(',').for_each(|item| weights.take(item));
    }
    weights.best()
}

impl Weights {
    /// Takes `coding` or `coding;q=weight`; one with a malformed weight counts as refused.
    fn take(&mut self, item: &str) {
        let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
        let weight = Some(weight(parameters).unwrap_or(0));
        let name = name.trim().to_ascii_lowercase();
        match name.as_str() {
            "identity" => self.identity = weight,
            "*" => self.any = weight,
            // RFC 9110 §8.4.1.3.
            "x-gzip" => self.codings[Coding::Gzip as usize] = weight,
            _ => {
                if let Some(coding) = Coding::ALL.into_iter().find(|coding| coding.name() == name) {
                    self.codings[coding as usize] = weight;
                }
            }
        }
    }

    fn best(&self) -> Option<Coding> {
        let weight = |coding: Coding| self.codings[coding as usize].or(self.any).unwrap_or(0);
        // Of equals, `max_by_key` gives the last.
        let best = Coding::ALL.into_iter().rev().max_by_key(|coding| weight(*coding))?;
        let wanted = weight(best) > 0 && weight(best) >= self.identity.unwrap_or(0);
        wanted.then_some(best)
    }
}

/// The weight among the parameters (§12.4.2), in thousandths: 1000 without one, `None` when malformed.
pub(in crate::http) fn weight(parameters: &str) -> Option<u16> {
    let parameters = parameters.trim();
    if parameters.is_empty() {
        return Some(1_000);
    }
    let value = parameters.strip_prefix("q=").or_else(|| parameters.strip_prefix("Q="))?;
    let (whole, decimals) = value.split_once('.').unwrap_or((value, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths: u16 = format!("{decimals:0<3}").parse().ok()?;
    match (whole, thousandths) {
        ("0", thousandths) => Some(thousandths),
        ("1", 0) => Some(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(values: &[&str]) -> &'static str {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT_ENCODING, value.parse().unwrap());
        }
        choose(&headers).map_or("", Coding::name)
    }

    #[test]
    fn what_clients_send() {
        assert_eq!(chosen(&[]), "");
        assert_eq!(chosen(&[""]), "");
        assert_eq!(chosen(&["gzip, deflate, br, zstd"]), "zstd", "browsers");
        assert_eq!(chosen(&["gzip, deflate, br"]), "br");
        assert_eq!(chosen(&["deflate, gzip"]), "gzip", "curl --compressed, without the others");
        assert_eq!(chosen(&["deflate"]), "");
        assert_eq!(chosen(&["identity"]), "");
        assert_eq!(chosen(&["*"]), "zstd");
        assert_eq!(chosen(&["GZip"]), "gzip");
        assert_eq!(chosen(&["x-gzip"]), "gzip");
        assert_eq!(chosen(&["gzip", "br"]), "br", "in two lines");
    }

    #[test]
    fn weights_decide() {
        assert_eq!(chosen(&["gzip;q=1.0, zstd;q=0.5"]), "gzip");
        assert_eq!(chosen(&["zstd;q=0, br;q=0.001"]), "br");
        assert_eq!(chosen(&["gzip;q=0.5, *;q=0.7"]), "zstd");
        assert_eq!(chosen(&["zstd;q=0, *"]), "br");
        assert_eq!(chosen(&["*;q=0"]), "");
        assert_eq!(chosen(&["gzip;q=0"]), "");
        assert_eq!(chosen(&["identity, gzip;q=0.9"]), "", "rather as it is");
        assert_eq!(chosen(&["identity;q=0.5, gzip;q=0.5"]), "gzip");
        assert_eq!(chosen(&["gzip ; q=0.8 , br ;q=0.7"]), "gzip", "with spaces");
    }

    #[test]
    fn malformed_weights_refuse() {
        for bad in [
            "gzip;q=2",
            "gzip;q=1.001",
            "gzip;q=0.1234",
            "gzip;q=-1",
            "gzip;q=",
            "gzip;level=9",
            "gzip;q=0.x",
        ] {
            assert_eq!(chosen(&[bad]), "", "{bad}");
        }
        assert_eq!(chosen(&["gzip;q=1.000, ,,;;,"]), "gzip");
    }
}

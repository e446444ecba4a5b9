//! Bytes as text between a line that begins it and one that ends it.

use std::fmt::Write as _;

use data_encoding::BASE64;

/// Bytes under a label as PEM (RFC 7468 §3).
pub(crate) fn pem(label: &str, bytes: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in BASE64.encode(bytes).as_bytes().chunks(64) {
        let _ = writeln!(text, "{}", String::from_utf8_lossy(line));
    }
    let _ = writeln!(text, "-----END {label}-----");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_written_as_pem() {
        let cert = crate::cert::Authority::create("a CA", 1).unwrap().cert;
        let der = sluice_front::tls::first_certificate(cert.as_bytes()).unwrap();
        let again = sluice_front::tls::first_certificate(pem("CERTIFICATE", &der).as_bytes());
        assert_eq!(again.unwrap(), der);
    }
}

//! Secrets, and the signatures that they make (Standard Webhooks, "Signature scheme").

use std::fmt;

use data_encoding::{BASE64, HEXLOWER};
use ring::hmac;
use sha2::{Digest as _, Sha256};
use sluice_engine::push::{PUSH_SECRET_BYTES, PushSecrets};

/// The beginning of a secret as text.
pub const PREFIX: &str = "whsec_";
/// The beginning of the fingerprint of a secret.
pub const FINGERPRINT_PREFIX: &str = "sha256:";
/// Bytes of a hash that a fingerprint tells.
const FINGERPRINT_BYTES: usize = 8;

/// Parses a secret: `whsec_` and the base64 of 24 to 64 bytes.
///
/// # Errors
/// What would be right; without the text, which is to be known by nobody.
pub fn parse(text: &str) -> Result<Box<[u8]>, String> {
    let (least, most) = PUSH_SECRET_BYTES;
    let wrong = || format!("expected {PREFIX} and the base64 of {least} to {most} random bytes");
    let bytes = text.strip_prefix(PREFIX).and_then(|base64| BASE64.decode(base64.as_bytes()).ok());
    bytes.filter(|bytes| (least..=most).contains(&bytes.len())).map(Vec::into_boxed_slice).ok_or_else(wrong)
}

/// The text by which a secret is known without being told.
pub fn fingerprint(secret: &[u8]) -> String {
    format!("{FINGERPRINT_PREFIX}{}", HEXLOWER.encode(&Sha256::digest(secret)[..FINGERPRINT_BYTES]))
}

/// The keys of a queue's secrets.
pub(crate) struct Signer(Vec<hmac::Key>);

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

impl Signer {
    pub(crate) fn new(secrets: &PushSecrets) -> Signer {
        Signer(secrets.0.iter().map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret)).collect())
    }

    /// The value of `webhook-signature`: a signature by each secret; empty without one.
    pub(crate) fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let sign = |key: &hmac::Key| {
            let mut context = hmac::Context::with_key(key);
            [id.as_bytes(), b".", timestamp.as_bytes(), b".", body]
                .iter()
                .for_each(|part| context.update(part));
            format!("v1,{}", BASE64.encode(context.sign().as_ref()))
        };
        self.0.iter().map(sign).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn the_example_of_the_specification_is_signed_as_there() {
        let signer = Signer::new(&PushSecrets([parse(SECRET).unwrap()].into()));
        let signed = signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn each_secret_signs() {
        let two = [parse(SECRET).unwrap(), vec![7; 24].into()];
        let signed = Signer::new(&PushSecrets(two.into())).sign("id", "1", b"");
        let parts: Vec<&str> = signed.split(' ').collect();
        assert_eq!(parts.len(), 2);
        assert!(parts.iter().all(|part| part.starts_with("v1,")) && parts[0] != parts[1]);
        assert_eq!(Signer::new(&PushSecrets::default()).sign("id", "1", b""), "");
    }

    #[test]
    fn secrets_have_a_form_and_a_length() {
        let of = |bytes: usize| format!("{PREFIX}{}", BASE64.encode(&vec![1; bytes]));
        assert!(parse(&of(24)).is_ok() && parse(&of(64)).is_ok());
        for wrong in [&of(23), &of(65), "whsec_", "", &of(24)[PREFIX.len()..], "whsec_%%%%", "WHSEC_AAAA"] {
            let error = parse(wrong).unwrap_err();
            assert_eq!(error, "expected whsec_ and the base64 of 24 to 64 random bytes", "{wrong}");
        }
    }

    #[test]
    fn fingerprints_tell_secrets_apart() {
        let (one, other) = (fingerprint(&[1; 24]), fingerprint(&[2; 24]));
        assert!(one != other && one.len() == FINGERPRINT_PREFIX.len() + 16, "{one}");
    }
}

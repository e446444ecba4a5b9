//! Client certificates, in DER: whoever one stands for has a name, and scopes that read as they are written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_calls::access::{ClientCertificate, Scope};

fuzz_target!(|input: &[u8]| {
    if let Ok(certificate) = ClientCertificate::read(input) {
        assert!(!certificate.name.is_empty(), "an identity without a name");
        for scope in &certificate.scopes {
            let again = Scope::from_uri(&scope.to_string());
            assert_eq!(again.as_ref(), Some(&Ok(scope.clone())));
        }
    }
});

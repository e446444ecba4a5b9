//! The `next` of a page, at which the next one goes on: a place in the order of the query, as text without
//! any meaning for callers.
//!
//! A place may be a key that the caller may not read. It is sealed with a key that this process has made: its
//! caller begins anew after a restart, or where another node answers.

use std::sync::LazyLock;

use data_encoding::BASE64URL_NOPAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_filter::SortValue;

use super::plan::{Plan, Rank};
use crate::fault::{Fault, Read};

/// The key for places that callers may not read; `None`: the system gives no random numbers.
static SEAL: LazyLock<Option<LessSafeKey>> = LazyLock::new(|| {
    let mut key = [0; 32];
    SystemRandom::new().fill(&mut key).ok()?;
    UnboundKey::new(&CHACHA20_POLY1305, &key).ok().map(LessSafeKey::new)
});

/// A place in the order of a query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Behind a key that the caller may read, of a query without `sort`.
    Key(String),
    /// Behind a key that the caller may not read.
    Hidden(String),
    /// Behind a document, of a query with `sort`.
    Rank(Rank),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum Wire {
    Key(String),
    Sealed(String),
    Rank { order: String, values: Vec<Value>, key: String },
}

impl Place {
    /// The text of a place.
    ///
    /// # Errors
    /// `internal`: the system gives no random numbers.
    pub(super) fn text(&self, plan: &Plan) -> Read<String> {
        let wire = match self {
            Place::Key(key) => Wire::Key(key.clone()),
            Place::Hidden(key) => {
                let sealed = seal(key).ok_or_else(|| Fault::new("internal", "there are no random numbers"));
                Wire::Sealed(BASE64URL_NOPAD.encode(&sealed?))
            }
            Place::Rank(rank) => Wire::Rank {
                order: plan.order(),
                values: rank.values().map(SortValue::to_json).collect(),
                key: rank.key.clone(),
            },
        };
        let json = serde_json::to_vec(&wire).map_err(|_| Fault::new("internal", "a place is no JSON"))?;
        Ok(BASE64URL_NOPAD.encode(&json))
    }

    /// Reads the text of a place of this query.
    ///
    /// # Errors
    /// `invalid_argument`: it is none, or of a query with another order.
    pub(super) fn read(text: &str, plan: &Plan) -> Read<Place> {
        let wrong = || Fault::invalid("expected the value of next from the page before");
        let json = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| wrong())?;
        match serde_json::from_slice(&json).map_err(|_| wrong())? {
            Wire::Key(key) if plan.sort.is_empty() => Ok(Place::Key(key)),
            Wire::Sealed(text) if plan.sort.is_empty() => {
                let sealed = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| wrong())?;
                let reason = "this place is not known any more, as after a restart: begin anew";
                opened(sealed).map(Place::Hidden).ok_or_else(|| Fault::invalid(reason))
            }
            Wire::Rank { order, values, key } if order == plan.order() => {
                let values: Option<Vec<SortValue>> = values.iter().map(SortValue::from_json).collect();
                let values = values.filter(|values| values.len() == plan.sort.len()).ok_or_else(wrong)?;
                Ok(Place::Rank(plan.rank(values.into_iter(), &key)))
            }
            _ => Err(Fault::invalid("this is next of a query with another sort: begin anew")),
        }
    }
}

fn seal(key: &str) -> Option<Vec<u8>> {
    let mut nonce = [0; NONCE_LEN];
    SystemRandom::new().fill(&mut nonce).ok()?;
    let mut sealed = key.as_bytes().to_vec();
    let seal = SEAL.as_ref()?;
    seal.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed).ok()?;
    Some([&nonce[..], &sealed].concat())
}

fn opened(sealed: Vec<u8>) -> Option<String> {
    let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>()?;
    let mut text = text.to_vec();
    let opened = SEAL.as_ref()?.open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::empty(), &mut text);
    String::from_utf8(opened.ok()?.to_vec()).ok()
}

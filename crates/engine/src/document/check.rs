//! Refusals of commands about documents whatever the state is.

use crate::documents::DocumentTerms;
use crate::documents::{DocumentCheck, DocumentCondition, DocumentPut};
use crate::error::{Error, FieldPath};
use crate::indexes::IndexFill;
use crate::limits::{
    DOCUMENT_ATTRIBUTES_BYTES_MAX, DOCUMENT_ATTRIBUTES_MAX, DOCUMENT_BYTES_MAX, DOCUMENT_HISTORY_MAX,
    DOCUMENT_KEY_BYTES_MAX, DOCUMENT_TERMS_MAX, DOCUMENT_TTL_MS_MAX, FILLED_DOCUMENTS_MAX, FILLED_TERMS_MAX,
    INDEX_POINTER_BYTES_MAX, NAMESPACE_INDEXES_MAX,
};
use crate::rules::{at_most, at_most_of, check_content_type, invalid, key_rule, name_rule};

pub(crate) fn check_key(key: &str) -> Result<(), Error> {
    key_rule("key", key, DOCUMENT_KEY_BYTES_MAX)
}

/// Refuses a check that would hold whatever the state is.
pub(crate) fn check_condition(check: &DocumentCheck<'_>) -> Result<(), Error> {
    check_key(check.key)?;
    if check.when == DocumentCondition::default() {
        let reason = "a check has a condition: give if_version, if_etag, if_exists, if_absent or token";
        return Err(invalid("if_version", reason.into()));
    }
    Ok(())
}

pub(crate) fn check_put(put: &DocumentPut<'_>) -> Result<(), Error> {
    check_key(put.key)?;
    at_most("ttl_ms", put.ttl_ms.unwrap_or(0), DOCUMENT_TTL_MS_MAX)?;
    at_most("history", put.history.unwrap_or(0).into(), DOCUMENT_HISTORY_MAX.into())?;
    check_content_type("content_type", put.content_type)?;
    if put.content_type.chars().any(char::is_control) {
        return Err(invalid("content_type", "it has control characters".into()));
    }
    at_most_of("attributes", "attributes", put.attributes.len() as u64, DOCUMENT_ATTRIBUTES_MAX as u64)?;
    if let Some(at) = put.attributes.iter().position(|(name, _)| name.is_empty()) {
        return Err(invalid("attributes", format!("attribute {at} has no name")));
    }
    let bytes = put.attributes.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
    let most = DOCUMENT_ATTRIBUTES_BYTES_MAX as u64;
    at_most_of("bytes of names and values", "attributes", bytes as u64, most)?;
    check_terms(put.terms)?;
    let (size, limit) = (put.content.len() as u64, DOCUMENT_BYTES_MAX as u64);
    if size > limit {
        return Err(Error::PayloadTooLarge { field: FieldPath("content".into()), size, limit });
    }
    Ok(())
}

/// Refuses terms of which no caller of the node has so many.
fn check_terms(all: &[DocumentTerms]) -> Result<(), Error> {
    let count = all.iter().map(|one| one.terms.len()).sum::<usize>();
    at_most_of("indexes", "terms", all.len() as u64, NAMESPACE_INDEXES_MAX as u64)?;
    at_most_of("terms", "terms", count as u64, DOCUMENT_TERMS_MAX as u64)
}

pub(crate) fn check_index(name: &str, pointer: &str) -> Result<(), Error> {
    name_rule("index", name)?;
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(invalid("pointer", "expected a JSON pointer, such as /total".into()));
    }
    at_most_of("bytes", "pointer", pointer.len() as u64, INDEX_POINTER_BYTES_MAX as u64)
}

pub(crate) fn check_fill(fill: &IndexFill<'_>) -> Result<(), Error> {
    at_most_of("documents", "documents", fill.documents.len() as u64, FILLED_DOCUMENTS_MAX as u64)?;
    let counts = || fill.documents.iter().map(|document| document.terms.len() as u64);
    counts().try_for_each(|count| at_most_of("terms", "terms", count, DOCUMENT_TERMS_MAX as u64))?;
    at_most_of("terms of all documents", "terms", counts().sum(), FILLED_TERMS_MAX as u64)
}

//! Refusals of commands about attachments whatever the state is.

use crate::attachments::{AttachmentCommit, UploadBegin, UploadChunk};
use crate::document::check::check_key;
use crate::error::{Error, FieldPath};
use crate::limits::{
    ATTACHMENT_BYTES_MAX, ATTACHMENT_NAME_BYTES_MAX, UPLOAD_CHUNK_BYTES_MAX, UPLOAD_HASH_BYTES_MAX,
};
use crate::rules::{at_most, at_most_of, check_content_type, invalid, key_rule};

/// Refuses what can name no attachment.
pub(crate) fn check_names(key: &str, name: &str) -> Result<(), Error> {
    check_key(key)?;
    key_rule("name", name, ATTACHMENT_NAME_BYTES_MAX)
}

pub(crate) fn check_begin(begin: &UploadBegin<'_>) -> Result<(), Error> {
    let UploadBegin { namespace: _, key, name, content_type } = *begin;
    check_names(key, name)?;
    check_content_type("content_type", content_type)?;
    if content_type.chars().any(char::is_control) {
        return Err(invalid("content_type", "it has control characters".into()));
    }
    Ok(())
}

pub(crate) fn check_chunk(chunk: &UploadChunk<'_>) -> Result<(), Error> {
    let (size, limit) = (chunk.content.len() as u64, UPLOAD_CHUNK_BYTES_MAX as u64);
    if size == 0 {
        return Err(invalid("chunk", "it is empty: a chunk has a byte at least".into()));
    }
    if size > limit {
        return Err(Error::PayloadTooLarge { field: FieldPath("chunk".into()), size, limit });
    }
    at_most("offset", chunk.offset, ATTACHMENT_BYTES_MAX)?;
    at_most_of("bytes", "hash", chunk.hash.len() as u64, UPLOAD_HASH_BYTES_MAX as u64)
}

pub(crate) fn check_commit(commit: &AttachmentCommit<'_>) -> Result<(), Error> {
    check_names(commit.key, commit.name)?;
    at_most("bytes", commit.bytes.unwrap_or(0), ATTACHMENT_BYTES_MAX)
}

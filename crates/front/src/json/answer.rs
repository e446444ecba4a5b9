//! A JSON document as an answer, before it is one of a protocol.

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;
use sluice_calls::CallError;
use sluice_calls::unary::{Done, How};
use sluice_engine::Error;

/// A JSON document with the status that HTTP has for it.
#[derive(Debug)]
pub(crate) struct Json {
    pub(crate) status: StatusCode,
    pub(crate) document: Bytes,
}

impl Json {
    pub(crate) fn new(status: StatusCode, document: impl Into<Bytes>) -> Json {
        Json { status, document: document.into() }
    }

    /// The answer of a typed call.
    ///
    /// # Errors
    /// `internal`, when it cannot be written.
    pub(crate) fn of<T: Serialize>(done: &Done<T>) -> Result<Json, CallError> {
        let status = match done.how {
            How::Done => StatusCode::OK,
            How::Created => StatusCode::CREATED,
            How::Begun => StatusCode::ACCEPTED,
        };
        let document = serde_json::to_vec(&done.answer)
            .map_err(|error| Error::Internal { reason: format!("an answer as JSON: {error}") })?;
        Ok(Json::new(status, document))
    }

    /// `{}`: the answer of a call that has nothing to tell.
    pub(crate) fn empty_object() -> Json {
        Json::new(StatusCode::OK, Bytes::from_static(b"{}"))
    }
}

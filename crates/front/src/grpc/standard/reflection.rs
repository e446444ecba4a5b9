//! `grpc.reflection.v1`, and `v1alpha`, which has the same messages: each request is answered with one
//! response, in their order. What is asked in vain gets a response that says so, and the stream goes on.

use std::io;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::response::Response;
use sluice_calls::fault::clip;
use sluice_calls::{CallError, Fault, Read};
use sluice_proto::framing::frame_with;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::files::files;
use super::request::{REQUEST_BYTES_MAX, place, text_in};
use crate::events::{PIECES, STREAM_BYTES};
use crate::grpc::messages::Messages;
use crate::grpc::rows::text;
use crate::grpc::streaming::{Why, streamed};
use crate::grpc::wire::{INVALID, Raw, next_field, put_bytes, put_number};
use crate::net::arrived::Arrived;
use crate::net::body::{Body, Inbound};
use crate::net::context::Context;

/// Fields of a request.
mod asked {
    pub(super) const HOST: u32 = 1;
    pub(super) const FILE: u32 = 3;
    pub(super) const SYMBOL: u32 = 4;
    pub(super) const EXTENSION: u32 = 5;
    pub(super) const EXTENSIONS_OF: u32 = 6;
    pub(super) const SERVICES: u32 = 7;
    /// The message that is extended, in the extension that is asked for.
    pub(super) const EXTENDED: u32 = 1;
}

/// Fields of a response.
mod response {
    pub(super) const HOST: u32 = 1;
    pub(super) const REQUEST: u32 = 2;
    pub(super) const FILES: u32 = 4;
    pub(super) const EXTENSIONS: u32 = 5;
    pub(super) const SERVICES: u32 = 6;
    pub(super) const ERROR: u32 = 7;
    /// The first field of what is in these.
    pub(super) const FIRST: u32 = 1;
    /// The message, in an error.
    pub(super) const MESSAGE: u32 = 2;
}

/// Status codes of gRPC.
const INVALID_ARGUMENT: u64 = 3;
const NOT_FOUND: u64 = 5;

/// Answers with the stream of responses.
///
/// # Errors
/// `overloaded`.
pub(super) fn stream(arrived: &Arrived, body: Inbound) -> Result<Response<Body>, CallError> {
    let Arrived { context, in_flight, .. } = arrived;
    let place = place(arrived)?;
    in_flight.share.reserve(STREAM_BYTES)?;
    let messages = Messages::of(body, REQUEST_BYTES_MAX, context.options.body_timeout);
    let (out, pieces) = mpsc::channel(PIECES);
    let why = Why::new(OnceLock::new());
    tokio::spawn(run(Arc::clone(context), messages, out, Arc::clone(&why), place));
    Ok(streamed(pieces, why))
}

/// Runs until the client has no more requests or takes no more answers, or the server stops.
async fn run(
    context: Arc<Context>,
    mut messages: Messages,
    out: mpsc::Sender<io::Result<Bytes>>,
    why: Why,
    _place: OwnedSemaphorePermit,
) {
    let ended = tokio::select! {
        biased;
        () = context.calls.stopping() => Ok(()),
        () = out.closed() => Ok(()),
        ended = answer_all(&mut messages, &out) => ended,
    };
    if let Err(error) = ended {
        // Set here alone.
        let _ = why.set(error);
    }
}

/// Answers each request. A client that asks for nothing more holds its place for as long as a request may
/// take, and opens another stream later.
async fn answer_all(messages: &mut Messages, out: &mpsc::Sender<io::Result<Bytes>>) -> Result<(), CallError> {
    loop {
        let message = match messages.next().await {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(()),
            Err(error) if error.code() == "request_timeout" && messages.is_between() => return Ok(()),
            Err(error) => return Err(error),
        };
        let answer = answer(&message)?;
        let mut piece = Vec::new();
        frame_with(&mut piece, |out| out.extend_from_slice(&answer));
        if out.send(Ok(piece.into())).await.is_err() {
            return Ok(());
        }
    }
}

/// The response to a request.
///
/// # Errors
/// `invalid_protobuf`; `invalid_argument` for text that is not UTF-8.
pub(in crate::grpc) fn answer(message: &[u8]) -> Read<Vec<u8>> {
    let mut out = Vec::new();
    let host = text_in(message, asked::HOST).map_err(|fault| fault.inside("host"))?;
    if !host.is_empty() {
        put_bytes(&mut out, response::HOST, host.as_bytes());
    }
    put_bytes(&mut out, response::REQUEST, message);
    match found(message, &mut out)? {
        Ok(()) => {}
        Err((status, reason)) => {
            let mut error = Vec::new();
            put_number(&mut error, response::FIRST, status);
            put_bytes(&mut error, response::MESSAGE, reason.as_bytes());
            put_bytes(&mut out, response::ERROR, &error);
        }
    }
    Ok(out)
}

/// Writes what a request asks for; or the status and the reason why there is none.
fn found(message: &[u8], out: &mut Vec<u8>) -> Read<Result<(), (u64, String)>> {
    let Some((what, bytes)) = wanted(message)? else {
        let reason = "the request asks for nothing: set one field of message_request";
        return Ok(Err((INVALID_ARGUMENT, reason.to_owned())));
    };
    let none =
        |what: &str, name: &str| Err((NOT_FOUND, format!("no {what} {:?} is served here", clip(name))));
    let put_file = |out: &mut Vec<u8>, file: &[u8]| {
        let mut files = Vec::with_capacity(file.len() + 8);
        put_bytes(&mut files, response::FIRST, file);
        put_bytes(out, response::FILES, &files);
        Ok(())
    };
    Ok(match what {
        asked::FILE => {
            let name = text(bytes).map_err(|fault| fault.inside("file_by_filename"))?;
            files().named(name).map_or_else(|| none("file", name), |file| put_file(out, file))
        }
        asked::SYMBOL => {
            let name = text(bytes).map_err(|fault| fault.inside("file_containing_symbol"))?;
            files().declaring(name).map_or_else(|| none("symbol", name), |file| put_file(out, file))
        }
        asked::EXTENSION => {
            let extended = text_in(bytes, asked::EXTENDED);
            none("extension of", extended.map_err(|fault| fault.inside("file_containing_extension"))?)
        }
        asked::EXTENSIONS_OF => {
            let name = text(bytes).map_err(|fault| fault.inside("all_extension_numbers_of_type"))?;
            files().declaring(name).map_or_else(
                || none("message", name),
                |_| {
                    let mut numbers = Vec::new();
                    put_bytes(&mut numbers, response::FIRST, name.as_bytes());
                    put_bytes(out, response::EXTENSIONS, &numbers);
                    Ok(())
                },
            )
        }
        _ => {
            let mut services = Vec::new();
            for name in files().services() {
                let mut service = Vec::new();
                put_bytes(&mut service, response::FIRST, name.as_bytes());
                put_bytes(&mut services, response::FIRST, &service);
            }
            put_bytes(out, response::SERVICES, &services);
            Ok(())
        }
    })
}

/// The field by which a request asks, and its content; of several, the last counts, as of any `oneof`.
fn wanted(mut message: &[u8]) -> Read<Option<(u32, &[u8])>> {
    let mut wanted = None;
    while let Some((number, value)) = next_field(&mut message)? {
        match value {
            Raw::Bytes(bytes) if (asked::FILE..=asked::SERVICES).contains(&number) => {
                wanted = Some((number, bytes));
            }
            Raw::Number(_) if (asked::FILE..=asked::SERVICES).contains(&number) => {
                return Err(Fault::new(INVALID, format!("field {number} is of another wire type")));
            }
            _ => {}
        }
    }
    Ok(wanted)
}

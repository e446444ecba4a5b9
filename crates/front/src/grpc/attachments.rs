//! Attachments as streams: one that a client sends, and one that it reads, with memory for some chunks.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::response::Response;
use http_body::Frame;
use sluice_calls::attachments::attaching::{Asked, Attaching};
use sluice_calls::attachments::reading::{self, AttachmentPart, Wanted};
use sluice_calls::documents::Written;
use sluice_calls::{Asker, CallError, CallName, Fault, Operation, Permit};
use sluice_engine::limits::UPLOAD_CHUNK_BYTES_MAX;
use sluice_proto::framing::{frame_before, frame_with};
use tokio::sync::mpsc;

use super::by::{By, authorization, target};
use super::call::{Request, unwritten};
use super::de::from_rows;
use super::messages::Messages;
use super::rows::{Rows, read_rows};
use super::schema::MessageType;
use super::ser;
use super::status::{GRPC, failure, refusal, success, success_with};
use super::wire::{Raw, begin_bytes, put_number};
use crate::net::arrived::Arrived;
use crate::net::body::{Body, Inbound};
use crate::net::memory::answers::Share;
use crate::net::memory::bodies::{BodyBudget, no_room};

/// Length of a message without its content: conditions, and names of some hundred bytes.
const FIELDS_BYTES_MAX: usize = 16 << 10;
/// Numbers of fields of an answer with content.
const OFFSET: u32 = 2;
const CONTENT: u32 = 3;

/// Attaches what a stream of messages brings. Each content is a chunk.
pub(super) async fn upload(
    arrived: &Arrived,
    by: &mut By<'_>,
    body: Inbound,
    (input, output): (&'static MessageType, usize),
) -> Result<Response<Body>, CallError> {
    let Arrived { context, in_flight, head, .. } = arrived;
    let path = head.uri.path();
    let _memory = ChunkMemory::of(&context.upload_budget)?;
    let bytes_max = UPLOAD_CHUNK_BYTES_MAX + FIELDS_BYTES_MAX;
    let mut messages = Messages::of(body, bytes_max, context.options.body_timeout);
    let first = messages.next().await?.ok_or_else(|| {
        CallError::new("incomplete_body", "no message came: the first one tells which attachment it is")
    })?;
    let mut request = Request::read(Operation::AttachmentPutRaw, input, &first)?;
    let namespace = request.namespace;
    by.target = target(path, namespace.unwrap_or_default(), request.name);
    let call =
        CallName { operation: Operation::AttachmentPutRaw, namespace, name: request.name, is_stale: false };
    if context.is_elsewhere(by.peer, &call) {
        let body = messages.again(&first);
        if let Some(response) = Box::pin(arrived.passed_on(&call, body, |error| refusal(&error))).await {
            return Ok(response);
        }
    }
    let (peer, caller, room) = (by.peer, &by.caller, &*in_flight.share);
    let asker = Asker { calls: &context.calls, peer, caller, authorization: authorization(head), room, path };
    let permit = asker.permit(call)?;
    let content = take_content(input, &mut request.rows);
    let asked = from_rows::<Asked>(input, &request.rows)?;
    let (sha256, when) = (asked.sha256()?, asked.when()?);
    let mut attaching = Attaching::begin(&permit, asked.name()?, asked.content_type(), &when).await?;
    let done = match fill(&mut attaching, content, &mut messages, input).await {
        Ok(()) => attaching.commit(sha256, when).await,
        Err(error) => Err(error),
    };
    match done {
        Ok((version, _)) => {
            let answer = ser::encode(output, &Written::from(version));
            Ok(success_with(answer.map_err(|error| unwritten(path, &error))?))
        }
        Err(error) => {
            attaching.abandon().await;
            Err(error)
        }
    }
}

/// Adds the content of the first message, and those of the messages behind it.
async fn fill(
    attaching: &mut Attaching<'_>,
    first: &[u8],
    messages: &mut Messages,
    input: &'static MessageType,
) -> Result<(), CallError> {
    if !first.is_empty() {
        attaching.add(first).await?;
    }
    while let Some(message) = messages.next().await? {
        let mut rows = read_rows(input, &message)?;
        let content = take_content(input, &mut rows);
        if let Some((at, _)) = rows.first() {
            let fault = Fault::invalid("only the first message of an upload tells it");
            return Err(fault.inside(&input.fields[*at].name).into());
        }
        if !content.is_empty() {
            attaching.add(content).await?;
        }
    }
    Ok(())
}

/// Takes the content out of the fields of a message; of several, the last counts.
fn take_content<'b>(input: &MessageType, rows: &mut Rows<'b>) -> &'b [u8] {
    let field = input.by_name("content");
    let content = rows.iter().rev().find(|(at, _)| Some(*at) == field).map(|(_, value)| *value);
    rows.retain(|(at, _)| Some(*at) != field);
    if let Some(Raw::Bytes(content)) = content { content } else { &[] }
}

/// The memory of a chunk, of the budget of uploads.
struct ChunkMemory<'b>(&'b BodyBudget);

impl<'b> ChunkMemory<'b> {
    fn of(budget: &'b BodyBudget) -> Result<ChunkMemory<'b>, CallError> {
        let memory = ChunkMemory(budget);
        if budget.take(UPLOAD_CHUNK_BYTES_MAX) { Ok(memory) } else { Err(no_room().into()) }
    }
}

impl Drop for ChunkMemory<'_> {
    fn drop(&mut self) {
        self.0.give_back(UPLOAD_CHUNK_BYTES_MAX);
    }
}

/// Answers with the bytes of an attachment.
pub(super) async fn download(
    share: &Arc<Share>,
    permit: Permit<'_>,
    input: &'static MessageType,
    rows: &Rows<'_>,
    output: usize,
) -> Result<Response<Body>, CallError> {
    let wanted = from_rows::<Wanted>(input, rows)?;
    let (view, (from, to)) = wanted.find(&permit).await?;
    share.reserve(reading::memory(to - from))?;
    let head = ser::encode(output, &AttachmentPart::without_bytes(&view, from));
    let head = head.map_err(|error| unwritten(permit.path(), &error))?;
    let mut first = Vec::new();
    frame_with(&mut first, |out| out.extend_from_slice(&head));
    let pieces = reading::stream(&permit, view, (from, to), |error| error)?;
    let contents = Contents { pieces, offset: from, waiting: [first.into()].into(), is_over: false };
    let mut response = Response::new(Body::other(contents));
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    Ok(response)
}

/// The answer: a message for each piece, and how it ended.
struct Contents {
    pieces: mpsc::Receiver<Result<Bytes, CallError>>,
    /// Number of the bytes of the attachment before the next piece.
    offset: u64,
    /// The part of a message that was not handed on.
    waiting: VecDeque<Bytes>,
    is_over: bool,
}

impl http_body::Body for Contents {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        waker: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if let Some(waiting) = self.waiting.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(waiting))));
        }
        let trailers = match ready!(self.pieces.poll_recv(waker)) {
            Some(Ok(piece)) => {
                let mut begin = Vec::new();
                frame_before(&mut begin, piece.len(), |out| {
                    put_number(out, OFFSET, self.offset);
                    begin_bytes(out, CONTENT, piece.len());
                });
                self.offset += piece.len() as u64;
                self.waiting.push_back(piece);
                return Poll::Ready(Some(Ok(Frame::data(begin.into()))));
            }
            Some(Err(error)) => failure(&error),
            None => success(),
        };
        self.is_over = true;
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }
}

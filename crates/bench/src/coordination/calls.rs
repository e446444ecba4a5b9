//! Calls of one loop over the session that it shares with others, each answered before the next.

use std::sync::Arc;

use bytes::Bytes;
use sluice_client::v1::client_frame::Frame;
use sluice_client::v1::{
    AcquireLockRequest, AcquireLockResponse, Call, CommitTransactionRequest, CommitTransactionResponse,
    Document, GetDocumentRequest, PutDocumentRequest, PutDocumentResponse, QueryDocumentsRequest,
    QueryDocumentsResponse, ReleaseLockRequest, ReleaseLockResponse, TransactionOperation,
};

use crate::link::Link;
use crate::stream::check;

/// Longest wait for a lock, in milliseconds.
const WAIT_MS: u64 = 60_000;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Calls(pub(super) Arc<Link>);

impl Calls {
    async fn call<T: prost::Message + Default>(
        &self,
        method: &'static str,
        request: &impl prost::Message,
    ) -> Result<T, String> {
        let call =
            Call { method: Bytes::from_static(method.as_bytes()), request: request.encode_to_vec().into() };
        let result = self.0.ask(Frame::Call(call)).await?;
        check(&result).map_err(|error| format!("{method}: {error}"))?;
        let answer = result.answer.ok_or_else(|| format!("{method}: a result without an answer"))?;
        T::decode(answer).map_err(|error| format!("{method}: {error}"))
    }

    /// Acquires the lock of a key, and reads its document if asked to.
    pub(super) async fn acquire(
        &self,
        key: &Bytes,
        with_document: bool,
        waits: bool,
    ) -> Result<AcquireLockResponse, String> {
        let request = AcquireLockRequest {
            key: Some(key.clone()),
            with_document: with_document.then_some(true),
            wait_ms: waits.then_some(WAIT_MS),
            ..AcquireLockRequest::default()
        };
        self.call("Locks/Acquire", &request).await
    }

    pub(super) async fn release(&self, token: Bytes) -> Result<(), String> {
        let request = ReleaseLockRequest { token: Some(token), ..ReleaseLockRequest::default() };
        self.call::<ReleaseLockResponse>("Locks/Release", &request).await.map(drop)
    }

    pub(super) async fn get(&self, key: &Bytes) -> Result<Document, String> {
        let request = GetDocumentRequest { key: key.clone(), ..GetDocumentRequest::default() };
        self.call("Documents/Get", &request).await
    }

    pub(super) async fn query(&self, filter: String) -> Result<QueryDocumentsResponse, String> {
        let request =
            QueryDocumentsRequest { r#where: Some(filter.into()), ..QueryDocumentsRequest::default() };
        self.call("Documents/Query", &request).await
    }

    pub(super) async fn put(
        &self,
        key: &Bytes,
        content: Bytes,
        token: Option<Bytes>,
    ) -> Result<PutDocumentResponse, String> {
        let request = PutDocumentRequest {
            key: key.clone(),
            content: Some(content),
            token,
            ..PutDocumentRequest::default()
        };
        self.call("Documents/Put", &request).await
    }

    pub(super) async fn commit(
        &self,
        operations: Vec<TransactionOperation>,
    ) -> Result<CommitTransactionResponse, String> {
        let request = CommitTransactionRequest { operations, ..CommitTransactionRequest::default() };
        self.call("Transactions/Commit", &request).await
    }
}

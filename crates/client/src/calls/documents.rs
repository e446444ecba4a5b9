//! Documents.

use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::client::{Client, encoded};
use crate::documents::{
    Document, DocumentChanges, DocumentDelete, DocumentIndex, DocumentPatch, DocumentPut, DocumentQuery,
    DocumentVersion, DocumentWritten, DocumentsFound,
};
use crate::encode;
use crate::error::ClientError;
use crate::retry::Safety;
use crate::types::parse;

/// Times that an update reads and writes before it gives up: each time but the last another has written.
const UPDATE_TRIES_MAX: u32 = 100;

impl Client {
    /// Writes a document. A repeat after a lost answer writes nothing while the version that it has written
    /// is the current one.
    ///
    /// # Errors
    /// `version_mismatch`: a condition does not hold. `lease_lost`: the lock of the token is not held, or is
    /// that of another key.
    ///
    /// ```no_run
    /// # async fn example(client: sluice_client::Client) -> Result<(), sluice_client::ClientError> {
    /// use sluice_client::DocumentPut;
    ///
    /// let put = DocumentPut { if_absent: true, ..DocumentPut::new(b"{\"state\":\"new\"}") };
    /// let written = client.document_put("orders/17", &put).await?;
    /// let paid = DocumentPut { if_etag: Some(&written.etag), ..DocumentPut::new(b"{\"state\":\"paid\"}") };
    /// client.document_put("orders/17", &paid).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn document_put(
        &self,
        key: &str,
        put: &DocumentPut<'_>,
    ) -> Result<DocumentWritten, ClientError> {
        let own = self.idempotency_key();
        let body = encode::document(put, put.request_id.unwrap_or(&own));
        let call = self.call(Method::PUT, self.document_path(key), body);
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    /// Changes a document whose content is JSON, in the place where it lies. A repeat after a lost answer
    /// changes nothing while the version that it has written is the current one.
    ///
    /// # Errors
    /// `patch_failed`: the change does not apply. `document_not_found`, `version_mismatch`, `lease_lost`.
    ///
    /// ```no_run
    /// # async fn example(client: sluice_client::Client) -> Result<(), sluice_client::ClientError> {
    /// use sluice_client::{DocumentChange, DocumentPatch};
    ///
    /// let visit = DocumentPatch::new(DocumentChange::Increment(vec![("/visits", "1")]));
    /// client.document_patch("pages/home", &visit).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn document_patch(
        &self,
        key: &str,
        patch: &DocumentPatch<'_>,
    ) -> Result<DocumentWritten, ClientError> {
        let body = encode::document_patch(patch, &self.idempotency_key());
        let call = self.call(Method::PATCH, self.document_path(key), body);
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    /// A document with its content, or a former version of it.
    ///
    /// # Errors
    /// `document_not_found`: there is no such document, or this version of it is not kept.
    pub async fn document_show(&self, key: &str, version: Option<u64>) -> Result<Document, ClientError> {
        let query = version.map_or_else(String::new, |version| format!("?version={version}"));
        self.look(self.document_path(key) + &query).await
    }

    /// The same; `None`: there is no such document, or this version of it is not kept.
    pub async fn document_get(
        &self,
        key: &str,
        version: Option<u64>,
    ) -> Result<Option<Document>, ClientError> {
        match self.document_show(key, version).await {
            Ok(document) => Ok(Some(document)),
            Err(error) if error.code() == Some("document_not_found") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the content of a document, and writes what `change` makes of it; again from the start when
    /// another has written in between, so that no write of another is lost. `change` gets `None` where there
    /// is no document. The content type, the attributes and the history stay; the time after which the
    /// document is gone begins anew.
    ///
    /// Where an answer is lost, and another writes before the repeat, `change` is applied once more to what
    /// the other has made of the first outcome.
    ///
    /// # Errors
    /// `version_mismatch`: another was faster 100 times.
    ///
    /// ```no_run
    /// # async fn example(client: sluice_client::Client) -> Result<(), sluice_client::ClientError> {
    /// let appended = |log: Option<&[u8]>| [log.unwrap_or_default(), b"started\n"].concat();
    /// client.document_update("jobs/17/log", appended).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn document_update(
        &self,
        key: &str,
        mut change: impl FnMut(Option<&[u8]>) -> Vec<u8>,
    ) -> Result<DocumentWritten, ClientError> {
        // A node that is behind would show what was replaced long ago.
        let current = self.not_stale();
        let mut tries = 0;
        loop {
            tries += 1;
            let read = current.document_get(key, None).await?;
            let content = change(read.as_ref().map(|read| &read.content[..]));
            let put = DocumentPut::in_place_of(read.as_ref(), &content);
            match current.document_put(key, &put).await {
                Err(error) if error.code() == Some("version_mismatch") && tries < UPDATE_TRIES_MAX => {}
                outcome => return outcome,
            }
        }
    }

    /// All documents of the namespace whose keys begin with `prefix`, by key, without contents.
    pub async fn documents(&self, prefix: &str) -> Result<Vec<DocumentVersion>, ClientError> {
        self.all_of("documents", prefix).await
    }

    /// A page of the documents whose JSON matches a filter, with their contents. A page may be short, even
    /// empty, and have a next one.
    ///
    /// # Errors
    /// `query_too_costly`: a sorted query would have to look at too many documents.
    ///
    /// ```no_run
    /// # async fn example(client: sluice_client::Client) -> Result<(), sluice_client::ClientError> {
    /// use serde_json::json;
    /// use sluice_client::DocumentQuery;
    ///
    /// let filter = json!({"/state": "paid", "/total": {"ge": 100}});
    /// let mut next: Option<String> = None;
    /// loop {
    ///     let (filter, after) = (Some(filter.clone()), next.as_deref());
    ///     let query = DocumentQuery { filter, after, prefix: "orders/", ..DocumentQuery::default() };
    ///     let page = client.document_query(&query).await?;
    ///     for order in page.documents {
    ///         println!("{}: {}", order.about.key, String::from_utf8_lossy(&order.content));
    ///     }
    ///     next = page.next;
    ///     if next.is_none() {
    ///         break;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn document_query(
        &self,
        query: &DocumentQuery<'_>,
    ) -> Result<DocumentsFound<Document>, ClientError> {
        self.queried(query, true).await
    }

    /// The same without contents, content types and attributes.
    ///
    /// # Errors
    /// Those of [`Client::document_query`].
    pub async fn document_query_keys(
        &self,
        query: &DocumentQuery<'_>,
    ) -> Result<DocumentsFound<DocumentVersion>, ClientError> {
        self.queried(query, false).await
    }

    async fn queried<T: DeserializeOwned>(
        &self,
        query: &DocumentQuery<'_>,
        has_contents: bool,
    ) -> Result<DocumentsFound<T>, ClientError> {
        let call = self.call(Method::POST, self.path("/documents/query"), query.body(has_contents));
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    /// Declares an index of the namespace's documents, by the values behind a JSON pointer (RFC 6901); in the
    /// place of one with this name and another pointer.
    ///
    /// # Errors
    /// `limit_exceeded`: a namespace has 16 at most.
    pub async fn document_index_put(&self, name: &str, pointer: &str) -> Result<DocumentIndex, ClientError> {
        let body = serde_json::json!({"pointer": pointer}).to_string();
        let call = self.call(Method::PUT, self.index_path(name), body);
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    /// The indexes of the namespace's documents, by name.
    pub async fn document_indexes(&self) -> Result<Vec<DocumentIndex>, ClientError> {
        #[derive(Deserialize)]
        struct Indexes {
            indexes: Vec<DocumentIndex>,
        }
        Ok(self.look::<Indexes>(self.path("/document-indexes")).await?.indexes)
    }

    /// Deletes an index of documents.
    ///
    /// # Errors
    /// `index_not_found`.
    pub async fn document_index_delete(&self, name: &str) -> Result<(), ClientError> {
        self.run(self.call(Method::DELETE, self.index_path(name), ""), Safety::Once).await.map(|_| ())
    }

    /// Changes of the documents whose keys begin with `prefix`, after the `next` of the answer before; all
    /// documents as they are without it. Waits up to `wait`, at most 60 s, for a first change.
    ///
    /// # Errors
    /// `changes_forgotten`: ends of documents after this place are not remembered any more. Begin anew.
    pub async fn document_changes(
        &self,
        prefix: &str,
        after: Option<&str>,
        wait: Duration,
    ) -> Result<DocumentChanges, ClientError> {
        let mut path = self.path(&format!("/document-changes?wait_ms={}", encode::millis(wait)));
        for (name, value) in [("prefix", prefix), ("after", after.unwrap_or_default())] {
            if !value.is_empty() {
                path.push_str(&format!("&{name}={}", encoded(value)));
            }
        }
        let mut call = self.call(Method::GET, path, "");
        call.timeout = call.timeout.saturating_add(wait);
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    /// The versions of a document that are kept, the current one first, without contents.
    ///
    /// # Errors
    /// `document_not_found`.
    pub async fn document_history(&self, key: &str) -> Result<Vec<DocumentVersion>, ClientError> {
        #[derive(Deserialize)]
        struct Versions {
            versions: Vec<DocumentVersion>,
        }
        let path = self.document_path(key) + "/history";
        Ok(self.look::<Versions>(path).await?.versions)
    }

    /// Deletes a document with its former versions.
    ///
    /// # Errors
    /// `document_not_found`. `version_mismatch`: a condition does not hold. `lease_lost`: the lock of the
    /// token is not held, or is that of another key.
    pub async fn document_delete(&self, key: &str, delete: &DocumentDelete<'_>) -> Result<(), ClientError> {
        let version = delete.if_version.map(|version| version.to_string());
        let mut path = self.document_path(key);
        let conditions =
            [("if_version", version.as_deref()), ("if_etag", delete.if_etag), ("token", delete.token)];
        let given = conditions.iter().filter_map(|(name, value)| Some((name, (*value)?)));
        for (mark, (name, value)) in std::iter::once('?').chain(std::iter::repeat('&')).zip(given) {
            path.push_str(&format!("{mark}{name}={}", encoded(value)));
        }
        self.run(self.call(Method::DELETE, path, ""), Safety::Once).await.map(|_| ())
    }

    fn index_path(&self, name: &str) -> String {
        self.path(&format!("/document-indexes/{}", encoded(name)))
    }

    fn document_path(&self, key: &str) -> String {
        self.path(&format!("/documents/{}", encoded(key)))
    }
}

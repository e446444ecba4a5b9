//! Documents: what is asked for, repeats after a lost answer, and updates beside other writers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sluice_client::{Client, DocumentDelete, DocumentPut};

use crate::support::{Reply, Request, client, serve};

/// A server with documents, which knows the condition of ETags and the ids of requests.
#[derive(Default)]
struct Server {
    /// Version and content by path of the key.
    documents: BTreeMap<String, (u64, String)>,
    /// Id of the request that has written last.
    written_by: String,
    requests: Vec<Request>,
    /// Number of writes whose connection is closed without an answer, after they took effect.
    breaks: u32,
    /// Number of writes that another writer is faster than.
    overtaken: u32,
}

async fn start() -> (Arc<Mutex<Server>>, Client) {
    let server = Arc::new(Mutex::new(Server::default()));
    let asked = Arc::clone(&server);
    let address = serve(move |request| {
        let reply = asked.lock().unwrap().answer(&request);
        async { reply }
    })
    .await;
    (server, client(address))
}

fn refused(status: u16, code: &str) -> Reply {
    Reply::Json(status, json!({"error": {"code": code, "message": "no"}}).to_string())
}

fn about(version: u64) -> Value {
    json!({"key": "k", "version": version, "etag": version.to_string(), "changed_at_ms": 5, "content_bytes": 1,
        "history": 0})
}

impl Server {
    fn answer(&mut self, request: &Request) -> Reply {
        self.requests.push(request.clone());
        match (request.method.as_str(), request.path.as_str()) {
            ("PUT", _) => self.write(&request.path, &serde_json::from_str(&request.body).unwrap()),
            ("DELETE", _) => Reply::Json(200, "{}".to_owned()),
            (_, path) if path.starts_with("/v1/documents?") => {
                let next = if path.contains("after=") { Value::Null } else { json!("k") };
                Reply::Json(200, json!({"documents": [about(1)], "next": next}).to_string())
            }
            (_, path) if path.contains("/history") => {
                Reply::Json(200, json!({"versions": [about(2), about(1)]}).to_string())
            }
            (_, path) => match self.documents.get(path.split('?').next().unwrap()) {
                Some((version, content)) => {
                    let mut document = about(*version);
                    document["content"] = json!(content);
                    document["attributes"] = json!({"by": "ann"});
                    Reply::Json(200, document.to_string())
                }
                None => refused(404, "document_not_found"),
            },
        }
    }

    fn write(&mut self, path: &str, put: &Value) -> Reply {
        if self.overtaken > 0 {
            self.overtaken -= 1;
            let found = self.documents.entry(path.to_owned()).or_default();
            *found = (found.0 + 1, found.1.clone() + "o");
        }
        let version = self.documents.get(path).map_or(0, |found| found.0);
        let id = put["request_id"].as_str().unwrap();
        let is_repeat = self.written_by == id;
        let is_there = put["if_absent"] == true && version > 0;
        let is_other = put["if_etag"].as_str().is_some_and(|etag| etag != version.to_string());
        if !is_repeat && (is_there || is_other) {
            return refused(409, "version_mismatch");
        }
        let version = if is_repeat { version } else { version + 1 };
        let content = put["content"].as_str().unwrap().to_owned();
        self.written_by = id.to_owned();
        self.documents.insert(path.to_owned(), (version, content));
        if self.breaks > 0 {
            self.breaks -= 1;
            return Reply::Break;
        }
        let status = if version == 1 { 201 } else { 200 };
        let written = json!({"version": version, "etag": version.to_string(), "changed_at_ms": 5});
        Reply::Json(status, written.to_string())
    }

    fn bodies(&self) -> Vec<Value> {
        let puts = self.requests.iter().filter(|request| request.method == "PUT");
        puts.map(|request| serde_json::from_str(&request.body).unwrap()).collect()
    }

    fn paths(&self) -> Vec<&str> {
        self.requests.iter().map(|request| request.path.as_str()).collect()
    }
}

#[tokio::test]
async fn a_document_is_written_read_and_deleted() {
    let (server, client) = start().await;
    assert_eq!(client.document_get("a/b", None).await.unwrap(), None);
    let put = DocumentPut { ttl: Some(Duration::from_secs(1)), ..DocumentPut::new(b"one") };
    let written = client.document_put("a/b", &put).await.unwrap();
    assert!(written.created && written.version == 1, "{written:?}");
    let etag = written.etag.as_str();
    let next = DocumentPut { if_etag: Some(etag), ..DocumentPut::new(b"two") };
    let second = client.document_put("a/b", &next).await.unwrap();
    assert!(!second.created && second.version == 2, "{second:?}");
    assert_eq!(client.document_put("a/b", &next).await.unwrap_err().code(), Some("version_mismatch"));
    let read = client.document_get("a/b", Some(2)).await.unwrap().unwrap();
    assert_eq!((read.content.as_slice(), read.about.etag.as_str()), (&b"two"[..], "2"));
    assert_eq!(read.attributes, BTreeMap::from([("by".to_owned(), "ann".to_owned())]));
    let absent = client.document_show("c", None).await.unwrap_err();
    assert_eq!(absent.code(), Some("document_not_found"));
    let delete = DocumentDelete { if_version: Some(2), token: Some("t+"), ..DocumentDelete::default() };
    client.document_delete("a/b", &delete).await.unwrap();
    client.document_delete("a/b", &DocumentDelete::default()).await.unwrap();
    let server = server.lock().unwrap();
    assert_eq!(server.bodies()[0]["ttl_ms"], 1_000);
    let last = server.paths().len();
    assert_eq!(
        server.paths()[last - 4..],
        [
            "/v1/documents/a%2Fb?version=2",
            "/v1/documents/c",
            "/v1/documents/a%2Fb?if_version=2&token=t%2B",
            "/v1/documents/a%2Fb"
        ]
    );
}

#[tokio::test]
async fn a_write_without_an_answer_is_repeated_under_one_id() {
    let (server, client) = start().await;
    server.lock().unwrap().breaks = 2;
    let put = DocumentPut { if_absent: true, ..DocumentPut::new(b"x") };
    assert_eq!(client.document_put("k", &put).await.unwrap().version, 1);
    let own = DocumentPut { request_id: Some("mine"), ..DocumentPut::new(b"y") };
    client.document_put("k", &own).await.unwrap();
    client.document_put("k", &DocumentPut::new(b"z")).await.unwrap();
    let bodies = server.lock().unwrap().bodies();
    let ids: Vec<&str> = bodies.iter().map(|body| body["request_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 5, "{ids:?}");
    assert!(ids[..3].iter().all(|id| *id == ids[0]) && ids[3] == "mine" && ids[4] != ids[0], "{ids:?}");
}

#[tokio::test]
async fn an_update_loses_no_write_of_another() {
    let (server, client) = start().await;
    let append = |content: Option<&[u8]>| [content.unwrap_or(b"new:"), b"x"].concat();
    server.lock().unwrap().overtaken = 1;
    assert_eq!(client.document_update("k", append).await.unwrap().version, 2);
    server.lock().unwrap().overtaken = 2;
    assert_eq!(client.stale().document_update("k", append).await.unwrap().version, 5);
    let server = server.lock().unwrap();
    assert_eq!(server.documents["/v1/documents/k"].1, "oxoox");
    assert!(server.bodies().iter().skip(1).all(|body| body["attributes"] == json!({"by": "ann"})));
    assert!(server.paths().iter().all(|path| !path.contains("stale")), "what is behind is of no use");
}

#[tokio::test]
async fn an_update_that_is_always_too_late_gives_up() {
    let (server, client) = start().await;
    server.lock().unwrap().overtaken = u32::MAX;
    let error = client.document_update("k", |_| b"x".to_vec()).await.unwrap_err();
    assert_eq!(error.code(), Some("version_mismatch"));
}

#[tokio::test]
async fn documents_and_their_versions_are_listed() {
    let (server, client) = start().await;
    assert_eq!(client.documents("a/").await.unwrap().len(), 2, "of two pages");
    let versions = client.stale().document_history("k").await.unwrap();
    assert_eq!(versions.iter().map(|version| version.version).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(
        server.lock().unwrap().paths(),
        [
            "/v1/documents?limit=500&prefix=a%2F",
            "/v1/documents?limit=500&prefix=a%2F&after=k",
            "/v1/documents/k/history?stale=true"
        ]
    );
}

//! A server to test, in memory, on a port of its own.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use serde_json::Value;
use sluice_calls::Calls;
use sluice_calls::access::Access;
use sluice_calls::server::About;
use sluice_front::http::{HttpOptions, Stopped, openapi};
use sluice_front::serve;
use sluice_node::{Node, Options};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::{Answer, request};
use crate::schema;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) node: Node,
    api: Value,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<Stopped>,
}

/// The options of a server, and who may do what on it.
pub(crate) struct Front {
    options: HttpOptions,
    pub(crate) access: Access,
}

impl Deref for Front {
    type Target = HttpOptions;

    fn deref(&self) -> &HttpOptions {
        &self.options
    }
}

impl DerefMut for Front {
    fn deref_mut(&mut self) -> &mut HttpOptions {
        &mut self.options
    }
}

impl Server {
    pub(crate) async fn start() -> Server {
        Server::start_with(|_, _| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut Front, &mut Options)) -> Server {
        let options = HttpOptions { shutdown_grace: Duration::from_secs(5), ..HttpOptions::default() };
        let mut http = Front { options, access: Access::default() };
        let mut options = Options { shards: 2, ..sluice_calls::testing::options() };
        change(&mut http, &mut options);
        let node = Node::start(options).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let about = About { version: "test".to_owned(), durability: "os".to_owned() };
        let calls = Calls::new(node.clone(), http.access, about);
        let serving = tokio::spawn(serve(listener, calls, http.options, async {
            let _ = stopped.await;
        }));
        Server { address, node, api: openapi("test"), stop: Some(stop), serving }
    }

    /// A request; the answer is held against the API description.
    pub(crate) async fn call(&self, method: &str, path: &str, body: &str) -> Answer {
        let headers: &[(&str, &str)] =
            if body.is_empty() { &[] } else { &[("content-type", "application/json")] };
        self.call_with(method, path, headers, body.as_bytes()).await
    }

    pub(crate) async fn call_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let answer = request(self.address, method, path, headers, body).await;
        if let Err(error) = schema::check_answer(&self.api, method, path, &answer) {
            panic!("{method} {path}: {error}\n{}", String::from_utf8_lossy(&answer.body));
        }
        answer
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        self.call("POST", path, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, "").await
    }

    /// Sends a text and gives its id.
    pub(crate) async fn send(&self, queue: &str, payload: &str) -> String {
        let body = serde_json::json!({"payload": payload}).to_string();
        let answer = self.post(&format!("/v1/queues/{queue}/messages"), &body).await;
        assert_eq!(answer.status, 201);
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Receives one message.
    pub(crate) async fn receive(&self, queue: &str) -> Value {
        let answer = self.post(&format!("/v1/queues/{queue}/receive"), r#"{"wait_ms":5000}"#).await;
        assert_eq!(answer.status, 200);
        answer.json()["messages"][0].clone()
    }

    /// Tells the server to stop, and does not wait.
    pub(crate) fn begin_stop(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
    }

    pub(crate) async fn stopped(self) -> Stopped {
        self.serving.await.unwrap()
    }
}

/// `{"receipt": ...}` of a delivered message.
pub(crate) fn receipt(message: &Value) -> String {
    serde_json::json!({"receipt": message["receipt"]}).to_string()
}

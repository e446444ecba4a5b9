//! An identity with the rights of one queue has no way into another.

use serde_json::json;
use sluice_calls::access::{Access, AccessOptions, NewToken, Scope};

use crate::access::{POLICY, call};
use crate::client::Answer;
use crate::support::{Server, receipt};
use crate::tls_support::Ca;

/// A server with a message in each of two queues, of which `billing` may use the first.
struct TwoQueues {
    server: Server,
    admin: String,
    billing: String,
    /// Id of the message in `invoices`.
    invoice: String,
    /// Id of the message in `salaries`.
    salary: String,
}

impl TwoQueues {
    async fn new() -> TwoQueues {
        let ca = Ca::new();
        let options = AccessOptions { policy: Some(ca.policy(POLICY)), ..AccessOptions::default() };
        let access = Access::new(options).unwrap();
        let server = Server::start_with(|http, _| http.access = access.clone()).await;
        assert_eq!(server.get("/v1/queues").await.status, 401, "a rule is an identity");
        let new = |name: &str, scopes| NewToken { name: name.to_owned(), scopes, expires_at_ms: None };
        let scope = Scope::new("*", "admin").unwrap();
        let (_, admin) = access.token_create(&server.node, new("root", vec![scope]), "test").await.unwrap();
        let billing = new("billing", Vec::new());
        let (_, billing) = access.token_create(&server.node, billing, "test").await.unwrap();
        let (admin, billing) = (admin.0.clone(), billing.0.clone());
        let mut ids = Vec::new();
        for queue in ["invoices", "salaries"] {
            let path = format!("/v1/queues/{queue}/messages");
            let sent = call(&server, Some(&admin), "POST", &path, r#"{"payload":"a"}"#).await;
            ids.push(sent.json()["id"].as_str().unwrap().to_owned());
        }
        let [invoice, salary] = ids.try_into().unwrap();
        TwoQueues { server, admin, billing, invoice, salary }
    }

    /// A call of the identity.
    async fn ask(&self, method: &'static str, path: &str, body: &str) -> Answer {
        call(&self.server, Some(&self.billing), method, path, body).await
    }

    /// Status of a POST of the identity.
    async fn post(&self, path: &str, body: impl ToString) -> u16 {
        self.ask("POST", path, &body.to_string()).await.status
    }
}

#[tokio::test]
async fn a_message_is_looked_at_and_changed_by_the_rights_of_its_queue() {
    let queues = TwoQueues::new().await;
    for (id, expected) in [(&queues.invoice, 200), (&queues.salary, 403)] {
        assert_eq!(queues.ask("GET", &format!("/v1/messages/{id}"), "").await.status, expected);
        assert_eq!(queues.ask("GET", &format!("/v1/messages/{id}/result"), "").await.status, expected);
        assert_eq!(queues.post(&format!("/v1/messages/{id}/hold"), "{}").await, expected);
        if expected == 200 {
            queues.post(&format!("/v1/messages/{id}/approve"), "{}").await;
        }
    }
    let moved = format!("/v1/messages/{}/move", queues.invoice);
    assert_eq!(queues.post(&moved, json!({"to": "salaries"})).await, 403);
}

#[tokio::test]
async fn other_queues_are_neither_listed_nor_received_from() {
    let queues = TwoQueues::new().await;
    let listed = queues.ask("GET", "/v1/queues", "").await.json();
    let names: Vec<&str> =
        listed["queues"].as_array().unwrap().iter().map(|q| q["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["invoices"]);
    let rights = &queues.ask("GET", "/v1/whoami", "").await.json()["rights"];
    let first =
        json!({"may": ["receive", "result"], "namespaces": ["default"], "queues": ["invoices"], "keys": []});
    assert_eq!((&rights[0], rights.as_array().unwrap().len()), (&first, 3));
    assert_eq!(queues.post("/v1/receive", json!({"queues": ["invoices", "salaries"]})).await, 403);
    assert_eq!(queues.post("/v1/receive", json!({"queues": ["invoices"]})).await, 200);
    for (queue, expected) in [("invoices", 200), ("salaries", 403)] {
        assert_eq!(queues.post(&format!("/v1/queues/{queue}/search"), "{}").await, expected, "{queue}");
    }
    for path in ["/v1/limits", "/v1/schedules", "/v1/queue-defaults"] {
        assert_eq!(queues.ask("GET", path, "").await.status, 403, "{path}: of all queues");
    }
}

#[tokio::test]
async fn bulks_of_another_queue_are_not_begun_shown_or_ended() {
    let queues = TwoQueues::new().await;
    let slow =
        |queue: &str| json!({"action": "hold", "filter": {"queue": queue}, "per_second": 1}).to_string();
    assert_eq!(queues.post("/v1/bulk", slow("salaries")).await, 403);
    let moved = json!({"action": "move", "to": "salaries", "filter": {"queue": "invoices"}});
    assert_eq!(queues.post("/v1/bulk", moved).await, 403);
    let other = call(&queues.server, Some(&queues.admin), "POST", "/v1/bulk", &slow("salaries")).await.json();
    let other = format!("/v1/bulk/{}", other["bulk"].as_str().unwrap());
    for method in ["GET", "DELETE"] {
        assert_eq!(queues.ask(method, &other, "").await.status, 403, "{method}");
    }
    let own = queues.ask("POST", "/v1/bulk", &slow("invoices")).await;
    assert_eq!(own.status, 202);
    let own = own.json()["bulk"].as_str().unwrap().to_owned();
    let listed = queues.ask("GET", "/v1/bulk", "").await.json();
    assert_eq!((&listed["bulks"][0]["bulk"], listed["bulks"].as_array().unwrap().len()), (&json!(own), 1));
    for method in ["GET", "DELETE"] {
        assert_eq!(queues.ask(method, &format!("/v1/bulk/{own}"), "").await.status, 200, "{method}");
    }
}

#[tokio::test]
async fn receipts_of_another_queue_settle_nothing() {
    let queues = TwoQueues::new().await;
    let path = "/v1/queues/salaries/receive";
    let other = call(&queues.server, Some(&queues.admin), "POST", path, "").await.json();
    let stolen = receipt(&other["messages"][0]);
    for verb in ["ack", "extend", "release"] {
        assert_eq!(queues.post(&format!("/v1/{verb}"), &stolen).await, 403, "{verb}");
    }
}

#[tokio::test]
async fn messages_lead_into_no_other_queue() {
    let queues = TwoQueues::new().await;
    for body in [
        json!({"payload": "a", "reply_to": "salaries"}),
        json!({"messages": [{"payload": "a"}, {"payload": "b", "reply_to": "salaries"}]}),
    ] {
        assert_eq!(queues.post("/v1/queues/invoices/messages", &body).await, 403, "{body}");
    }
    let group = json!({"messages": [{"queue": "invoices", "payload": "a"}],
        "callback": {"queue": "salaries", "payload": "b"}});
    assert_eq!(queues.post("/v1/groups", group).await, 403);
    let dead = json!({"dead_letter_queue": "salaries"}).to_string();
    assert_eq!(queues.ask("PATCH", "/v1/queues/invoices", &dead).await.status, 403);
}

#[tokio::test]
async fn messages_wait_for_none_of_another_queue() {
    let queues = TwoQueues::new().await;
    for (id, expected) in [(&queues.invoice, 201), (&queues.salary, 403)] {
        let waits = json!({"payload": "b", "depends_on": [id]});
        assert_eq!(queues.post("/v1/queues/invoices/messages", waits).await, expected);
        let group = json!({"messages": [{"queue": "invoices", "payload": "a", "depends_on": [id]}],
            "callback": {"queue": "invoices", "payload": "b"}});
        assert_eq!(queues.post("/v1/groups", group).await, expected);
    }
}

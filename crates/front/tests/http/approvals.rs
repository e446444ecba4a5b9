//! Messages that a caller may send only if a person approves them.

use serde_json::{Value, json};

use crate::access::{Asking, asking};
use crate::client::Answer;
use crate::support::receipt;

const POLICY: &str = "
[[rule]]
name = 'works'
identities = ['agent']
role = 'producer'
queues = ['notes']

[[rule]]
name = 'proposes'
identities = ['agent']
role = 'proposer'
queues = ['payments', 'refunds.*']
";
const PAYMENTS: &str = "/v1/queues/payments/messages";

/// A server with an agent, which may propose payments.
struct Agent {
    asking: Asking,
    token: String,
}

impl Agent {
    async fn new() -> Agent {
        let asking = asking().await;
        let policy = json!({"policy": POLICY, "version": ""}).to_string();
        let set = asking.call(&asking.admin, "PUT", "/v1/policy", &policy).await;
        assert_eq!(set.status, 201, "{}", String::from_utf8_lossy(&set.body));
        let token = asking.token("agent", &[]).await;
        Agent { asking, token }
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.asking.call(&self.token, "POST", path, &body.to_string()).await
    }

    async fn refused(&self, path: &str, body: Value) -> String {
        let answer = self.post(path, body.clone()).await;
        assert_eq!(answer.status, 403, "{path} {body}");
        answer.code()
    }

    async fn by_admin(&self, path: &str, body: Value) -> Answer {
        self.asking.call(&self.asking.admin, "POST", path, &body.to_string()).await
    }
}

#[tokio::test]
async fn a_proposal_is_delivered_when_a_person_has_approved_it() {
    let agent = Agent::new().await;
    assert_eq!(agent.post("/v1/queues/notes/messages", json!({"payload": "free"})).await.status, 201);
    assert_eq!(agent.refused(PAYMENTS, json!({"payload": "a"})).await, "approval_needed");
    let sent = agent.post(PAYMENTS, json!({"payload": "a", "hold": true, "result_ttl_ms": 60_000})).await;
    assert_eq!(sent.status, 201, "{}", String::from_utf8_lossy(&sent.body));
    let id = sent.json()["id"].as_str().unwrap().to_owned();
    let take = || agent.by_admin("/v1/queues/payments/receive", json!({}));
    assert_eq!(take().await.json()["messages"], json!([]));
    for act in ["approve", "deny", "retry", "cancel", "hold"] {
        assert_eq!(agent.refused(&format!("/v1/messages/{id}/{act}"), json!({})).await, "forbidden", "{act}");
    }
    assert_eq!(agent.refused(&format!("/v1/messages/{id}/move"), json!({"to": "notes"})).await, "forbidden");
    assert_eq!(agent.refused("/v1/queues/payments/receive", json!({})).await, "forbidden");
    let approved = agent.by_admin(&format!("/v1/messages/{id}/approve"), json!({"by": "ann"})).await;
    assert_eq!(approved.status, 200);
    let taken = take().await.json();
    assert_eq!(taken["messages"][0]["id"], json!(id));
    let done = receipt(&taken["messages"][0]);
    assert_eq!(agent.asking.call(&agent.asking.admin, "POST", "/v1/ack", &done).await.status, 200);
    let result = agent.asking.call(&agent.token, "GET", &format!("/v1/messages/{id}/result"), "").await;
    assert_eq!((result.status, &result.json()["state"]), (200, &json!("done")));
}

#[tokio::test]
async fn there_is_no_other_way_into_the_queue() {
    let agent = Agent::new().await;
    let held = |more: Value| {
        let mut message = json!({"payload": "a", "hold": true});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message
    };
    let unique = |on_duplicate: &str| json!({"unique": {"key": "k", "on_duplicate": on_duplicate}});
    for (path, body) in [
        (PAYMENTS, json!({"payload": "a", "hold": false})),
        (PAYMENTS, json!({"payload": "a", "priority": 9})),
        (PAYMENTS, json!({"messages": [{"payload": "a", "hold": true}, {"payload": "b"}]})),
        // It would change what somebody has looked at, or keep others back until somebody decides.
        (PAYMENTS, held(unique("keep"))),
        (PAYMENTS, held(json!({"ordering_key": "k"}))),
        (PAYMENTS, held(unique("replace_payload"))),
        (PAYMENTS, held(unique("debounce"))),
        ("/v1/queues/payments/messages/raw", json!("as a body")),
        ("/v1/queues/refunds.eu/messages", json!({"payload": "a"})),
        ("/v1/transactions", json!({"operations": [{"send": {"queue": "payments", "payload": "a"}}]})),
    ] {
        assert_eq!(agent.refused(path, body.clone()).await, "approval_needed", "{path} {body}");
    }
    let notes = "/v1/queues/notes/messages";
    for (path, body) in [
        ("/v1/queues/salaries/messages", held(json!({}))),
        (notes, json!({"payload": "a", "reply_to": "payments"})),
        (notes, json!({"payload": "a", "chain": [{"queue": "payments", "payload": "b"}]})),
        (
            "/v1/groups",
            json!({"messages": [held(json!({"queue": "payments"}))],
            "callback": {"queue": "notes", "payload": "b"}}),
        ),
        ("/v1/transactions", json!({"operations": [{"send": held(json!({"queue": "salaries"}))}]})),
    ] {
        assert_eq!(agent.refused(path, body.clone()).await, "forbidden", "{path} {body}");
    }
    let committed = json!({"operations": [{"send": held(json!({"queue": "payments"}))}]});
    let committed = agent.post("/v1/transactions", committed).await;
    assert_eq!(committed.status, 200, "{}", String::from_utf8_lossy(&committed.body));
    let taken = agent.by_admin("/v1/queues/payments/receive", json!({"max": 100})).await;
    assert_eq!(taken.json()["messages"], json!([]), "nothing is delivered without an approval");
    let headers = [("authorization", format!("Bearer {}", agent.token)), ("sluice-hold", "true".to_owned())];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let raw = agent.asking.server.call_with("POST", "/v1/queues/payments/messages/raw", &headers, b"a").await;
    assert_eq!(raw.status, 201, "{}", String::from_utf8_lossy(&raw.body));
}

#[tokio::test]
async fn a_proposal_that_dies_goes_nowhere_and_comes_back_as_a_proposal() {
    let agent = Agent::new().await;
    let settings =
        json!({"dead_letter_queue": "failed", "max_messages": 2, "overflow": "dead_letter_oldest"});
    let set =
        agent.asking.call(&agent.asking.admin, "PUT", "/v1/queues/payments", &settings.to_string()).await;
    assert!(set.status < 300, "{}", String::from_utf8_lossy(&set.body));
    for more in [json!({"ttl_ms": 1}), json!({}), json!({}), json!({})] {
        let mut message = json!({"payload": "a", "hold": true});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(agent.post(PAYMENTS, message).await.status, 201);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let counts = async |queue: &str| {
        let path = format!("/v1/queues/{queue}");
        agent.asking.call(&agent.asking.admin, "GET", &path, "").await.json()["counts"].clone()
    };
    let now = counts("payments").await;
    assert_eq!((&now["held"], &now["dead"]), (&json!(2), &json!(2)), "{now}");
    assert_eq!(counts("failed").await, Value::Null, "nothing has moved there");
    agent.by_admin("/v1/queues/payments/dead/redrive", json!({"all": true})).await;
    for queue in ["payments", "failed"] {
        let taken = agent.by_admin(&format!("/v1/queues/{queue}/receive"), json!({"max": 10})).await;
        assert_eq!(taken.json().get("messages").unwrap_or(&json!([])), &json!([]), "{queue}");
    }
}

#[tokio::test]
async fn a_right_that_is_revoked_is_over_for_proposals_too() {
    let agent = Agent::new().await;
    let held = json!({"payload": "a", "hold": true});
    assert_eq!(agent.post(PAYMENTS, held.clone()).await.status, 201);
    let removed = agent.asking.call(&agent.asking.admin, "DELETE", "/v1/policy", "").await;
    assert_eq!(removed.status, 200);
    assert_eq!(agent.refused(PAYMENTS, held).await, "forbidden");
}

//! Schedules over HTTP.

use serde_json::json;

use crate::support::Server;

#[tokio::test]
async fn schedules_are_set_shown_paused_triggered_and_deleted() {
    let server = Server::start().await;
    let body = r#"{"cron":"0 9 * * MON-FRI","time_zone":"Europe/Berlin","queue":"reports","missed":"all",
        "message":{"payload":"daily","priority":3,"unique":{"key":"daily"}}}"#;
    let made = server.call("PUT", "/v1/schedules/daily", body).await;
    assert_eq!((made.status, &made.json()["fired"]), (201, &json!(0)));
    assert_eq!(server.call("PUT", "/v1/schedules/daily", body).await.status, 200);
    let shown = server.get("/v1/schedules/daily").await.json();
    assert_eq!((&shown["cron"], &shown["time_zone"]), (&json!("0 9 * * MON-FRI"), &json!("Europe/Berlin")));
    assert_eq!((&shown["missed"], &shown["message"]["payload"]), (&json!("all"), &json!("daily")));
    assert_eq!(shown["message"]["unique"]["key"], "daily");
    let next = server.get("/v1/schedules/daily/next?count=3").await.json();
    assert_eq!(next["next_at_ms"][0], shown["next_at_ms"]);
    assert_eq!(next["next_at_ms"].as_array().unwrap().len(), 3);

    let paused = server.post("/v1/schedules/daily/pause", "").await.json();
    assert_eq!((&paused["paused"], paused.get("next_at_ms")), (&json!(true), None));
    let sent = server.post("/v1/schedules/daily/trigger", "").await;
    assert_eq!((sent.status, &sent.json()["duplicate"]), (201, &json!(false)));
    let again = server.post("/v1/schedules/daily/trigger", "").await.json();
    assert_eq!((&again["id"], &again["duplicate"]), (&sent.json()["id"], &json!(true)));
    let resumed = server.post("/v1/schedules/daily/resume", "").await.json();
    assert!(resumed["next_at_ms"].as_u64().is_some());
    let received = server.post("/v1/queues/reports/receive", r#"{"max":10}"#).await.json();
    assert_eq!(received["messages"].as_array().unwrap().len(), 1);
    assert!(received["messages"][0]["correlation_id"].as_str().unwrap().starts_with("daily@"));

    let list = server.get("/v1/schedules?limit=1").await.json();
    assert_eq!((&list["schedules"][0]["name"], list.get("next")), (&json!("daily"), None));
    assert_eq!(server.call("DELETE", "/v1/schedules/daily", "").await.json(), json!({}));
    assert_eq!(server.get("/v1/schedules/daily").await.code(), "schedule_not_found");
}

#[tokio::test]
async fn what_cannot_be_scheduled_is_refused() {
    let server = Server::start().await;
    for (when, told) in [
        (r#""cron":"0 0 30 2 *""#, "never fires"),
        (r#""cron":"0 9 * * *","time_zone":"Europe/Berln""#, "Berln"),
        (r#""cron":"0 25 * * *""#, "0 25 * * *"),
    ] {
        let body = format!(r#"{{{when},"queue":"a","message":{{"payload":""}}}}"#);
        let refused = server.call("PUT", "/v1/schedules/no", &body).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_argument"));
        assert!(refused.json()["error"]["message"].as_str().unwrap().contains(told), "{}", refused.json());
    }
    let at = r#"{"every_ms":1000,"queue":"a","message":{"payload":"","deliver_at_ms":5}}"#;
    assert_eq!(server.call("PUT", "/v1/schedules/no", at).await.code(), "invalid_argument");
}

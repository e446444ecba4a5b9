//! Scenarios of sending, receiving, results, flows and schedules.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sluice_client::{
    Client, LimitSettings, Message, MessageOptions, QueueChange, QueueMessage, Rate, Receive, Report,
    ScheduleSettings, Settle, SettleItem, Step, Unique, WorkResult,
};
use tokio::time::Instant;

use super::support::{
    LONG, Working, code, counts, eventually, is_empty, message, next, on, receive, send, send_all, text,
    texts,
};

fn with(payload: &'static str, options: MessageOptions<'static>) -> Message<'static> {
    Message { options: Some(Box::new(options)), ..message(payload) }
}

pub(super) async fn send_and_receive(client: &Client) {
    let sent = Message {
        content_type: Some("image/png".into()),
        headers: vec![("to".into(), "ann".into()), ("x".into(), "1".into())],
        ..Message::new(b"\x00\xffhello")
    };
    let id = send(client, "q", sent).await;
    let got = next(client, "q").await;
    assert_eq!((got.id, &got.payload.0[..]), (id, &b"\x00\xffhello"[..]));
    assert_eq!((got.headers["to"].as_str(), got.headers["x"].as_str(), got.headers.len()), ("ann", "1", 2));
    assert_eq!(got.content_type.as_deref(), Some("image/png"));
    assert!(receive(client, "q", 1).await.is_empty());
    client.ack(&got.receipt).await.unwrap();
    assert!(is_empty(client, "q").await);
}

pub(super) async fn send_many(client: &Client) {
    let payloads: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
    let messages: Vec<_> = payloads.iter().map(|payload| message(payload)).collect();
    let (ids, _) = send_all(client, "q", &messages).await.unwrap();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 1_000);
    let mut got = Vec::new();
    loop {
        let page = receive(client, "q", 300).await;
        if page.is_empty() {
            break;
        }
        let settled = client.ack_many(page.iter().map(|one| one.receipt.as_str())).await.unwrap();
        assert!(settled.iter().all(|one| one.ok && !one.already_settled));
        got.extend(texts(&page).into_iter().map(|n| n.parse::<u32>().unwrap()));
    }
    got.sort_unstable();
    assert!(got.iter().copied().eq(0..1_000));
}

pub(super) async fn send_options(client: &Client) {
    let tags: Vec<Cow<'_, str>> = vec!["a".into(), "b".into()];
    let high = with("high", MessageOptions { tags, ..MessageOptions::default() });
    let high = Message { priority: Some(9), ..high };
    send_all(client, "q", &[message("low"), high]).await.unwrap();
    let got = receive(client, "q", 2).await;
    assert_eq!(texts(&got), ["high", "low"]);
    assert_eq!(got[0].details.as_ref().unwrap().tags, ["a", "b"]);
    delays(client).await;
    keys(client).await;
    ends(client).await;
    let again = async || {
        let sent = client.send_with_key("q", &[message("x")], "k").await.unwrap();
        let sent = sent.decode().unwrap();
        (sent.ids[0].to_string(), sent.duplicate)
    };
    let (first, second) = (again().await, again().await);
    assert_eq!((first.0, first.1, second.1), (second.0, false, true));
}

async fn delays(client: &Client) {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let began = Instant::now();
    let later = Message { delay_ms: Some(1_000), ..message("later") };
    let at = Message { deliver_at_ms: Some(now_ms + 1_500), ..message("at") };
    send_all(client, "delay", &[at, later]).await.unwrap();
    assert!(receive(client, "delay", 2).await.is_empty());
    assert_eq!(text(&next(client, "delay").await), "later");
    assert!(began.elapsed() >= Duration::from_millis(990));
    assert_eq!(text(&next(client, "delay").await), "at");
}

async fn keys(client: &Client) {
    let ordered = |payload| {
        with(payload, MessageOptions { ordering_key: Some("o".into()), ..MessageOptions::default() })
    };
    send_all(client, "keys", &[ordered("1"), ordered("2")]).await.unwrap();
    let first = receive(client, "keys", 2).await;
    assert_eq!(texts(&first), ["1"]);
    client.ack(&first[0].receipt).await.unwrap();
    assert_eq!(texts(&receive(client, "keys", 2).await), ["2"]);
    let unique = || {
        let unique = Some(Unique { key: "only".into(), ..Unique::default() });
        with("u", MessageOptions { unique, ..MessageOptions::default() })
    };
    let (one, other) = (send(client, "keys", unique()).await, send(client, "keys", unique()).await);
    assert_eq!((one, counts(client, "keys").await.ready), (other, 1));
}

async fn ends(client: &Client) {
    send(client, "ttl", with("short", MessageOptions { ttl_ms: Some(200), ..MessageOptions::default() }))
        .await;
    eventually("it has expired", async || counts(client, "ttl").await.dead == 1).await;
    let dead = client.dead("ttl", None, 1).await.unwrap().messages;
    assert_eq!(dead[0].reason.as_deref(), Some("expired"));
}

pub(super) async fn send_again(client: &Client) {
    let again = async |payloads: &[&str]| {
        let messages: Vec<_> = payloads.iter().map(|payload| message(payload)).collect();
        let sent = client.send_with_key("q", &messages, "once").await?;
        let sent = sent.decode()?;
        Ok((sent.ids.iter().map(ToString::to_string).collect::<Vec<_>>(), sent.duplicate))
    };
    let (first, second) = (again(&["a", "b"]).await.unwrap(), again(&["a", "b"]).await.unwrap());
    assert_eq!((&first.0, first.1, second.1), (&second.0, false, true));
    assert_eq!(counts(client, "q").await.ready, 2);
    assert_eq!(code(again(&["c"]).await), "idempotency_mismatch");
}

fn kept(payload: &'static str) -> Message<'static> {
    with(payload, MessageOptions { result_ttl_ms: Some(60_000), ..MessageOptions::default() })
}

pub(super) async fn request_and_reply(client: &Client) {
    let working = Working::begin(client, on("q"), |job| async move {
        let bytes = job.message.payload.0.iter().rev().copied().collect();
        Settle::AckWith(WorkResult { content_type: None, bytes })
    });
    let id = send(client, "q", kept("abc")).await;
    let answered = client.result(&id, LONG).await.unwrap();
    assert_eq!((answered.state.as_str(), answered.result.as_deref()), ("done", Some("cba")));
    let options = MessageOptions {
        reply_to: Some("replies".into()),
        correlation_id: Some("c1".into()),
        ..MessageOptions::default()
    };
    send(client, "q", with("xyz", options)).await;
    let reply = next(client, "replies").await;
    let details = reply.details.as_ref().unwrap();
    assert_eq!((text(&reply), details.correlation_id.as_deref()), ("zyx", Some("c1")));
    working.end().await;
    let id = send(client, "q", kept("nobody")).await;
    let began = Instant::now();
    assert_eq!(client.result(&id, Duration::from_millis(300)).await.unwrap().state, "pending");
    assert!(began.elapsed() >= Duration::from_millis(300));
}

pub(super) async fn results(client: &Client) {
    let id = send(client, "q", kept("6*7")).await;
    assert_eq!(client.result(&id, Duration::ZERO).await.unwrap().state, "pending");
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.result(&id, LONG).await.unwrap() }
    });
    let got = receive(client, "q", 1).await;
    let settle = Settle::AckWith(WorkResult { content_type: None, bytes: b"42".to_vec() });
    let answer = SettleItem::of(&*got[0].receipt, settle);
    client.settle_one(&answer).await.unwrap();
    assert_eq!(waiting.await.unwrap().result_bytes().unwrap().as_deref(), Some(&b"42"[..]));
    let id = send(client, "q", message("no")).await;
    let got = receive(client, "q", 1).await;
    let settle = Settle::Reject { error: "never".to_owned() };
    client.settle_one(&SettleItem::of(&*got[0].receipt, settle)).await.unwrap();
    let dead = client.result(&id, LONG).await.unwrap();
    assert_eq!((dead.state.as_str(), dead.reason.as_deref()), ("dead", Some("rejected")));
}

pub(super) async fn flow(client: &Client) {
    let second = Message { headers: vec![("w".into(), "80".into())], ..Message::default() };
    let chain = vec![Step { message: second, ..Step::to("second") }];
    send(client, "first", with("a", MessageOptions { chain, ..MessageOptions::default() })).await;
    assert_eq!(code(client.queue("second").await), "queue_not_found");
    let got = receive(client, "first", 1).await;
    let settle = Settle::AckWith(WorkResult { content_type: None, bytes: b"A".to_vec() });
    client.settle_one(&SettleItem::of(&*got[0].receipt, settle)).await.unwrap();
    let step = next(client, "second").await;
    assert_eq!((text(&step), step.headers["w"].as_str()), ("A", "80"));

    let to = |queue: &'static str, payload| QueueMessage { queue: queue.into(), message: message(payload) };
    let members = ["1", "2", "3"].map(|n| to("first", n));
    let group = client.group_send(&members, &to("end", "all done"), None).await.unwrap();
    for member in receive(client, "first", 3).await {
        assert!(receive(client, "end", 1).await.is_empty());
        client.ack(&member.receipt).await.unwrap();
    }
    let callback = next(client, "end").await;
    assert_eq!((&callback.id, text(&callback)), (&group.group, "all done"));
    assert_eq!(callback.headers["sluice-done"], "3");
}

pub(super) async fn schedule(client: &Client) {
    let sends = Message { headers: vec![("by".into(), "schedule".into())], ..message("tick") };
    let pulse = ScheduleSettings {
        every_ms: Some(1_000),
        queue: "q".to_owned(),
        message: sends,
        ..ScheduleSettings::default()
    };
    client.schedule_set("each-second", &pulse).await.unwrap();
    for _ in 0..2 {
        let got = next(client, "q").await;
        assert_eq!((text(&got), got.headers["by"].as_str()), ("tick", "schedule"));
    }
    let daily = ScheduleSettings {
        cron: Some("0 9 * * MON-FRI".to_owned()),
        time_zone: Some("Europe/Berlin".to_owned()),
        queue: "q".to_owned(),
        ..ScheduleSettings::default()
    };
    client.schedule_set("daily", &daily).await.unwrap();
    let names: Vec<String> = client.schedules().await.unwrap().into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["daily", "each-second"]);
    assert_eq!(client.schedule_next("daily", 3).await.unwrap().len(), 3);
    client.schedule_delete("each-second").await.unwrap();
    receive(client, "q", 100).await;
    let wait = Receive::from_queue("q").wait(Duration::from_millis(1_500));
    assert!(client.receive(&wait).await.unwrap().is_empty());
}

pub(super) async fn budget(client: &Client) {
    let allow = async |period_ms| {
        let rate_per_key = Some(Rate { count: 1_000, period_ms, burst: None });
        client
            .limit_set("tokens", &LimitSettings { rate_per_key, ..LimitSettings::default() })
            .await
            .unwrap();
    };
    allow(60_000).await;
    let follow = QueueChange { limit: Some("tokens".to_owned()), ..QueueChange::default() };
    client.queue_set("q", &follow, true).await.unwrap();
    let of = |payload, key: &'static str, cost| {
        let limit_key = Some(key.into());
        with(payload, MessageOptions { limit_key, cost, ..MessageOptions::default() })
    };
    let messages = [of("large", "ann", Some(2_000)), of("next", "ann", None), of("other", "bob", None)];
    send_all(client, "q", &messages).await.unwrap();
    let got = receive(client, "q", 10).await;
    assert_eq!(texts(&got), ["large", "other"]);
    let report = Report { add_cost: 600, ..Report::default() };
    client.report(&got[0].receipt, None, &report).await.unwrap();
    let item = SettleItem { add_cost: 400, ..SettleItem::ack(&got[0].receipt) };
    client.settle_one(&item).await.unwrap();
    let of_ann = client.limit_key("tokens", "ann").await.unwrap().keys.remove(0);
    let spent = of_ann.spent.unwrap();
    assert!((2_800..=3_000).contains(&spent) && of_ann.waiting == 1, "{of_ann:?}");
    assert!(receive(client, "q", 10).await.is_empty());
    // Other rules forgive the debt, and what is left is made up for within a millisecond.
    allow(1_000).await;
    assert_eq!(text(&next(client, "q").await), "next");
}

//! Health and reflection, as gRPC's own tools ask for them.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request};
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use prost_types::FileDescriptorProto;
use sluice_calls::access::{Access, AccessOptions};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::support::{Client, Messages, framed, start, start_until, until};
use crate::grpc::schema::schema;
use crate::grpc::wire::{Raw, next_field, put_bytes, put_number};
use crate::net::body::Body;
use crate::net::context::STANDARD_STREAMS_MAX;

const CHECK: &str = "/grpc.health.v1.Health/Check";
const LIST: &str = "/grpc.health.v1.Health/List";
const WATCH: &str = "/grpc.health.v1.Health/Watch";
const REFLECT: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const REFLECT_ALPHA: &str = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

const SERVING: u64 = 1;
const NOT_SERVING: u64 = 2;
const SERVICE_UNKNOWN: u64 = 3;

async fn client() -> Client {
    Client::connect(start(|_, _| {}).await).await
}

/// A message with one text.
fn naming(field: u32, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, field, text.as_bytes());
    out
}

/// The values of a field of a message, in their order.
fn all_of(mut message: &[u8], wanted: u32) -> Vec<Raw<'_>> {
    let mut found = Vec::new();
    while let Some((number, value)) = next_field(&mut message).unwrap() {
        if number == wanted {
            found.push(value);
        }
    }
    found
}

fn bytes_of(message: &[u8], wanted: u32) -> Vec<&[u8]> {
    let bytes =
        |value| if let Raw::Bytes(bytes) = value { bytes } else { panic!("field {wanted}: {value:?}") };
    all_of(message, wanted).into_iter().map(bytes).collect()
}

fn number_of(message: &[u8], wanted: u32) -> u64 {
    match all_of(message, wanted)[..] {
        [Raw::Number(number)] => number,
        ref other => panic!("field {wanted}: {other:?}"),
    }
}

/// Status and code of an error.
fn status_of(trailers: &HeaderMap) -> (&str, &str) {
    let text = |name: &str| trailers.get(name).map_or("", |value: &HeaderValue| value.to_str().unwrap());
    (text("grpc-status"), text("sluice-code"))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Makes a call with one message; its answers and trailers.
async fn ask(client: &mut Client, path: &str, message: &[u8]) -> (Vec<Bytes>, HeaderMap) {
    client.open(path, framed(&[message])).await.all().await
}

/// The names of all services, by reflection.
async fn services(client: &mut Client, path: &str) -> Vec<String> {
    let (answers, trailers) = ask(client, path, &naming(7, "*")).await;
    assert_eq!((status_of(&trailers), answers.len()), (("0", ""), 1));
    let listed = bytes_of(&answers[0], 6);
    bytes_of(listed[0], 1).iter().map(|service| text(bytes_of(service, 1)[0]).to_owned()).collect()
}

#[tokio::test]
async fn the_server_and_each_service_is_serving() {
    let mut client = client().await;
    let all = services(&mut client, REFLECT).await;
    assert!(all.iter().any(|service| service == "sluice.v1.Messages"), "{all:?}");
    let (listed, _) = ask(&mut client, LIST, b"").await;
    let mut names = BTreeSet::new();
    for entry in bytes_of(&listed[0], 1) {
        names.insert(text(bytes_of(entry, 1)[0]).to_owned());
        assert_eq!(number_of(bytes_of(entry, 2)[0], 1), SERVING);
    }
    let with_server: BTreeSet<String> = all.into_iter().chain([String::new()]).collect();
    assert_eq!(names, with_server);
    for service in names {
        let (answers, trailers) = ask(&mut client, CHECK, &naming(1, &service)).await;
        assert_eq!(number_of(&answers[0], 1), SERVING, "{service}");
        assert_eq!(trailers["grpc-status"], "0");
    }
    // No field at all is the empty name, and a field of a newer contract is left alone.
    let mut newer = naming(1, "sluice.v1.Locks");
    put_number(&mut newer, 99, 7);
    for message in [&b""[..], &newer] {
        assert_eq!(number_of(&ask(&mut client, CHECK, message).await.0[0], 1), SERVING);
    }
}

#[tokio::test]
async fn the_health_of_what_is_not_served_is_an_error() {
    let mut client = client().await;
    for service in ["none", "sluice.v1", "sluice.v1.Messages ", "sluice.v1.messages"] {
        let (answers, trailers) = ask(&mut client, CHECK, &naming(1, service)).await;
        assert_eq!((answers.len(), status_of(&trailers)), (0, ("5", "not_found")), "{service}");
        assert!(trailers["grpc-message"].to_str().unwrap().contains("sluice.v1.Messages, "), "{trailers:?}");
    }
    let mut number = Vec::new();
    put_number(&mut number, 1, 7);
    for (message, code) in [
        (&number[..], "invalid_protobuf"),
        (b"\x0a\x09x", "invalid_protobuf"),
        (b"\x0a\x01\xff", "invalid_argument"),
        (&naming(1, &"x".repeat(20 << 10))[..], "body_too_large"),
    ] {
        for path in [CHECK, WATCH] {
            assert_eq!(ask(&mut client, path, message).await.1["sluice-code"], code, "{path}");
        }
    }
}

#[tokio::test]
async fn who_watches_is_told_of_each_change() {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let address = start_until(|_, _| {}, async { drop(stopped.await) }).await;
    let mut client = Client::connect(address).await;
    let mut of_server = client.open(WATCH, framed(&[b""])).await;
    let mut of_none = client.open(WATCH, framed(&[&naming(1, "none")])).await;
    assert_eq!(number_of(&of_server.next().await.unwrap(), 1), SERVING);
    assert_eq!(number_of(&of_none.next().await.unwrap(), 1), SERVICE_UNKNOWN);
    // Nothing is told while nothing changes.
    let quiet = tokio::time::timeout(Duration::from_millis(2_500), of_server.next()).await;
    assert!(quiet.is_err(), "{quiet:?}");
    drop(stop);
    assert_eq!(number_of(&of_server.next().await.unwrap(), 1), NOT_SERVING);
    assert_eq!(of_server.next().await.unwrap_err()["grpc-status"], "0");
    assert_eq!(of_none.next().await.unwrap_err()["grpc-status"], "0");
}

#[tokio::test]
async fn nobody_has_to_say_who_they_are_and_their_streams_are_bounded() {
    let access = Access::new(AccessOptions::default()).unwrap();
    let address = start(|_, asks| *asks = access).await;
    let mut root = Client::connect(address).await;
    root.token = root.make_token("root", "sluice://ns/*?perm=admin").await;
    let mut client = Client::connect(address).await;
    assert_eq!(number_of(&ask(&mut client, CHECK, b"").await.0[0], 1), SERVING);
    assert!(!services(&mut client, REFLECT).await.is_empty());
    let mut connections = Vec::new();
    let mut streams = Vec::new();
    while streams.len() < STANDARD_STREAMS_MAX {
        if streams.len() % 50 == 0 {
            connections.push(Client::connect(address).await);
        }
        let connection = connections.last_mut().unwrap();
        let mut stream = connection.open(WATCH, framed(&[b""])).await;
        assert_eq!(number_of(&stream.next().await.unwrap(), 1), SERVING);
        streams.push(stream);
    }
    for path in [WATCH, REFLECT] {
        let (_, trailers) = ask(&mut client, path, b"").await;
        assert_eq!(status_of(&trailers), ("8", "overloaded"));
    }
    // One answer is always to be had.
    assert_eq!(number_of(&ask(&mut client, CHECK, b"").await.0[0], 1), SERVING);
    drop(streams);
    drop(connections);
    until(async || {
        let (answers, _) = ask(&mut client, REFLECT, &naming(7, "")).await;
        !answers.is_empty()
    })
    .await;
}

#[tokio::test]
async fn every_name_of_the_contract_leads_to_its_file() {
    let mut client = client().await;
    let mut asked: Vec<String> = services(&mut client, REFLECT).await;
    asked.extend(schema().calls().map(|path| path[1..].replace('/', ".")));
    asked.extend(
        [
            ".sluice.v1.Messages",
            "sluice.v1.SendRequest",
            "sluice.v1.SendRequest.queue",
            "grpc.health.v1.HealthCheckResponse.ServingStatus",
            "grpc.health.v1.HealthCheckResponse.SERVING",
            "grpc.reflection.v1.ServerReflectionRequest.message_request",
        ]
        .map(str::to_owned),
    );
    let requests: Vec<Vec<u8>> = asked.iter().map(|symbol| naming(4, symbol)).collect();
    let requests: Vec<&[u8]> = requests.iter().map(Vec::as_slice).collect();
    let (answers, trailers) = client.open(REFLECT, framed(&requests)).await.all().await;
    assert_eq!((status_of(&trailers), answers.len()), (("0", ""), asked.len()));
    for ((symbol, request), answer) in asked.iter().zip(requests).zip(&answers) {
        assert_eq!(bytes_of(answer, 2), [request]);
        let found = bytes_of(answer, 4);
        let [file] = bytes_of(found[0], 1)[..] else { panic!("{symbol} has one file") };
        let file = FileDescriptorProto::decode(file).unwrap();
        assert!(symbol.trim_start_matches('.').starts_with(file.package()), "{symbol} in {}", file.name());
        // What a file imports is found as well.
        for import in &file.dependency {
            let (answers, _) = ask(&mut client, REFLECT_ALPHA, &naming(3, import)).await;
            let found = bytes_of(&answers[0], 4);
            let imported = FileDescriptorProto::decode(bytes_of(found[0], 1)[0]).unwrap();
            assert_eq!(imported.name(), import);
        }
    }
}

#[tokio::test]
async fn what_is_asked_in_vain_is_told_and_the_stream_goes_on() {
    let mut client = client().await;
    let extension = [&naming(1, "sluice.v1.Message")[..], &[0x10, 1]].concat();
    let mut extension_of = Vec::new();
    put_bytes(&mut extension_of, 5, &extension);
    let of_host = [naming(1, "example.org"), naming(7, "")].concat();
    let twice = [naming(3, "none.proto"), naming(7, "")].concat();
    let requests: [&[u8]; 8] = [
        b"",
        &naming(3, "none.proto"),
        &naming(4, "sluice.v1.None"),
        &naming(6, "sluice.v1.None"),
        &extension_of,
        &naming(6, "sluice.v1.Message"),
        &of_host,
        &twice,
    ];
    let (answers, trailers) = client.open(REFLECT, framed(&requests)).await.all().await;
    assert_eq!((status_of(&trailers), answers.len()), (("0", ""), 8));
    for (answer, (status, named)) in answers.iter().zip([
        (3, "message_request"),
        (5, "none.proto"),
        (5, "sluice.v1.None"),
        (5, "sluice.v1.None"),
        (5, "sluice.v1.Message"),
    ]) {
        let error = bytes_of(answer, 7)[0];
        assert_eq!(number_of(error, 1), status);
        assert!(text(bytes_of(error, 2)[0]).contains(named), "{}", text(bytes_of(error, 2)[0]));
    }
    assert_eq!(bytes_of(bytes_of(&answers[5], 5)[0], 1), [b"sluice.v1.Message"]);
    assert_eq!(bytes_of(&answers[6], 1), [b"example.org"]);
    assert!(!bytes_of(&answers[7], 6).is_empty(), "of two fields, the last counts");
}

#[tokio::test]
async fn requests_that_are_none_end_the_stream_behind_the_answers_before() {
    let mut client = client().await;
    let good = naming(7, "");
    let too_large = naming(3, &"x".repeat(17 << 10));
    for (bad, code) in [
        (framed(&[&good, b"\x22\x09x"]), "invalid_protobuf"),
        (framed(&[&good, b"\x22\x01\xff"]), "invalid_argument"),
        (framed(&[&good, b"\x20\x01"]), "invalid_protobuf"),
        (framed(&[&good, &too_large]), "invalid_protobuf"),
        (framed(&[&good, b"x"]).slice(..framed(&[&good]).len() + 3), "incomplete_body"),
    ] {
        let (answers, trailers) = client.open(REFLECT, bad).await.all().await;
        assert_eq!((answers.len(), status_of(&trailers).1), (1, code));
    }
    // No request at all is no mistake.
    let (answers, trailers) = client.open(REFLECT, Bytes::new()).await.all().await;
    assert_eq!((answers.len(), status_of(&trailers)), (0, ("0", "")));
}

#[tokio::test]
async fn both_versions_tell_the_same_and_count_as_what_http_has() {
    let mut client = client().await;
    let all = services(&mut client, REFLECT).await;
    assert_eq!(all, services(&mut client, REFLECT_ALPHA).await);
    ask(&mut client, CHECK, b"").await;
    let figures = client.get_bytes("/metrics").await;
    let figures = text(&figures);
    for (operation, count) in [("openapi", 2), ("ready", 1)] {
        let line = format!("sluice_http_requests_total{{route=\"{operation}\",status=\"200\"}} {count}");
        assert!(figures.contains(&line), "{line} is not in {figures}");
    }
    let (_, trailers) = ask(&mut client, "/grpc.health.v1.Health/None", b"").await;
    assert_eq!(trailers["sluice-code"], "method_not_allowed");
}

#[tokio::test]
async fn a_client_that_asks_for_nothing_more_gives_its_place_back() {
    let address = start(|http, _| http.body_timeout = Duration::from_millis(300)).await;
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut connection, driver) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    let (requests, body) = mpsc::channel(1);
    let request =
        Request::post(format!("http://{address}{REFLECT}")).header("content-type", "application/grpc");
    let request = request.body(Body::stream(body)).unwrap();
    let mut answers = Messages::of(connection.send_request(request).await.unwrap());
    for _ in 0..3 {
        requests.send(Ok(framed(&[&naming(7, "")]))).await.unwrap();
        assert!(!bytes_of(&answers.next().await.unwrap(), 6).is_empty());
    }
    assert_eq!(answers.next().await.unwrap_err()["grpc-status"], "0");
    drop(requests);
}

//! The same session, cut and delayed at every byte, on its way in and on its way out: a client sees the same.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use sluice_http2::drive::{Plain, Tls};
use sluice_http2::emit::EmitMode;
use sluice_http2::frame::{Setting, flag, kind};
use sluice_http2::{ErrorCode, Limits};

use super::script::Script;
use super::simulated::{Cut, Simulated, Told};
use super::support::*;

impl Script {
    fn play(&self, mode: EmitMode, reads: Cut, writes: Cut) -> Told {
        let mut io = Simulated::new(&self.bytes, self.answers(), reads, writes);
        let result = run(driver(Plain::new(&mut io), Limits::default(), mode));
        io.into_told(result)
    }

    fn play_over_tls(&self, transport: &Transport, reads: Cut, writes: Cut) -> Told {
        let Transport::Tls(server, client) = transport else { panic!("TLS") };
        let name = ServerName::try_from("localhost").expect("a name");
        let client = rustls::ClientConnection::new(Arc::clone(client), name).expect("a configuration");
        let tls = rustls::ServerConnection::new(Arc::clone(server)).expect("a configuration");
        let mut io = Simulated::new(&self.bytes, self.answers(), reads, writes).over_tls(client);
        let driver = driver(Tls::new(&mut io, tls, &Limits::default()), Limits::default(), EmitMode::Auto);
        let result = run(driver);
        io.into_told(result)
    }
}

/// In virtual time: a session that does not come to its end by itself fails.
fn run(driver: impl Future<Output = std::io::Result<()>>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let begun = tokio::time::Instant::now();
        let result = driver.await;
        assert!(begun.elapsed().as_secs() < 3, "it waits for something");
        result
    })
}

/// Sessions in which everything is as it should be, or the errors are of single streams.
fn sessions() -> Vec<Script> {
    let tunnel = [(":protocol", "websocket")];
    vec![
        Script::new()
            .get(1, "/size/3")
            .request(3, "HEAD", "/size/100", flag::END_STREAM, &[("x", "y")])
            .get(5, "/status/204")
            .get(7, "/fields/1")
            .request(
                9,
                "GET",
                "/head",
                flag::END_STREAM,
                &[("cookie", "a=1"), ("cookie", "b=2"), ("x", "y")],
            ),
        Script::new()
            .request(1, "POST", "/echo", 0, &[])
            .request(3, "POST", "/upload", 0, &[("content-length", "5")])
            .data(1, b"one", 0)
            .data(3, &pattern(3), 0)
            .data(1, b"\x03two\0\0\0", flag::PADDED)
            .data(3, &pattern(5)[3..], flag::END_STREAM)
            .data(1, b"", 0)
            .trailers(1, &[("checksum", "1")]),
        Script::with(&[Setting::InitialWindowSize(10)])
            .get(1, "/size/90")
            .frame(kind::PING, 0, 0, b"12345678")
            .frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 20])
            .frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1, i")
            .frame(0xfa, 0xff, 0, b"unknown")
            .frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 40])
            .frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 4, 0])
            .get(3, "/trailers"),
        continued(),
        Script::new()
            .request(1, "CONNECT", "/chat", 0, &tunnel)
            .data(1, b"one", 0)
            .get(3, "/pieces/0")
            .data(1, b"two", 0)
            .data(1, b"", flag::END_STREAM),
        Script::new()
            .request(1, "POST", "/upload", 0, &[("expect", "100-continue")])
            .data(1, &pattern(20), flag::END_STREAM)
            .request(3, "POST", "/status/413", 0, &[])
            .data(3, &pattern(20), flag::END_STREAM),
        Script::new()
            .request(1, "GET", "/", flag::END_STREAM, &[("Upper", "case")])
            .request(3, "POST", "/upload", 0, &[("content-length", "2")])
            .data(3, b"abc", flag::END_STREAM)
            .request(5, "POST", "/upload", 0, &[])
            .frame(kind::WINDOW_UPDATE, 0, 5, &[0; 4])
            .get(7, "/fails")
            .get(9, "/size/5"),
    ]
}

/// Header blocks in several frames, padded, with a priority of old.
fn continued() -> Script {
    let mut script = Script::new();
    script.streams = 2;
    let first = script.head("GET", "/size/7", &[("x-long", "a value of some length")]);
    let (begin, rest) = first.split_at(5);
    let (middle, last) = rest.split_at(9);
    let padded = [&[2, 0, 0, 0, 0, 7][..], begin, &[0, 0]].concat();
    let flags = flag::END_STREAM | flag::PADDED | flag::PRIORITY;
    let mut script = script
        .frame(kind::HEADERS, flags, 1, &padded)
        .frame(kind::CONTINUATION, 0, 1, middle)
        .frame(kind::CONTINUATION, 0, 1, b"")
        .frame(kind::CONTINUATION, flag::END_HEADERS, 1, last);
    let second = script.head("GET", "/head", &[("x-long", "a value of some length")]);
    script.frame(kind::HEADERS, flag::END_STREAM, 3, b"").frame(
        kind::CONTINUATION,
        flag::END_HEADERS,
        3,
        &second,
    )
}

/// Sessions that the server ends, and how.
fn errors() -> Vec<(ErrorCode, Script)> {
    let mut wrong_preface = Script::new();
    wrong_preface.bytes = b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n".to_vec();
    let open = || Script::new().request(1, "POST", "/echo", 0, &[]).data(1, b"a", 0);
    vec![
        (ErrorCode::PROTOCOL_ERROR, wrong_preface),
        (ErrorCode::PROTOCOL_ERROR, open().frame(kind::HEADERS, 4, 0, b"")),
        (ErrorCode::PROTOCOL_ERROR, open().data(3, b"idle", 0)),
        (ErrorCode::PROTOCOL_ERROR, open().frame(kind::HEADERS, 0, 3, b"").data(1, b"between", 0)),
        (ErrorCode::FRAME_SIZE_ERROR, open().frame(kind::SETTINGS, 0, 0, b"short")),
        (ErrorCode::COMPRESSION_ERROR, open().frame(kind::HEADERS, 4, 3, b"\xff\xff\xff\xff\xff\xff")),
        (ErrorCode::FLOW_CONTROL_ERROR, open().frame(kind::WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff")),
    ]
}

/// Asserts that a cut changes nothing of what the client sees.
#[track_caller]
fn assert_same(whole: &Told, cut: &Told, how: (usize, Cut, Cut)) {
    assert_eq!(cut.streams, whole.streams, "session {}, reads {:?}, writes {:?}", how.0, how.1, how.2);
    assert_eq!((&cut.pongs, cut.goaway), (&whole.pongs, whole.goaway), "{how:?}");
}

#[test]
fn answers_are_the_same_wherever_a_session_is_cut() {
    for (number, script) in sessions().iter().enumerate() {
        let whole = script.play(EmitMode::Auto, Cut::Nowhere, Cut::Nowhere);
        assert_eq!(whole.streams.len(), script.streams, "{:?}", whole.streams);
        assert_eq!(whole.goaway, None);
        // As many places as anything has bytes; beyond the end, nothing is cut.
        for at in 0..script.bytes.len().max(600) {
            for (reads, writes) in [(Cut::At(at), Cut::Nowhere), (Cut::Nowhere, Cut::At(at))] {
                let cut = script.play(EmitMode::Auto, reads, writes);
                assert_same(&whole, &cut, (number, reads, writes));
            }
        }
    }
}

#[test]
fn answers_are_the_same_byte_by_byte() {
    let tls = Transport::tls();
    for (number, script) in sessions().iter().enumerate() {
        let whole = script.play(EmitMode::Auto, Cut::Nowhere, Cut::Nowhere);
        for (reads, writes) in [
            (Cut::Everywhere, Cut::Nowhere),
            (Cut::Nowhere, Cut::Everywhere),
            (Cut::Everywhere, Cut::Everywhere),
        ] {
            for mode in [EmitMode::Auto, EmitMode::Copy, EmitMode::Gather, EmitMode::Naive] {
                assert_same(&whole, &script.play(mode, reads, writes), (number, reads, writes));
            }
            assert_same(&whole, &script.play_over_tls(&tls, reads, writes), (number, reads, writes));
        }
    }
}

#[test]
fn answers_are_the_same_wherever_tls_is_cut() {
    let tls = Transport::tls();
    for (number, script) in sessions().iter().enumerate() {
        let whole = script.play(EmitMode::Auto, Cut::Nowhere, Cut::Nowhere);
        // Each session begins elsewhere: together they are cut about everywhere.
        for at in (number..2_400).step_by(23) {
            for (reads, writes) in [(Cut::At(at), Cut::Nowhere), (Cut::Nowhere, Cut::At(at))] {
                assert_same(&whole, &script.play_over_tls(&tls, reads, writes), (number, reads, writes));
            }
        }
    }
}

#[test]
fn errors_are_the_same_wherever_a_session_is_cut() {
    for (number, (code, script)) in errors().iter().enumerate() {
        let whole = script.bytes.len();
        let cuts = (0..whole).map(|at| (Cut::At(at), Cut::Nowhere));
        let cuts = cuts.chain((0..200).map(|at| (Cut::Nowhere, Cut::At(at))));
        for (reads, writes) in cuts.chain([(Cut::Everywhere, Cut::Everywhere)]) {
            let told = script.play(EmitMode::Auto, reads, writes);
            assert_eq!(told.goaway, Some(*code), "error {number}, reads {reads:?}, writes {writes:?}");
        }
    }
}

//! Without a file descriptor left the server neither ends nor spins. A process of its own, since its limit is
//! lowered.

#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use sluice_calls::Calls;
use sluice_calls::access::Access;
use sluice_calls::server::About;
use sluice_front::http::HttpOptions;
use sluice_front::serve;

/// Processor time of this process in ticks, of which a second has 100; from a file that is open already.
fn ticks(stat: &File) -> u64 {
    let mut buffer = [0; 1_024];
    let read = stat.read_at(&mut buffer, 0).unwrap();
    let stat = std::str::from_utf8(&buffer[..read]).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn a_server_without_file_descriptors_waits_and_goes_on() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let node = sluice_calls::testing::node();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let calls = Calls::new(node, Access::default(), About::default());
    let serving = runtime.spawn(serve(listener, calls, HttpOptions::default(), std::future::pending()));

    let stat = File::open("/proc/self/stat").unwrap();
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(open + 20);
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut clients = Vec::new();
    while let Ok(client) = TcpStream::connect(address) {
        clients.push(client);
    }
    let before = ticks(&stat);
    std::thread::sleep(Duration::from_millis(600));
    assert!(ticks(&stat) - before < 30, "the server spins");
    assert!(!serving.is_finished());

    drop(clients);
    let mut answer = String::new();
    for _ in 0..100 {
        let Ok(mut client) = TcpStream::connect(address) else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        client.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        client.read_to_string(&mut answer).unwrap();
        break;
    }
    assert!(answer.ends_with("ok\n"), "{answer:?}");
}

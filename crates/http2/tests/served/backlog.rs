//! Responses whose heads are larger than what may wait.

use hyper::client::conn::http2::Builder;
use hyper_util::rt::TokioExecutor;
use sluice_http2::emit::EmitMode;

use super::support::*;

/// Heads of 100 KiB, and so many at once.
const AT_ONCE: usize = 40;

#[tokio::test]
async fn large_heads_wait_for_each_other_and_all_come() {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.max_header_list_size(1 << 20);
    for transport in [Transport::Plain, Transport::tls()] {
        for chop in [None, Some(1)] {
            let mut sender = transport.connect_by(&builder, 16 << 10, EmitMode::Auto, chop).await;
            let mut answers = Vec::new();
            for _ in 0..AT_ONCE {
                sender.ready().await.expect("a connection");
                answers.push(sender.send_request(request("GET", "/fields/100", no_body())));
            }
            for answer in answers {
                let answer = tokio::time::timeout(std::time::Duration::from_secs(20), answer);
                let response = answer.await.expect("in time").expect("an answer");
                assert_eq!(response.headers().len(), 102, "with date and content-length");
            }
        }
    }
}

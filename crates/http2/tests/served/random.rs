//! Sessions of random frames, right and wrong ones, against the service: nothing goes out that a client would
//! refuse, and none goes on for ever, whatever its client leaves open.

use std::time::Duration;

use sluice_http2::Limits;
use sluice_http2::drive::Plain;
use sluice_http2::emit::EmitMode;
use sluice_http2::frame::{PREFACE, write};
use sluice_http2::hpack::Encoder;

use super::frames::{Random, frame};
use super::simulated::{Cut, Simulated};
use super::support::*;

/// Longer than all deadlines of the default limits, one after the other.
const AT_MOST: Duration = Duration::from_secs(600);

fn script(random: &mut Random) -> Vec<u8> {
    let mut script = PREFACE.to_vec();
    write::settings(&mut script, &[]);
    let (mut encoder, mut next_stream) = (Encoder::new(), 1);
    for _ in 0..random.below(100) {
        script.extend(frame(random, &mut encoder, &mut next_stream));
    }
    script
}

fn cut(random: &mut Random, bytes: usize) -> Cut {
    match random.below(3) {
        0 => Cut::Nowhere,
        1 => Cut::At(random.below(bytes as u64) as usize),
        _ => Cut::Everywhere,
    }
}

async fn play(seed: u64) {
    let mut random = Random(seed);
    let script = script(&mut random);
    let (reads, writes) = (cut(&mut random, script.len()), cut(&mut random, script.len()));
    let mode = random.pick(&[EmitMode::Auto, EmitMode::Copy, EmitMode::Gather, EmitMode::Naive]);
    // The client never closes: the server has to.
    let mut io = Simulated::new(&script, usize::MAX, reads, writes);
    let driver = driver(Plain::new(&mut io), Limits::default(), mode);
    // How it ends does not matter here: in order, by an error of the peer, by a deadline.
    let ended = tokio::time::timeout(AT_MOST, driver).await;
    assert!(ended.is_ok(), "seed {seed} goes on and on");
}

#[tokio::test(start_paused = true)]
async fn random_sessions_break_no_rule_and_end_by_themselves() {
    for seed in 0..600 {
        println!("seed {seed}");
        play(seed).await;
    }
}

//! A run at a fixed rate, and its figures.

use serde_json::json;
use sluice_client::Client;

use super::pace::Rate;
use super::phases::{self, Paced};
use super::sessions::SessionLoad;
use crate::report::Report;
use crate::server::Target;
use crate::table::{Table, figure};
use sluice_bench_rows::stats::Samples;

/// A run that reached less than this share of its rate did not hold it.
const HELD_SHARE: f64 = 0.99;

/// Runs so many rounds at a fixed rate, and tells the medians.
pub(super) async fn measure(
    target: &Target,
    admin: &Client,
    shape: &SessionLoad,
    rate: Rate,
    rounds: u32,
    report: &mut Report,
) -> Result<(), String> {
    let mut found = Vec::new();
    for _ in 0..rounds {
        found.push(phases::run_paced(target, admin, shape, rate).await?);
    }
    tell(&found, rate, report);
    Ok(())
}

fn tell(rounds: &[Paced], rate: Rate, report: &mut Report) {
    let mut table =
        Table::new(&["round", "messages/s", "p50 us", "p99 us", "p99.9 us", "max us", "sent late p99 us"]);
    for (number, round) in (1..).zip(rounds) {
        let times = [50.0, 99.0, 99.9, 100.0].map(|percent| round.delivery.ms(percent) * 1e3);
        let late = sent_late_us(round);
        let cells = [[round.delivery.per_s()].as_slice(), &times, &[late]].concat();
        table.row([vec![number.to_string()], cells.into_iter().map(figure).collect()].concat());
        report.row(
            &format!("round_{number}"),
            json!({
                "per_s": round.delivery.per_s(), "p50_us": times[0], "p99_us": times[1], "p99_9_us": times[2],
                "max_us": times[3], "sent_late_p99_us": late,
            }),
        );
    }
    report.table(&format!("from due to delivery at {} messages/s", figure(rate.per_s)), table);
    let median = |of: &dyn Fn(&Paced) -> f64| rounds.iter().map(of).collect::<Samples>().median();
    report.figure("p50_us", median(&|round| round.delivery.ms(50.0) * 1e3));
    report.figure("p99_us", median(&|round| round.delivery.ms(99.0) * 1e3));
    report.figure("sent_late_p99_us", median(&sent_late_us));
    let per_s = median(&|round| round.delivery.per_s());
    report.figure("paced_per_s", per_s);
    tell_server_cpu(rounds.iter().filter_map(|round| round.server_cpu_us).collect(), report);
    if per_s < HELD_SHARE * rate.per_s {
        report.note(format!(
            "the rate was not held, so that the times grow with the run: {} messages/s instead of {}",
            figure(per_s),
            figure(rate.per_s),
        ));
    }
    let (due, acked) = rounds
        .iter()
        .map(|round| (round.due, round.delivery.messages))
        .fold((0, 0), |(due, acked), round| (due + round.0, acked + round.1));
    report.check_equal("messages that were due, and acked", due, acked);
}

fn sent_late_us(round: &Paced) -> f64 {
    round.sent_late.value_at_percentile(99.0) as f64 / 1e3
}

/// The median processor time for each message, in microseconds; there is none of a server that is not ours.
pub(super) fn tell_server_cpu(found: Samples, report: &mut Report) {
    if found.is_empty() {
        report.note("the server is not ours: its processor time is not known");
    } else {
        report.figure("server_cpu_us_per_message", found.median());
    }
}

//! `sluice schedule`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, Subcommand};
use serde_json::json;
use sluice_client::{Schedule, ScheduleSettings};
use sluice_engine::limits::DELAY_MS_MAX;
use sluice_node::schedule::EVERY_MS_MIN;

use super::bounded::{FILE_BYTES_MAX, read_file};
use super::connect::{ReadFlags, ServerFlags};
use super::format::{length, time};
use super::output::Table;
use super::send::Fields;
use super::{Out, Result, duration, number};

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleVerb {
    /// List schedules with the time at which each fires next.
    List {
        #[command(flatten)]
        server: ReadFlags,
    },
    /// Show a schedule and its message.
    Show(ShowScheduleArgs),
    /// Create a schedule, or replace it. If its times are not changed, it keeps its next time.
    Set(Box<SetScheduleArgs>),
    /// Show the next times of a schedule.
    Next {
        /// Number of times to show.
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = number(1u32..=100))]
        count: u32,
        #[command(flatten)]
        named: ShowScheduleArgs,
    },
    /// Pause a schedule: its times pass without a message until it is resumed.
    Pause(ScheduleArgs),
    /// Resume a paused schedule at its next time.
    Resume(ScheduleArgs),
    /// Send the message of a schedule now; its times are not changed.
    Trigger(ScheduleArgs),
    /// Delete a schedule; the messages that it has sent stay.
    Delete(ScheduleArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ShowScheduleArgs {
    /// Name of the schedule.
    schedule: String,
    #[command(flatten)]
    server: ReadFlags,
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
    /// Name of the schedule.
    schedule: String,
    #[command(flatten)]
    server: ServerFlags,
}

#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("when").required(true).args(["cron", "every"]),
    after_help = "Examples:\n  sluice schedule set nightly reports '{}' --cron '0 3 * * *' --time-zone Europe/Berlin\n  \
    sluice schedule set beat pulse --every 30s --missed skip"
)]
pub(crate) struct SetScheduleArgs {
    /// Name of the schedule.
    schedule: String,
    /// Queue to send to.
    queue: String,
    /// Payload of each message [default: empty].
    #[arg(conflicts_with = "file")]
    payload: Option<String>,
    /// Read the payload from this file.
    #[arg(long, short, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Five fields (minute, hour, day of month, month, weekday); six fields with seconds first; or @hourly,
    /// @daily, @weekly, @monthly, @yearly.
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
    /// Time zone of --cron, such as Europe/Berlin [default: UTC].
    #[arg(long, value_name = "ZONE", conflicts_with = "every")]
    time_zone: Option<String>,
    /// Interval between messages; at least 1s.
    #[arg(long, value_name = "DURATION", value_parser = every)]
    every: Option<Duration>,
    /// Treatment of times at which the server was down: send one message for all of them (once), one for
    /// each, at most 1,000 (all), or none (skip) [default: once].
    #[arg(long, value_parser = PossibleValuesParser::new(["once", "all", "skip"]))]
    missed: Option<String>,
    #[command(flatten)]
    fields: Fields,
    #[command(flatten)]
    server: ServerFlags,
}

fn every(text: &str) -> std::result::Result<Duration, String> {
    let every = duration(text)?;
    let range = Duration::from_millis(EVERY_MS_MIN)..=Duration::from_millis(DELAY_MS_MAX);
    if range.contains(&every) { Ok(every) } else { Err("expected 1s to 3660d".to_owned()) }
}

pub(super) async fn run(verb: ScheduleVerb, out: Out) -> Result<u8> {
    match verb {
        ScheduleVerb::List { server } => {
            let connection = server.connect()?;
            let schedules = connection.client.schedules().await.map_err(|e| connection.error(&e))?;
            if schedules.is_empty() {
                out.note(&format!("no schedules in namespace {}", connection.namespace));
                return Ok(0);
            }
            out.list(&schedules, table)?;
        }
        ScheduleVerb::Show(named) => {
            let connection = named.server.connect()?;
            let shown = connection.client.schedule(&named.schedule).await;
            out.show(&shown.map_err(|e| connection.error(&e))?, details)?;
        }
        ScheduleVerb::Set(args) => set(*args, out).await?,
        ScheduleVerb::Next { count, named } => {
            let connection = named.server.connect()?;
            let next = connection.client.schedule_next(&named.schedule, count).await;
            let next = next.map_err(|e| connection.error(&e))?;
            if next.is_empty() {
                out.note("no next time: the schedule is paused, or its expression matches no further time");
            }
            out.show(&json!({ "next_at_ms": next }), |_| next.iter().map(|ms| time(*ms) + "\n").collect())?;
        }
        ScheduleVerb::Pause(named) => pause(named, true, out).await?,
        ScheduleVerb::Resume(named) => pause(named, false, out).await?,
        ScheduleVerb::Trigger(named) => {
            let connection = named.server.connect()?;
            let sent = connection.client.schedule_trigger(&named.schedule).await;
            let sent = sent.map_err(|e| connection.error(&e))?;
            if sent.duplicate {
                out.note("nothing was sent: a message with the same unique key is there, with this id");
            }
            out.show(&sent, |sent| format!("{}\n", sent.id))?;
        }
        ScheduleVerb::Delete(named) => {
            let (connection, name) = (named.server.connect()?, named.schedule);
            connection.client.schedule_delete(&name).await.map_err(|e| connection.error(&e))?;
            out.show(&json!({ "deleted": name }), |_| format!("deleted {name}\n"))?;
        }
    }
    Ok(0)
}

async fn set(args: SetScheduleArgs, out: Out) -> Result<()> {
    let connection = args.server.connect()?;
    let payload = match &args.file {
        Some(path) => read_file(path, FILE_BYTES_MAX)?,
        None => args.payload.unwrap_or_default().into_bytes(),
    };
    let settings = ScheduleSettings {
        cron: args.cron,
        time_zone: args.time_zone,
        every_ms: args.every.map(|every| u64::try_from(every.as_millis()).unwrap_or(u64::MAX)),
        missed: args.missed,
        queue: args.queue,
        message: args.fields.message(payload),
    };
    let set = connection.client.schedule_set(&args.schedule, &settings).await;
    let (schedule, created) = set.map_err(|e| connection.error(&e))?;
    out.show(&schedule, |schedule| {
        format!("{}\n{}", if created { "created" } else { "changed" }, details(schedule))
    })
}

async fn pause(named: ScheduleArgs, paused: bool, out: Out) -> Result<()> {
    let connection = named.server.connect()?;
    let schedule = connection.client.schedule_pause(&named.schedule, paused).await;
    out.show(&schedule.map_err(|e| connection.error(&e))?, details)
}

fn when(schedule: &Schedule) -> String {
    match (&schedule.cron, schedule.every_ms) {
        (Some(cron), _) => cron.clone(),
        (None, Some(every_ms)) => format!("every {}", length(every_ms)),
        (None, None) => "-".to_owned(),
    }
}

fn next(schedule: &Schedule) -> String {
    match (schedule.paused, schedule.next_at_ms) {
        (true, _) => "paused".to_owned(),
        (false, Some(ms)) => time(ms),
        (false, None) => "-".to_owned(),
    }
}

fn table(schedules: &[Schedule]) -> String {
    let mut table = Table::new(&["SCHEDULE", "WHEN", "TIME ZONE", "QUEUE", "NEXT", ">FIRED", "LAST ERROR"]);
    for schedule in schedules {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        table.row([
            schedule.name.clone(),
            when(schedule),
            or_none(&schedule.time_zone),
            schedule.queue.clone(),
            next(schedule),
            schedule.fired.to_string(),
            or_none(&schedule.last_error),
        ]);
    }
    table.render()
}

fn details(schedule: &Schedule) -> String {
    let mut about = Table::fields();
    about.field("schedule", schedule.name.clone());
    about.field("when", when(schedule));
    if let Some(time_zone) = &schedule.time_zone {
        about.field("time zone", time_zone.clone());
    }
    about.field("missed", schedule.missed.clone().unwrap_or_else(|| "-".to_owned()));
    about.field("queue", schedule.queue.clone());
    about.field("next", next(schedule));
    let done =
        format!("{}, duplicates {}, refused {}", schedule.fired, schedule.duplicates, schedule.refused);
    about.field("fired", done);
    about.field("last", schedule.last_at_ms.map_or_else(|| "-".to_owned(), time));
    if let Some(code) = &schedule.last_error {
        about.field("last error", code.clone());
    }
    if let Some(message) = &schedule.message {
        about.field("message", message.to_string());
    }
    about.render()
}

//! `sluice work`: runs a command for each message.
//!
//! Map: `child` runs one command for one message, `environment` its variables, `signals` the worker's
//! signals, `transaction` commits what a command has staged, `report` the worker's messages on stderr.

mod child;
mod environment;
mod report;
mod signals;
mod transaction;

use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use sluice_calls::near::nearest;
use sluice_client::{Job, Settle, Stop, Worker, WorkerOptions, WorkerTransport};
use tokio::sync::mpsc;

use crate::connect::{Connection, ServerFlags};
use crate::terminal::format::quoted;
use crate::terminal::values::{duration, number, queue_weight};
use crate::terminal::{CliError, Out, Result};
use child::CommandSetup;
use report::Report;

/// Maximum number of characters of the machine's name in the name of a consumer.
const MACHINE_CHARS_MAX: usize = 100;

#[derive(Debug, Args)]
#[command(after_help = "\
The command gets the payload on stdin, and these variables in its environment:
  SLUICE_MESSAGE_ID, SLUICE_QUEUE, SLUICE_RECEIPT, SLUICE_ATTEMPT,
  SLUICE_MAX_ATTEMPTS, SLUICE_DELIVERIES, SLUICE_PRIORITY, SLUICE_SENT_AT_MS,
  SLUICE_CONTENT_TYPE, SLUICE_HEADER_<NAME> for each header, and SLUICE_SERVER
  and SLUICE_NAMESPACE, so that it can call sluice itself

The end of the command decides how its message is settled:
  exit code 0        ack
  the --reject-code  reject: a dead letter, never tried again
  any other, signal  nack: another attempt after the backoff; the end of stderr
                     goes into the message's history
  over --timeout     the command is ended, and its message nacked

Ctrl-C or SIGTERM: no new messages, running commands finish. A second one: the \
commands get the signal, after 5 s SIGKILL; their messages are released.
SIGUSR1 and SIGUSR2 are passed on.

Examples:
  sluice work emails -- ./send-email
  sluice work urgent=3 emails=1 --concurrency 8 --timeout 1m -- python3 job.py
  sluice work numbers --until-empty -- sh -c 'read n; echo $((n * 2))'")]
pub(crate) struct WorkArgs {
    /// Queues in the order in which they are tried; or queues with weights.
    #[arg(required = true, value_name = "QUEUE[=WEIGHT]", value_parser = queue_weight)]
    queues: Vec<(String, u16)>,
    /// Command with its arguments; it is not passed to a shell.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Maximum number of commands that run at once.
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = number(1u16..=u16::MAX))]
    concurrency: u16,
    /// Number of messages to fetch in advance, so that the next command starts without a request. Other
    /// workers cannot get these messages.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number(0u16..=u16::MAX))]
    prefetch: u16,
    /// Lease of each message: how soon other workers get it after a crash of this worker. The lease is
    /// extended while the command runs.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = lease)]
    lease: Duration,
    /// End a command that runs longer than this, and nack its message.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
    /// Exit code with which a command rejects its message.
    #[arg(long, value_name = "CODE", default_value_t = 65, value_parser = number(1u8..=u8::MAX))]
    reject_code: u8,
    /// Exit when nothing has arrived for half a second, no command runs, and all messages are settled.
    #[arg(long)]
    until_empty: bool,
    /// Take what a command writes to stdout as the result of its message, up to 256 KiB; otherwise it goes to
    /// this worker's stdout.
    #[arg(long)]
    result: bool,
    /// Media type of the results.
    #[arg(long, value_name = "TYPE", requires = "result")]
    result_type: Option<String>,
    /// Transport of messages: a session (one stream, on which messages of one queue come as they become
    /// ready), http requests (several queues, in order or by weight), or auto: a session if possible.
    #[arg(long, value_enum, default_value_t = TransportChoice::Auto)]
    transport: TransportChoice,
    /// Run each command in a transaction, whose id it gets as SLUICE_TRANSACTION. What it stages with `sluice
    /// txn stage` is done together with the ack of its message, or not at all. If others change what it has
    /// read, it runs again.
    #[arg(long)]
    transactional: bool,
    /// Name of this consumer, shown by `sluice consumer list` [default: this machine's name and the process
    /// id].
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    /// Report every message, not only failed ones.
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    server: ServerFlags,
}

/// Transport of the worker.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum TransportChoice {
    Auto,
    Session,
    Http,
}

fn lease(text: &str) -> std::result::Result<Duration, String> {
    let lease = duration(text)?;
    if (Duration::from_secs(1)..=Duration::from_secs(12 * 3600)).contains(&lease) {
        Ok(lease)
    } else {
        Err("expected 1s to 12h".to_owned())
    }
}

/// Runs until a signal, the end of the queue, or an error that a retry cannot cure.
pub(crate) async fn run(args: WorkArgs, out: Out) -> Result<u8> {
    if args.transport == TransportChoice::Session && args.queues.len() > 1 {
        let reason = "--transport session takes one queue; for several queues use --transport http or auto";
        return Err(CliError::usage(reason));
    }
    let connection = args.server.connect()?;
    let (stop, kill) = (Stop::new(), signals::CommandSignals::new());
    let signals = signals::watch(stop.clone(), kill.clone(), out)?;
    let report = Report::new(out, args.verbose);
    let setup = Arc::new(CommandSetup {
        command: args.command.clone(),
        server: connection.urls().to_owned(),
        namespace: connection.namespace.clone(),
        credentials: connection.variables(),
        transactions: args.transactional.then(|| connection.client.clone()),
        timeout: args.timeout,
        reject_code: args.reject_code,
        result: args.result,
        result_type: args.result_type.clone(),
        kill,
        report,
        cannot_start: Mutex::new(None),
        stop: stop.clone(),
        settled_by_command: AtomicU64::new(0),
    });
    announce(&args, &connection, out);
    warn_about_queues(&args, &connection, out).await;
    let worker = Worker::new(connection.client.clone(), options(&args));
    let (events, heard) = mpsc::unbounded_channel();
    let telling = tokio::spawn(report::report_events(report, connection.clone(), heard));
    let run_one = {
        let setup = Arc::clone(&setup);
        move |job| run_one(Arc::clone(&setup), job)
    };
    let result = worker.run(stop, run_one, events).await;
    signals.abort();
    // Ends when the worker has dropped its sender, which it has done.
    let _ = telling.await;
    let summary = result.map_err(|e| connection.error(&e))?;
    report.summary(&summary, setup.settled_by_command.load(Ordering::Relaxed));
    let cannot_start = setup.cannot_start.lock().unwrap_or_else(PoisonError::into_inner).take();
    cannot_start.map_or(Ok(0), |reason| {
        Err(CliError::usage(reason)
            .hint("The message was released: nothing is lost, and no attempt was counted."))
    })
}

/// Runs the command and returns how its message is to be settled.
async fn run_one(setup: Arc<CommandSetup>, job: Job) -> Settle {
    let started = Instant::now();
    let settle = match &setup.transactions {
        Some(client) => transaction::run(client, &setup, &job).await,
        None => Some(child::attempt(&setup, &job, None).await),
    };
    let Some(settle) = settle else {
        setup.settled_by_command.fetch_add(1, Ordering::Relaxed);
        setup.report.settled_by_command(&job.message, started.elapsed());
        // Whatever the command has done with it: of a message that is settled this changes nothing.
        return Settle::Ack;
    };
    let was_lost = job.lost.is_stopped() && matches!(settle, Settle::Release { .. });
    // Otherwise the reason was reported when the command was ended.
    if !was_lost {
        setup.report.message(&job.message, &settle, started.elapsed());
    }
    settle
}

fn options(args: &WorkArgs) -> WorkerOptions {
    let mut options = WorkerOptions::new(args.queues.clone());
    options.concurrency = usize::from(args.concurrency);
    options.prefetch = usize::from(args.prefetch);
    options.lease = args.lease;
    options.consumer = args.consumer.clone().unwrap_or_else(own_name);
    options.until_empty = args.until_empty;
    options.transport = match args.transport {
        TransportChoice::Auto => WorkerTransport::Auto,
        TransportChoice::Session => WorkerTransport::Session,
        TransportChoice::Http => WorkerTransport::Http,
    };
    options
}

/// Warns of paused queues, and of queues that do not exist: the worker would wait forever for a misspelt
/// name.
async fn warn_about_queues(args: &WorkArgs, connection: &Connection, out: Out) {
    for (name, _) in &args.queues {
        // A caller without the right to look at queues may work all the same; other errors are reported by
        // the worker.
        let error = match connection.client.queue(name).await {
            Ok(queue) => {
                if queue.settings.paused {
                    let resume = format!("sluice queue resume {}", quoted(name));
                    out.note(&format!("{name} is paused: it delivers nothing until `{resume}`"));
                }
                continue;
            }
            Err(error) => error,
        };
        if error.code() != Some("queue_not_found") {
            continue;
        }
        let queues = connection.client.queues("").await.unwrap_or_default();
        let names: Vec<&str> = queues.iter().map(|queue| queue.name.as_str()).collect();
        let meant = nearest(name, &names).map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        out.note(&format!("queue {name} does not exist yet: waiting for its first message{meant}"));
    }
}

/// The default name of the consumer, or of the holder of a lock: `box-4711`.
pub(crate) fn own_name() -> String {
    let uname = rustix::system::uname();
    let machine: String = uname.nodename().to_string_lossy().chars().take(MACHINE_CHARS_MAX).collect();
    format!("{machine}-{}", std::process::id())
}

fn announce(args: &WorkArgs, connection: &Connection, out: Out) {
    let names: Vec<&str> = args.queues.iter().map(|(name, _)| name.as_str()).collect();
    let at_once =
        if args.concurrency == 1 { String::new() } else { format!(", {} at once", args.concurrency) };
    let until = if args.until_empty { "until it is empty" } else { "until Ctrl-C" };
    out.note(&format!("working on {} of {}{at_once}, {until}", names.join(", "), connection.client.server()));
}

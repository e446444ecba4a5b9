//! `sluice top`: a live view of queues, limits and consumers, with keys that act on the selected queue.
//!
//! Map: `sample` asks the server and computes rates from totals, `state` is what the view shows and how keys
//! change it, `view` draws it. Neither `state` nor `view` does I/O, so that both are tested without a
//! terminal.

mod sample;
mod state;
mod view;

use std::io::IsTerminal as _;
use std::time::Duration;

use clap::Args;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use serde_json::json;
use tokio::sync::mpsc;

use crate::connect::{Connection, ServerFlags};
use crate::terminal::format::counted;
use crate::terminal::values::duration;
use crate::terminal::{CliError, Out, Result};
use sample::Sampler;
use state::{Command, Pane, View};

/// Time that the thread which reads keys waits before it checks whether the view has ended.
const KEY_POLL: Duration = Duration::from_millis(100);
/// Number of messages that a peek shows.
const PEEK_MESSAGES: u32 = 20;

#[derive(Debug, Args)]
#[command(after_help = "Keys: up and down select a queue, p pauses or resumes it, Enter shows the messages \
    that are next in line, d redrives its dead letters, s sorts by the next column, \
    / filters by name, Tab shows limits, then consumers, q quits.\n\n\
    Examples:\n  sluice top\n  sluice top mail. --interval 5s\n  sluice top --once --json")]
pub(crate) struct TopArgs {
    /// Only queues whose names begin with this prefix.
    #[arg(default_value = "")]
    prefix: String,
    /// Interval between two samples; rates are averages over it.
    #[arg(long, short, value_name = "DURATION", value_parser = duration, default_value = "1s")]
    interval: Duration,
    /// Print one sample, with the rates of one interval, and exit. With --json as an object.
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    server: ServerFlags,
}

/// Runs until the user quits.
pub(crate) async fn run(args: TopArgs, out: Out) -> Result<u8> {
    if args.interval < Duration::from_millis(100) {
        return Err(CliError::usage("--interval is too short: expected 100ms or more"));
    }
    let connection = args.server.connect()?;
    let mut sampler = Sampler::new(args.prefix.clone());
    let first = sampler.sample(&connection, false).await?;
    if args.once {
        tokio::time::sleep(args.interval).await;
        let sample = sampler.sample(&connection, true).await?;
        out.show(&json!(sample), |_| view::plain(&sample))?;
        return Ok(0);
    }
    if !std::io::stdout().is_terminal() {
        return Err(CliError::usage("stdout is not a terminal: use `sluice top --once`"));
    }
    let mut state = View::new(connection.namespace.clone(), first);
    let mut terminal =
        ratatui::try_init().map_err(|e| CliError::failed(format!("cannot use the terminal: {e}")))?;
    let ended = watch(&args, &connection, &mut sampler, &mut state, &mut terminal).await;
    ratatui::restore();
    ended.map(|()| 0)
}

async fn watch(
    args: &TopArgs,
    connection: &Connection,
    sampler: &mut Sampler,
    state: &mut View,
    terminal: &mut ratatui::DefaultTerminal,
) -> Result<()> {
    let mut keys = keys();
    let mut ticks = tokio::time::interval(args.interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        terminal
            .draw(|frame| view::draw(frame, state))
            .map_err(|e| CliError::failed(format!("cannot write to the terminal: {e}")))?;
        tokio::select! {
            _ = ticks.tick() => look(connection, sampler, state).await,
            key = keys.recv() => match key.map(|key| state.key(key)) {
                None | Some(Some(Command::Quit)) => return Ok(()),
                // The other pane may need data that was not requested yet.
                Some(None) if state.pane == Pane::Consumers => look(connection, sampler, state).await,
                Some(None) => {}
                Some(Some(command)) => {
                    let told = act(connection, command, state).await;
                    state.set_note(told);
                    look(connection, sampler, state).await;
                }
            },
        }
    }
}

/// Takes a new sample. An error is shown in the view, which keeps the old figures: the server may come back.
async fn look(connection: &Connection, sampler: &mut Sampler, state: &mut View) {
    match sampler.sample(connection, state.pane == Pane::Consumers).await {
        Ok(sample) => state.show(sample),
        Err(error) => state.set_note(error.message().to_owned()),
    }
}

/// Carries out the command of a key; returns the text to show.
async fn act(connection: &Connection, command: Command, state: &mut View) -> String {
    let client = &connection.client;
    let done = match &command {
        Command::Pause(queue) => client.queue_pause(queue, true).await.map(|_| format!("paused {queue}")),
        Command::Resume(queue) => client.queue_pause(queue, false).await.map(|_| format!("resumed {queue}")),
        Command::Redrive(queue) => {
            let redriven = client.dead_redrive(queue, None).await;
            redriven.map(|count| format!("made {} of {queue} ready again", counted(count, "dead letter")))
        }
        Command::Peek(queue) => client.peek(queue, PEEK_MESSAGES).await.map(|messages| {
            state.peeked(queue.clone(), messages);
            String::new()
        }),
        Command::Quit => Ok(String::new()),
    };
    done.unwrap_or_else(|error| connection.error(&error).message().to_owned())
}

/// Reads keys in a thread of its own, because waiting for the terminal blocks.
fn keys() -> mpsc::Receiver<KeyEvent> {
    let (pressed, keys) = mpsc::channel(16);
    std::thread::spawn(move || {
        while !pressed.is_closed() {
            match event::poll(KEY_POLL) {
                Ok(false) => {}
                Ok(true) => match event::read() {
                    Ok(Event::Key(key)) if key.kind == KeyEventKind::Press => {
                        let _ = pressed.blocking_send(key);
                    }
                    Ok(_) => {}
                    Err(_) => return,
                },
                Err(_) => return,
            }
        }
    });
    keys
}

//! `sluice top`: a live view of queues, limits and consumers, with keys to act on the queue that is chosen.
//!
//! `sample` asks the server and turns totals into rates, `state` is what the view shows and what keys do to
//! it, `view` draws it. Neither of the last two talks to anybody, so that both are tested without a terminal.

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
use crate::terminal::values::duration;
use crate::terminal::{CliError, Out, Result};
use sample::Sampler;
use state::{Command, Pane, State};

/// How long the thread that reads keys waits before it looks whether the view has ended.
const KEY_POLL: Duration = Duration::from_millis(100);
/// Messages that peeking shows.
const PEEK_MESSAGES: u32 = 20;

#[derive(Debug, Args)]
#[command(
    after_help = "Keys: up and down choose a queue, p pauses or resumes it, Enter peeks at what is next in line,\n\
    d makes its dead letters ready again, s sorts by the next column, / filters by name, Tab shows limits, then consumers, q ends.\n\n\
    Examples:\n  sluice top\n  sluice top mail. --interval 5s\n  sluice top --once --json"
)]
pub(crate) struct TopArgs {
    /// Only queues whose names begin with this.
    #[arg(default_value = "")]
    prefix: String,
    /// Time between two looks; rates are averages over it.
    #[arg(long, short, value_name = "DURATION", value_parser = duration, default_value = "1s")]
    interval: Duration,
    /// Print one look, with the rates of one interval, and end. With --json as an object.
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    server: ServerFlags,
}

/// Runs until the user ends it.
pub(crate) async fn run(args: TopArgs, out: Out) -> Result<u8> {
    if args.interval < Duration::from_millis(100) {
        return Err(CliError::usage("--interval is too short: use at least 100ms"));
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
        return Err(CliError::usage("sluice top needs a terminal: use --once elsewhere"));
    }
    let mut state = State::new(connection.namespace.clone(), first);
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
    state: &mut State,
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
                // The other pane may show what was not asked for yet.
                Some(None) if state.pane == Pane::Consumers => look(connection, sampler, state).await,
                Some(None) => {}
                Some(Some(command)) => {
                    let told = act(connection, command, state).await;
                    state.tell(told);
                    look(connection, sampler, state).await;
                }
            },
        }
    }
}

/// A look that fails is told in the view, which stays as it was: the server may come back.
async fn look(connection: &Connection, sampler: &mut Sampler, state: &mut State) {
    match sampler.sample(connection, state.pane == Pane::Consumers).await {
        Ok(sample) => state.show(sample),
        Err(error) => state.tell(error.message().to_owned()),
    }
}

/// Does what a key asked for; returns what to tell of it.
async fn act(connection: &Connection, command: Command, state: &mut State) -> String {
    let client = &connection.client;
    let done = match &command {
        Command::Pause(queue) => client.queue_pause(queue, true).await.map(|_| format!("paused {queue}")),
        Command::Resume(queue) => client.queue_pause(queue, false).await.map(|_| format!("resumed {queue}")),
        Command::Redrive(queue) => {
            let redriven = client.dead_redrive(queue, None).await;
            redriven.map(|count| format!("made {count} dead letter(s) of {queue} ready again"))
        }
        Command::Peek(queue) => client.peek(queue, PEEK_MESSAGES).await.map(|messages| {
            state.peeked(queue.clone(), messages);
            String::new()
        }),
        Command::Quit => Ok(String::new()),
    };
    done.unwrap_or_else(|error| connection.error(&error).message().to_owned())
}

/// Keys, read by a thread of its own, since the terminal cannot be waited for otherwise.
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

//! The command line: one file per group of verbs.

mod backup;
mod bench;
mod bulk;
mod cert;
mod change;
mod check;
mod completions;
mod config;
mod consumer;
mod content;
mod context;
mod dead;
mod events;
mod flow;
mod globals;
mod in_flags;
mod key;
mod limit;
mod message;
mod namespace;
mod near;
mod progress;
mod queue;
mod queue_defaults;
mod queue_settings;
mod receive;
mod request;
mod restore;
mod schedule;
mod send;
mod settle;
mod status;
mod sure;
mod token;

use std::future::Future;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::connect;
use crate::terminal::values::{duration, number, queue_weight};
use crate::terminal::{CliError, Fault, Out, Result, error, format, output, values};

/// A durable queue server, and everything to work with it.
///
/// Start a server with `sluice serve`; then, in other terminals, `sluice send emails hello` and
/// `sluice work emails -- sh -c 'cat; echo'`. The options of the server (--server, --namespace, --token-file
/// and so on) may stand before the verb, too.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, max_term_width = 110, after_help = error::EXIT_CODES)]
struct Cli {
    /// Write JSON: one object, or one per line.
    #[arg(long, global = true, help_heading = "Output")]
    json: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the server.
    Serve(crate::serve::ServeArgs),
    /// Send messages: an argument, a file, lines or JSON lines.
    Send(Box<send::SendArgs>),
    /// Send a message and wait for its result.
    Request(request::RequestArgs),
    /// Receive messages and print them.
    Receive(receive::ReceiveArgs),
    /// Run a command for each message.
    Work(crate::work::WorkArgs),
    /// Settle messages: done.
    Ack(settle::AckArgs),
    /// Settle messages: failed, to be tried again.
    Nack(settle::NackArgs),
    /// Settle messages: given back; the attempt does not count.
    Release(settle::ReleaseArgs),
    /// Settle messages: never to be tried again; they become dead letters.
    Reject(settle::RejectArgs),
    /// Extend the leases of messages.
    Extend(settle::ExtendArgs),
    /// Look at queues, and change them.
    #[command(subcommand)]
    Queue(queue::QueueVerb),
    /// Look at namespaces, and change them.
    #[command(subcommand)]
    Namespace(namespace::NamespaceVerb),
    /// Send messages at times of day, or again and again.
    #[command(subcommand)]
    Schedule(schedule::ScheduleVerb),
    /// Look at how messages wait for, and follow, others.
    #[command(subcommand)]
    Flow(flow::FlowVerb),
    /// Send messages and one that follows when all have ended, and look how they stand.
    #[command(subcommand)]
    Group(flow::GroupVerb),
    /// Look at who holds messages, and detach consumers.
    #[command(subcommand)]
    Consumer(consumer::ConsumerVerb),
    /// Look at limits, and set them.
    #[command(subcommand)]
    Limit(limit::LimitVerb),
    /// Look at messages without taking them, and change them.
    #[command(subcommand)]
    Message(message::MessageVerb),
    /// Change many messages in the background.
    #[command(subcommand)]
    Bulk(bulk::BulkVerb),
    /// Look at dead letters, and decide about them.
    #[command(subcommand)]
    Dead(dead::DeadVerb),
    /// Print what happens to messages, as it happens.
    Events(events::EventsArgs),
    /// Show on one screen how the server is: version, durability, disk, what waits, and what needs a person.
    Status(status::StatusArgs),
    /// Watch queues, limits and rates live.
    Top(crate::top::TopArgs),
    /// Show every setting of the server, its value, and where it comes from.
    Config(config::ConfigArgs),
    /// Verify a data directory while no server uses it.
    Check(check::CheckArgs),
    /// Look at the root keys of encryption, and replace them.
    #[command(subcommand)]
    Key(key::KeyVerb),
    /// Copy everything from a running server into one file.
    Backup(backup::BackupArgs),
    /// Make a data directory from a backup.
    Restore(restore::RestoreArgs),
    /// Make certificates for servers and clients, with a CA of your own.
    #[command(subcommand)]
    Cert(cert::CertVerb),
    /// Make tokens for clients, list and revoke them.
    #[command(subcommand)]
    Token(token::TokenVerb),
    /// Print who has done what to the server, the oldest first.
    Audit(token::AuditArgs),
    /// Print who you are to the server, and what you may do.
    #[command(name = "whoami")]
    WhoAmI(token::WhoAmIArgs),
    /// Measure this program on this machine.
    #[command(subcommand)]
    Bench(sluice_bench::BenchVerb),
    /// Keep names for servers, and choose one.
    #[command(subcommand)]
    Context(context::ContextVerb),
    /// Print completions for a shell.
    Completions(completions::CompletionsArgs),
}

/// Parses, runs, and turns what went wrong into words and an exit code.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::command();
    let args = globals::behind_the_verb(std::env::args_os().collect(), &cli);
    let words: Vec<String> = args.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    // Read before parsing, so that mistakes of usage are told in the form that was asked for, too.
    let json = args.iter().take_while(|a| *a != "--").any(|a| a == "--json");
    let result = match Cli::try_parse_from(args) {
        Ok(cli) => run(cli),
        Err(e) if e.exit_code() == 0 => {
            return if e.print().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Err(mut e) => {
            let meant = near::meant(&mut e, &words, &cli).map(|meant| format!("Did you mean {meant}?"));
            if json {
                let error = CliError::usage(e.to_string().trim().trim_start_matches("error: "));
                Err(meant.into_iter().fold(error, CliError::hint))
            } else {
                let _ = e.print();
                if let Some(meant) = meant {
                    eprintln!("\n{meant}");
                }
                return ExitCode::from(error::USAGE);
            }
        }
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => in_flags::in_flags(error, &words, near::of_verb(&cli, &words)).report(json),
    }
}

fn run(cli: Cli) -> Result<u8> {
    let out = Out::new(cli.json);
    match cli.verb {
        Verb::Serve(args) => crate::serve::run(args, out),
        Verb::Send(args) => talk(send::run(*args, out)),
        Verb::Request(args) => talk(request::run(args, out)),
        Verb::Receive(args) => talk(receive::run(args, out)),
        Verb::Work(args) => talk(crate::work::run(args, out)),
        Verb::Ack(args) => talk(args.run(out)),
        Verb::Nack(args) => talk(args.run(out)),
        Verb::Release(args) => talk(args.run(out)),
        Verb::Reject(args) => talk(args.run(out)),
        Verb::Extend(args) => talk(args.run(out)),
        Verb::Queue(verb) => talk(queue::run(verb, out)),
        Verb::Namespace(verb) => talk(namespace::run(verb, out)),
        Verb::Schedule(verb) => talk(schedule::run(verb, out)),
        Verb::Flow(verb) => talk(flow::run(verb, out)),
        Verb::Group(verb) => talk(flow::run_group(verb, out)),
        Verb::Consumer(verb) => talk(consumer::run(verb, out)),
        Verb::Limit(verb) => talk(limit::run(verb, out)),
        Verb::Message(verb) => talk(message::run(verb, out)),
        Verb::Bulk(verb) => talk(bulk::run(verb, out)),
        Verb::Dead(verb) => talk(dead::run(verb, out)),
        Verb::Bench(verb) => bench::run(&verb, out),
        Verb::Events(args) => talk(events::run(args, out)),
        Verb::Status(args) => talk(status::run(args, out)),
        Verb::Top(args) => talk(crate::top::run(args, out)),
        Verb::Config(args) => config::run(args, out),
        Verb::Check(args) => check::run(&args, out),
        Verb::Key(key::KeyVerb::New) => key::new(out),
        Verb::Key(key::KeyVerb::Status { server }) => talk(key::run(server, false, out)),
        Verb::Key(key::KeyVerb::Rotate { server }) => talk(key::run(server, true, out)),
        Verb::Backup(args) => talk(backup::run(args, out)),
        Verb::Cert(verb) => cert::run(verb, out),
        Verb::Token(verb) => talk(token::run(verb, out)),
        Verb::Audit(args) => talk(token::audit(args, out)),
        Verb::WhoAmI(args) => talk(token::whoami(args, out)),
        Verb::Restore(args) => restore::run(&args, out),
        Verb::Context(verb) => context::run(verb, out),
        Verb::Completions(args) => completions::run(&args, Cli::command(), out),
    }
}

/// Runs a verb that talks to a server.
fn talk(verb: impl Future<Output = Result<u8>>) -> Result<u8> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| CliError::failed(format!("cannot start: {e}")))?;
    let result = runtime.block_on(verb);
    // A read of the terminal cannot be interrupted; do not wait for it.
    runtime.shutdown_background();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}

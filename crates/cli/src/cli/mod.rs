//! The command line: one file per group of verbs, and what the verbs share.

mod attach;
mod attach_get;
mod backup;
mod bench;
mod bounded;
mod bulk;
mod cert;
mod change;
mod check;
mod cluster;
mod cluster_limits;
mod completions;
mod config;
mod confirm;
mod consumer;
mod context;
mod dead;
mod doc;
mod doc_edit;
mod doc_index;
mod doc_query;
mod doc_watch;
mod events;
mod filter;
mod flag_bytes;
mod flag_errors;
mod flow;
mod joined;
mod key;
mod limit;
mod lock;
mod lock_watch;
mod man;
mod message;
mod message_list;
mod message_search;
mod namespace;
mod outage;
mod policy;
mod progress;
mod push;
mod queue;
mod queue_defaults;
mod queue_settings;
mod receive;
mod request;
mod restore;
mod schedule;
mod send;
mod server_options;
mod settle;
mod status;
mod suggest;
mod token;
mod txn;
mod txn_open;
mod txn_resolve;

use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::connect;
use crate::terminal::values::{duration, number, queue_weight};
use crate::terminal::{CliError, Fault, Out, Result, error, format, output, values};

/// A durable queue server and its tools.
///
/// Start a server with `sluice serve`; then, in other terminals, run `sluice send emails hello` and `sluice
/// work emails -- sh -c 'cat; echo'`. The options of the server (--server, --namespace, --token-file and so
/// on) may also stand before the verb.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, max_term_width = 110, after_help = error::EXIT_CODES)]
struct Cli {
    /// Write JSON: one object, or one object per line.
    #[arg(long, global = true, help_heading = "Output")]
    json: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the server.
    Serve(crate::serve::ServeArgs),
    /// Send messages: one payload, or one message per line of text or JSON.
    Send(Box<send::SendArgs>),
    /// Send a message and wait for its result.
    Request(request::RequestArgs),
    /// Receive messages and print them.
    Receive(receive::ReceiveArgs),
    /// Run a command for each message.
    Work(crate::work::WorkArgs),
    /// Settle messages: the work is done.
    Ack(settle::AckArgs),
    /// Settle messages: the attempt failed; another one follows after the backoff.
    Nack(settle::NackArgs),
    /// Settle messages: give them back; the attempt does not count.
    Release(settle::ReleaseArgs),
    /// Settle messages: they must not be tried again and become dead letters.
    Reject(settle::RejectArgs),
    /// Extend the leases of messages.
    Extend(settle::ExtendArgs),
    /// List, show, change, purge and delete queues.
    #[command(subcommand)]
    Queue(queue::QueueVerb),
    /// List, create, change and delete namespaces.
    #[command(subcommand)]
    Namespace(namespace::NamespaceVerb),
    /// List, set, pause and delete schedules, which send messages at set times.
    #[command(subcommand)]
    Schedule(schedule::ScheduleVerb),
    /// Show the messages that a message waits for, and those that wait for it.
    #[command(subcommand)]
    Flow(flow::FlowVerb),
    /// Send a group of messages with a callback that follows them, and show its progress.
    #[command(subcommand)]
    Group(flow::GroupVerb),
    /// List consumers with the messages that they hold, and detach them.
    #[command(subcommand)]
    Consumer(consumer::ConsumerVerb),
    /// List, set and delete limits on messages in flight and rates.
    #[command(subcommand)]
    Limit(limit::LimitVerb),
    /// Run commands under locks; list, show, watch, acquire and break locks.
    #[command(subcommand)]
    Lock(lock::LockVerb),
    /// Read, write, edit, list, watch and delete documents: keys with a content that has a version.
    #[command(subcommand)]
    Doc(doc::DocVerb),
    /// Attach files to documents; get, list and delete attachments.
    #[command(subcommand)]
    Attach(attach::AttachVerb),
    /// Do operations on queues, documents and locks together, all or none.
    #[command(subcommand)]
    Txn(txn::TxnVerb),
    /// Show messages without receiving them, and change them.
    #[command(subcommand)]
    Message(message::MessageVerb),
    /// Change all messages of a queue that match a filter, in the background.
    #[command(subcommand)]
    Bulk(bulk::BulkVerb),
    /// List, redrive and delete dead letters.
    #[command(subcommand)]
    Dead(dead::DeadVerb),
    /// Print events of messages as they happen.
    Events(events::EventsArgs),
    /// Show the server's state on one screen: version, durability, disk, messages, and problems that need an
    /// operator.
    Status(status::StatusArgs),
    /// Show queues, rates, limits and consumers, continuously updated.
    Top(crate::top::TopArgs),
    /// Show every setting of the server with its value and its origin.
    Config(config::ConfigArgs),
    /// Look what could be wrong with this machine, the settings and a running server, and say what to do.
    Doctor(Box<crate::doctor::DoctorArgs>),
    /// Verify a data directory while no server uses it.
    Check(check::CheckArgs),
    /// Show the root keys of the encryption, and rotate them.
    #[command(subcommand)]
    Key(key::KeyVerb),
    /// Copy all data of a running server into one file.
    Backup(backup::BackupArgs),
    /// Create a data directory from a backup.
    Restore(restore::RestoreArgs),
    /// Create a CA, and certificates for servers and clients.
    #[command(subcommand)]
    Cert(cert::CertVerb),
    /// List the nodes of the cluster, or run one to try it out.
    #[command(subcommand)]
    Cluster(cluster::ClusterVerb),
    /// Create, list and revoke tokens for clients.
    #[command(subcommand)]
    Token(token::TokenVerb),
    /// Store, show and remove the policy that counts on all nodes.
    #[command(subcommand)]
    Policy(policy::PolicyVerb),
    /// Print the audit log: who has changed what, oldest entry first.
    Audit(token::AuditArgs),
    /// Print your identity as the server sees it, and your rights.
    #[command(name = "whoami")]
    WhoAmI(token::WhoAmIArgs),
    /// Run benchmarks of this program on this machine.
    #[command(subcommand)]
    Bench(sluice_bench::BenchVerb),
    /// Manage contexts: names for servers with their credentials.
    #[command(subcommand)]
    Context(context::ContextVerb),
    /// Serve queues, locks and documents to an agent as tools of the Model Context Protocol.
    Mcp(crate::mcp::McpArgs),
    /// Print a completion script for a shell.
    Completions(completions::CompletionsArgs),
    /// Write a man page for each verb.
    Man(man::ManArgs),
}

/// Parses the command line, runs the verb, and turns an error into a message and an exit code.
pub fn main() -> ExitCode {
    let cli = Cli::command();
    let args = server_options::move_behind_verb(std::env::args_os().collect(), &cli);
    let words: Vec<String> = args.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    // Read before parsing, so that a usage error is printed in the requested form, too.
    let json = args.iter().take_while(|a| *a != "--").any(|a| a == "--json");
    let result = match Cli::try_parse_from(args) {
        Ok(cli) => run(cli),
        Err(e) if e.exit_code() == 0 => {
            return if e.print().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Err(mut e) => {
            let meant =
                suggest::suggestion(&mut e, &words, &cli).map(|meant| format!("Did you mean {meant}?"));
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
        Err(error) => {
            flag_errors::in_terms_of_flags(error, &words, suggest::find_verb(&cli, &words)).report(json)
        }
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
        Verb::Lock(verb) => talk(lock::run(verb, out)),
        Verb::Doc(verb) => talk(doc::run(verb, out)),
        Verb::Attach(verb) => talk(attach::run(verb, out)),
        Verb::Txn(verb) => talk(txn::run(verb, out)),
        Verb::Message(verb) => talk(message::run(verb, out)),
        Verb::Bulk(verb) => talk(bulk::run(verb, out)),
        Verb::Dead(verb) => talk(dead::run(verb, out)),
        Verb::Bench(verb) => bench::run(&verb, out),
        Verb::Events(args) => talk(events::run(args, out)),
        Verb::Status(args) => talk(status::run(args, out)),
        Verb::Top(args) => talk(crate::top::run(args, out)),
        Verb::Config(args) => config::run(args, out),
        Verb::Doctor(args) => talk(crate::doctor::run(*args, out)),
        Verb::Check(args) => check::run(&args, out),
        Verb::Key(key::KeyVerb::New) => key::new(out),
        Verb::Key(key::KeyVerb::Status { server }) => talk(key::run(server, false, out)),
        Verb::Key(key::KeyVerb::Rotate { server }) => talk(key::run(server, true, out)),
        Verb::Backup(args) => talk(backup::run(args, out)),
        Verb::Cert(verb) => cert::run(verb, out),
        Verb::Cluster(verb) => talk(cluster::run(verb, out)),
        Verb::Token(verb) => talk(token::run(verb, out)),
        Verb::Policy(verb) => talk(policy::run(verb, out)),
        Verb::Audit(args) => talk(token::audit(args, out)),
        Verb::WhoAmI(args) => talk(token::whoami(args, out)),
        Verb::Restore(args) => restore::run(&args, out),
        Verb::Context(verb) => context::run(verb, out),
        Verb::Mcp(args) => talk(crate::mcp::run(args)),
        Verb::Completions(args) => completions::run(&args, Cli::command(), out),
        Verb::Man(args) => man::run(&args, Cli::command(), out),
    }
}

/// Runs a verb that talks to a server.
fn talk(verb: impl Future<Output = Result<u8>>) -> Result<u8> {
    block_on(Box::pin(verb))
}

/// Runs any verb, so that the runtime is compiled once and not for each of them.
fn block_on(verb: Pin<Box<dyn Future<Output = Result<u8>> + '_>>) -> Result<u8> {
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

    /// Sentences of a text that are broken by hand, although the text is wrapped.
    fn broken_lines(text: &str) -> Vec<String> {
        let is_prose = |line: &str| line.starts_with(|first: char| first.is_alphanumeric() || first == '`');
        let is_whole = |line: &str| line.ends_with(['.', ':']);
        let lines: Vec<&str> = text.lines().collect();
        let is_broken = |pair: &&[&str]| is_prose(pair[0]) && is_prose(pair[1]) && !is_whole(pair[0]);
        let pairs = lines.windows(2).filter(is_broken);
        pairs.map(|pair| format!("{} / {}", pair[0], pair[1])).collect()
    }

    fn each_command(command: &clap::Command, look: &mut impl FnMut(&clap::Command)) {
        look(command);
        command.get_subcommands().for_each(|verb| each_command(verb, look));
    }

    #[test]
    fn closing_texts_of_help_are_wrapped_once() {
        let mut broken = Vec::new();
        each_command(&Cli::command(), &mut |command| {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            broken.extend(broken_lines(&text).iter().map(|pair| format!("{}: {pair}", command.get_name())));
        });
        assert!(broken.is_empty(), "{broken:#?}");
    }

    #[test]
    fn no_help_has_a_stray_backslash() {
        each_command(&Cli::command(), &mut |command| {
            for arg in command.get_arguments() {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(!help.contains("\\'"), "{}: {help}", command.get_name());
            }
        });
    }
}

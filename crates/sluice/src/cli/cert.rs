//! `sluice cert`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;
use sluice_calls::access::Scope;

use super::output::Table;
use super::{CliError, Out, Result, number};
use crate::cert::{Files, Folder, Maker, pair_names, see};

/// Days that a CA is valid.
const CA_DAYS: u32 = 3_650;

#[derive(Debug, Subcommand)]
pub(crate) enum CertVerb {
    /// Make a CA, which signs the certificates of servers and clients.
    #[command(
        after_help = "Whoever has ca.key can make certificates for anybody: keep it where only you can read it."
    )]
    Ca {
        /// Name of the CA, for people.
        #[arg(long, default_value = "Sluice CA", value_name = "NAME")]
        name: String,
        /// How long it is valid.
        #[arg(long, default_value_t = CA_DAYS, value_name = "N", value_parser = number(1u32..=36_500))]
        days: u32,
        #[command(flatten)]
        dir: Dir,
    },
    /// Make a certificate for a server, for the names and addresses that clients connect to.
    Server {
        /// DNS names and IP addresses.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// Name of the files.
        #[arg(long, default_value = "server", value_name = "NAME")]
        file: String,
        #[command(flatten)]
        make: Make,
    },
    /// Make a certificate for a client.
    #[command(after_help = "Examples:\n  sluice cert client ops --scope '*=admin'\n  \
        sluice cert client billing --scope shop=rw\n\n\
        A scope is NAMESPACE=PERM with PERM r (receive and settle), w (send), rw,\n\
        observer, operator or admin.\n\
        What no scope in the certificate allows can be allowed in the server's policy file.")]
    Client {
        /// Name of the identity: letters, digits, and `.`, `-`, `_`, `@`.
        name: String,
        /// What it may do: NAMESPACE=PERM.
        #[arg(long, value_name = "NAMESPACE=PERM", value_parser = scope)]
        scope: Vec<Scope>,
        #[command(flatten)]
        make: Make,
    },
    /// Show what is in a certificate, its serial number among it.
    Show {
        /// A PEM file.
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Dir {
    /// Folder of the CA.
    #[arg(long, default_value = "sluice-tls", value_name = "DIR")]
    dir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Make {
    /// How long it is valid, at most as long as its CA.
    #[arg(long, default_value_t = 365, value_name = "N", value_parser = number(1u32..=36_500))]
    days: u32,
    /// Replace files that exist.
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    dir: Dir,
}

/// A scope as the command line has it.
pub(super) fn scope(text: &str) -> std::result::Result<Scope, String> {
    let (namespace, perm) =
        text.rsplit_once('=').ok_or("expected NAMESPACE=PERM, such as shop=rw or *=admin")?;
    Scope::new(namespace, perm)?.expect_useful()
}

/// What somebody is told who makes a `token` or `certificate` that allows nothing by itself.
pub(super) fn without_scope(what: &str) -> String {
    format!(
        "Without --scope this {what} may do nothing, until a rule of the server's policy names it; \
         --scope default=rw would let it send and receive."
    )
}

pub(super) fn run(verb: CertVerb, out: Out) -> Result<u8> {
    match verb {
        CertVerb::Ca { name, days, dir } => {
            let folder = Folder(dir.dir);
            told(out, &folder.make_ca(&name, days)?)?;
        }
        CertVerb::Server { names, file, make } => {
            pair_names(&file).map_err(CliError::usage)?;
            let folder = Folder(make.dir.dir);
            let ca = folder.open_ca().map_err(no_ca)?;
            let pair = ca.server(&names, make.days, Maker::Person).map_err(CliError::usage)?;
            told(out, &folder.write(&file, &pair, make.overwrite)?)?;
        }
        CertVerb::Client { name, scope, make } => {
            pair_names(&name).map_err(CliError::usage)?;
            if scope.is_empty() {
                out.note(&without_scope("certificate"));
            }
            let folder = Folder(make.dir.dir);
            let ca = folder.open_ca().map_err(no_ca)?;
            let scopes: Vec<String> = scope.iter().map(ToString::to_string).collect();
            let pair = ca.client(&name, &scopes, make.days, Maker::Person).map_err(CliError::usage)?;
            told(out, &folder.write(&name, &pair, make.overwrite)?)?;
        }
        CertVerb::Show { file } => show(&file, out)?,
    }
    Ok(0)
}

fn no_ca(reason: String) -> CliError {
    CliError::usage(reason).hint("`sluice cert ca` makes a CA; --dir names its folder.")
}

fn told(out: Out, files: &Files) -> Result<()> {
    let (cert, key) = (files.cert.display().to_string(), files.key.display().to_string());
    out.show(&json!({"cert": cert, "key": key}), |_| format!("wrote {cert} and {key}\n"))
}

fn show(file: &std::path::Path, out: Out) -> Result<()> {
    let name = file.display().to_string();
    let pem = std::fs::read(file).map_err(|e| CliError::unreadable(&name, &e))?;
    let seen = see(&pem).map_err(|e| CliError::usage(format!("{name}: {e}")))?;
    let value = json!({"subject": seen.subject, "issuer": seen.issuer, "serial": seen.serial, "names": seen.names,
        "expires": seen.expires, "ca": seen.is_ca});
    out.show(&value, |_| {
        let mut table = Table::fields();
        table.field("subject", &*seen.subject);
        table.field("issuer", &*seen.issuer);
        table.field("serial", &*seen.serial);
        for name in &seen.names {
            table.field("name", &**name);
        }
        table.field("expires", &*seen.expires);
        table.field("CA", if seen.is_ca { "yes" } else { "no" });
        table.render()
    })
}

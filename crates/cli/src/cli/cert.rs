//! `sluice cert`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use sluice_calls::access::Scope;

use super::bounded::{FILE_BYTES_MAX, read_file};
use super::output::Table;
use super::{CliError, Out, Result, number};
use crate::cert::{AUTO_SUFFIX, Files, Folder, Maker, pair_names, read_certificate};
use crate::root_keys::KeyFlags;

/// Days for which a CA is valid.
const CA_DAYS: u32 = 3_650;

#[derive(Debug, Subcommand)]
pub(crate) enum CertVerb {
    /// Create a CA, which signs the certificates of servers and clients.
    #[command(after_help = "Whoever has ca.key can make certificates for anybody: keep the file secret.")]
    Ca {
        /// Name of the CA, shown in its certificates.
        #[arg(long, default_value = "Sluice CA", value_name = "NAME")]
        name: String,
        /// Days for which the CA is valid.
        #[arg(long, default_value_t = CA_DAYS, value_name = "N", value_parser = number(1u32..=36_500))]
        days: u32,
        #[command(flatten)]
        dir: Dir,
    },
    /// Create a certificate for a server, with the names and addresses that clients connect to.
    Server {
        /// DNS names and IP addresses.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// Base name of the files.
        #[arg(long, default_value = "server", value_name = "NAME")]
        file: String,
        #[command(flatten)]
        make: Make,
    },
    /// Create a certificate for a client.
    #[command(after_help = "Examples:\n  sluice cert client ops --scope '*=admin'\n  \
        sluice cert client billing --scope shop=rw\n\n\
        A scope is NAMESPACE=PERM with PERM r (receive and settle), w (send), rw, \
        observer, operator or admin.\n\
        The server's policy file can add rights that no scope in the certificate gives.")]
    Client {
        /// Name of the client: letters, digits, and `.`, `-`, `_`, `@`.
        name: String,
        /// Right of the client: NAMESPACE=PERM; repeat the flag for several rights.
        #[arg(long, value_name = "NAMESPACE=PERM", value_parser = scope)]
        scope: Vec<Scope>,
        #[command(flatten)]
        make: Make,
    },
    /// Show the contents of a certificate, with its serial number.
    Show {
        /// Certificate file, PEM.
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
    /// Days for which the certificate is valid, at most as long as its CA.
    #[arg(long, default_value_t = 365, value_name = "N", value_parser = number(1u32..=36_500))]
    days: u32,
    /// Replace existing files.
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    dir: Dir,
    #[command(flatten)]
    keys: KeyFlags,
}

impl Dir {
    fn folder(self, keys: &KeyFlags) -> Folder {
        let roots = keys.store(&data_dir(&self.dir));
        Folder::new(self.dir, roots)
    }
}

/// The data directory beside which `sluice serve --tls auto` has made this folder.
fn data_dir(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(name.strip_suffix(AUTO_SUFFIX).unwrap_or(&name))
}

/// Parses a scope of the command line.
pub(super) fn scope(text: &str) -> std::result::Result<Scope, String> {
    let (namespace, perm) =
        text.rsplit_once('=').ok_or("expected NAMESPACE=PERM, such as shop=rw or *=admin")?;
    Scope::new(namespace, perm)?.expect_useful()
}

/// Warns that a new `token` or `certificate` without a scope allows nothing by itself.
pub(super) fn without_scope(what: &str) -> String {
    format!(
        "Without --scope this {what} may do nothing, until a rule of the server's policy names it; \
         --scope default=rw would let it send and receive."
    )
}

pub(super) fn run(verb: CertVerb, out: Out) -> Result<u8> {
    match verb {
        CertVerb::Ca { name, days, dir } => {
            let folder = dir.folder(&KeyFlags::default());
            print_paths(out, &folder.make_ca(&name, days)?)?;
        }
        CertVerb::Server { names, file, make } => {
            pair_names(&file).map_err(CliError::usage)?;
            let folder = make.dir.folder(&make.keys);
            let ca = folder.open_ca().map_err(no_ca)?;
            let pair = ca.server(&names, make.days, Maker::Person).map_err(CliError::usage)?;
            print_paths(out, &folder.write(&file, &pair, make.overwrite)?)?;
        }
        CertVerb::Client { name, scope, make } => {
            pair_names(&name).map_err(CliError::usage)?;
            if scope.is_empty() {
                out.note(&without_scope("certificate"));
            }
            let folder = make.dir.folder(&make.keys);
            let ca = folder.open_ca().map_err(no_ca)?;
            let scopes: Vec<String> = scope.iter().map(ToString::to_string).collect();
            let pair = ca.client(&name, &scopes, make.days, Maker::Person).map_err(CliError::usage)?;
            print_paths(out, &folder.write(&name, &pair, make.overwrite)?)?;
        }
        CertVerb::Show { file } => show(&file, out)?,
    }
    Ok(0)
}

fn no_ca(reason: String) -> CliError {
    CliError::usage(reason).hint("`sluice cert ca` makes a CA; --dir names its folder.")
}

fn print_paths(out: Out, files: &Files) -> Result<()> {
    let (cert, key) = (files.cert.display().to_string(), files.key.display().to_string());
    out.show(&json!({"cert": cert, "key": key}), |_| format!("wrote {cert} and {key}\n"))
}

fn show(file: &Path, out: Out) -> Result<()> {
    let name = file.display().to_string();
    let pem = read_file(file, FILE_BYTES_MAX)?;
    let seen = read_certificate(&pem).map_err(|e| CliError::usage(format!("{name}: {e}")))?;
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

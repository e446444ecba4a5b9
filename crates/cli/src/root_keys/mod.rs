//! The root keys of the encryption at rest, as the operator keeps them.
//!
//! Map: `source` the setting `key_source`, `file` the key file that a server creates.
//! Every source gives the same text: keys of 64 hexadecimal digits, the key for new data first.

mod file;

use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use sluice_journal::keys::SystemRandom;
use sluice_journal::{Encryption, KeyId, RootKey, RootKeys};
use sluice_node::StartError;
use sluice_node::keys::{KeySource, RotateError};
use zeroize::Zeroizing;

use crate::config::{Any, Config, RootKeySource, SettingValue};
use crate::terminal::format::quoted;

/// The flag of verbs that read or create a data directory.
#[derive(Default, Debug, Args)]
pub(crate) struct KeyFlags {
    /// Source of the root keys, as for `sluice serve` [default: auto].
    #[arg(long, value_name = RootKeySource::PLACEHOLDER, env = "SLUICE_KEY_SOURCE", hide_env = true,
          value_parser = |text: &str| RootKeySource::read(text, &Any))]
    key_source: Option<RootKeySource>,
}

impl KeyFlags {
    /// Reads the keys for a data directory. Without a key file there are none, because no data may need one.
    pub(crate) fn read(&self, data_dir: &Path) -> Result<RootKeys, String> {
        Ok(self.store(data_dir).read()?.unwrap_or_default())
    }

    /// The source of the keys for a data directory.
    pub(crate) fn store(&self, data_dir: &Path) -> RootKeyStore {
        RootKeyStore::new(self.key_source.as_ref().unwrap_or(&RootKeySource::Beside), data_dir)
    }

    /// The flag for another command line; empty if it was not given.
    pub(crate) fn flag(&self) -> String {
        match &self.key_source {
            None => String::new(),
            Some(source) => format!(" --key-source {}", quoted(&source.show().to_string())),
        }
    }
}

/// Longest run time of the command that prints the keys.
const COMMAND_TIME: Duration = Duration::from_secs(30);
/// Maximum number of bytes that the command may print.
const COMMAND_BYTES_MAX: u64 = 1 << 20;

/// A source of root keys for one data directory.
#[derive(Clone, Debug)]
pub(crate) struct RootKeyStore {
    source: RootKeySource,
    data_dir: PathBuf,
}

/// The encryption of a server, with what to report about it.
#[derive(Clone, Debug)]
pub(crate) struct ServerEncryption {
    pub(crate) encryption: Encryption,
    pub(crate) store: RootKeyStore,
    /// The key file, if this start has created it.
    pub(crate) made: Option<PathBuf>,
}

impl ServerEncryption {
    /// Chooses the encryption for a server with these settings, as [`RootKeyStore::choose`] does.
    ///
    /// # Errors
    /// A key is missing, the source gives none, or the directory cannot be read.
    pub(crate) fn choose(config: &Config) -> Result<ServerEncryption, StartError> {
        RootKeyStore::new(&config.key_source, &config.data_dir).choose(!config.no_encryption)
    }

    /// The warning about a key file that was created, printed once.
    pub(crate) fn warning(&self) -> Option<String> {
        let (path, data_dir) = (self.made.as_ref()?, &self.store.data_dir);
        let data_dir = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.clone());
        Some(format!(
            "  KEEP A COPY of {}\n  somewhere else, now, apart from backups of the data: without this key nobody can \
             read\n  {} again, nor any backup of it.\n",
            path.display(),
            data_dir.display()
        ))
    }

    /// The key for new data, the place of the keys, and if that was created.
    pub(crate) fn json(&self) -> Value {
        json!({
            "root_key": self.encryption.root_of_new().map(|id| id.to_string()),
            "keys_in": self.store.place(),
            "made": self.made.is_some(),
        })
    }
}

impl RootKeyStore {
    pub(crate) fn new(source: &RootKeySource, data_dir: &Path) -> RootKeyStore {
        RootKeyStore { source: source.clone(), data_dir: data_dir.to_owned() }
    }

    /// Reads the keys for a server that is about to open the directory. Creates a first key if no data needs
    /// one yet.
    ///
    /// # Errors
    /// A key is missing, the source gives none, or the directory cannot be read.
    pub(crate) fn choose(self, encrypt: bool) -> Result<ServerEncryption, StartError> {
        let needed = match sluice_node::keys::needed(&self.data_dir) {
            // It does not tell which keys it needs, so that none is made; its opening says what is damaged.
            Err(damaged @ StartError::Damaged(_)) => {
                if encrypt && self.read().map_err(StartError::Refused)?.is_none() {
                    return Err(damaged);
                }
                Vec::new()
            }
            needed => needed?,
        };
        let mut made = None;
        if encrypt && matches!(self.source, RootKeySource::Beside | RootKeySource::File(_)) {
            file::remove_leftovers(&self.file().map_err(StartError::Refused)?);
        }
        let roots = if encrypt || !needed.is_empty() {
            match self.read().map_err(StartError::Refused)? {
                Some(roots) => roots,
                None if needed.is_empty() => {
                    let path = self.file().map_err(StartError::Refused)?;
                    file::make(&path)?;
                    made = Some(path);
                    self.must_read().map_err(StartError::Refused)?
                }
                None => return Err(StartError::Refused(self.missing(&needed))),
            }
        } else {
            RootKeys::default()
        };
        let encryption = if encrypt { Encryption::with(roots) } else { Encryption::only_read(roots) };
        Ok(ServerEncryption { encryption, store: self, made })
    }

    /// The place of the keys, for messages.
    pub(crate) fn place(&self) -> String {
        match &self.source {
            RootKeySource::Env(name) => format!("the environment variable {name}"),
            RootKeySource::Command(_) => "the command of key_source".to_owned(),
            RootKeySource::Beside | RootKeySource::File(_) => {
                self.file().map_or_else(|error| error, |path| path.display().to_string())
            }
        }
    }

    fn missing(&self, needed: &[KeyId]) -> String {
        let ids: Vec<String> = needed.iter().map(KeyId::to_string).collect();
        format!(
            "{} is encrypted, and it takes the root {} {} to open it, but the key file {} does not exist; \
             nothing was changed: restore that file from its copy, or name its place with --key-source",
            self.data_dir.display(),
            if ids.len() == 1 { "key" } else { "keys" },
            ids.join(" and "),
            self.place()
        )
    }

    /// Reads the keys; `None`: there is no key file.
    pub(crate) fn read(&self) -> Result<Option<RootKeys>, String> {
        let text = match &self.source {
            RootKeySource::Beside | RootKeySource::File(_) => match file::read(&self.file()?)? {
                Some(text) => text,
                None => return Ok(None),
            },
            RootKeySource::Env(name) => Zeroizing::new(std::env::var(name).map_err(|_| {
                format!(
                    "key_source is env:{name}, but the environment variable {name} is not set, or is not \
                    valid text"
                )
            })?),
            RootKeySource::Command(line) => run(line, COMMAND_TIME)?,
        };
        let roots = RootKeys::parse(&text).map_err(|error| format!("{}: {error}", self.place()))?;
        Ok(Some(roots))
    }

    fn must_read(&self) -> Result<RootKeys, String> {
        self.read()?.ok_or_else(|| format!("{} does not exist", self.place()))
    }

    /// The path of the key file, which must not lie inside the data directory.
    fn file(&self) -> Result<PathBuf, String> {
        let path = match &self.source {
            RootKeySource::File(path) => path.clone(),
            _ => file::default_path(&self.data_dir)?,
        };
        if file::is_within(&path, &self.data_dir) {
            return Err(format!(
                "the key file {} lies inside the data directory {}, so that every copy of the data would contain \
                 the key: name another place with --key-source file:PATH",
                path.display(),
                self.data_dir.display()
            ));
        }
        Ok(path)
    }
}

impl KeySource for RootKeyStore {
    fn rotate(&self, current: KeyId) -> Result<RootKeys, RotateError> {
        // The operator can correct whatever is wrong with it.
        let roots = self.must_read().map_err(RotateError::Refused)?;
        if roots.current().is_some_and(|first| first.id() != current) {
            // The operator has added the key to the file.
            return Ok(roots);
        }
        match &self.source {
            RootKeySource::Beside | RootKeySource::File(_) => {
                let key = RootKey::generate(&SystemRandom).map_err(|e| RotateError::Failed(e.to_string()))?;
                let path = self.file().map_err(RotateError::Failed)?;
                file::add(&path, &key).map_err(RotateError::Failed)?;
                Ok(roots.behind(key))
            }
            RootKeySource::Env(name) => Err(RotateError::Refused(format!(
                "the root key is in the environment variable {name}, whose changes a running server does not \
                 see: put the new key before the others in it, and restart the server"
            ))),
            RootKeySource::Command(_) => Err(RotateError::Refused(format!(
                "the command of key_source still prints {current} first: let it print the new key first, and the \
                 older keys after it"
            ))),
        }
    }
}

/// Runs a command and returns its output. Fails if it does not end in time.
fn run(line: &str, time: Duration) -> Result<Zeroizing<String>, String> {
    let failed = |what: String| format!("the command of key_source {what}: {line}");
    let mut child = Command::new("sh")
        .args(["-c", line])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // In a process group, so that it can be ended with all processes that it started.
        .process_group(0)
        .spawn()
        .map_err(|error| failed(format!("cannot be started ({error})")))?;
    let ended = wait(&mut child, time);
    if ended.is_err()
        && let Some(group) = Pid::from_raw(child.id().cast_signed())
    {
        // It may have ended just now.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = child.wait();
    }
    let (status, text) = ended.map_err(failed)?;
    if !status.success() {
        return Err(failed(format!("ended with {status}")));
    }
    Ok(text)
}

/// Waits until a command has ended and its output is complete.
fn wait(child: &mut Child, time: Duration) -> Result<(ExitStatus, Zeroizing<String>), String> {
    let begun = Instant::now();
    let too_slow = || format!("did not end within {} s", time.as_secs());
    let (done, read) = mpsc::channel();
    let printed = child.stdout.take();
    std::thread::spawn(move || {
        let mut text = Zeroizing::new(String::new());
        let read = printed.map(|printed| printed.take(COMMAND_BYTES_MAX).read_to_string(&mut text));
        // After a timeout nobody waits any more.
        let _ = done.send(read.unwrap_or(Ok(0)).map(|_| text));
    });
    let text = read.recv_timeout(time).map_err(|_| too_slow())?;
    let text = text.map_err(|_| "printed bytes that are not UTF-8 text".to_owned())?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok((status, text)),
            Ok(None) if begun.elapsed() < time => std::thread::sleep(Duration::from_millis(10)),
            Ok(None) => return Err(too_slow()),
            Err(error) => return Err(format!("cannot be waited for ({error})")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(source: RootKeySource, data_dir: &Path) -> RootKeyStore {
        RootKeyStore::new(&source, data_dir)
    }

    fn id(number: u8) -> KeyId {
        RootKey::new([number; 32]).id()
    }

    fn text(number: u8) -> String {
        format!("{number:02x}").repeat(32)
    }

    #[test]
    fn a_first_start_makes_a_key_file_beside_the_data_and_later_ones_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let first = store(RootKeySource::Beside, &data).choose(true).unwrap();
        assert_eq!(first.made, Some(dir.path().join("data.key")));
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(dir.path().join("data.key")).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
        let again = store(RootKeySource::Beside, &data).choose(true).unwrap();
        assert_eq!((again.made, again.encryption.roots.ids()), (None, first.encryption.roots.ids()));
        let plain = store(RootKeySource::Beside, &data).choose(false).unwrap();
        assert!(!plain.encryption.new_files && plain.encryption.roots.ids().is_empty());
        assert!(!data.exists());
    }

    #[test]
    fn a_key_file_inside_the_data_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        for path in [data.join("key"), data.join("deep/../key"), dir.path().join("data/./x/key")] {
            let error = store(RootKeySource::File(path), &data).choose(true).unwrap_err().to_string();
            assert!(error.contains("lies inside the data directory"), "{error}");
        }
        assert!(!data.exists());
        let error = store(RootKeySource::Beside, Path::new("/")).choose(true).unwrap_err().to_string();
        assert!(error.contains("--key-source file:PATH"), "{error}");
    }

    #[test]
    fn a_command_gives_keys_and_says_what_went_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let read = |line: &str| store(RootKeySource::Command(line.to_owned()), dir.path()).read();
        let keys = read(&format!("echo {}; echo {}", text(1), text(2))).unwrap().unwrap();
        assert_eq!(keys.ids(), [id(1), id(2)]);
        for (line, why) in [("exit 3", "ended with exit status: 3"), ("true", "there is no key in it")] {
            let error = read(line).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let error =
            store(RootKeySource::Env("SLUICE_NO_SUCH_KEY".to_owned()), dir.path()).read().unwrap_err();
        assert!(error.contains("the environment variable SLUICE_NO_SUCH_KEY is not set"), "{error}");
    }

    #[test]
    fn a_command_that_does_not_end_is_ended_with_all_that_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let pid = file.display();
        // The second has ended when what it started has not.
        for line in [format!("sleep 60 & echo $! > {pid}; wait"), format!("sleep 60 & echo $! > {pid}")] {
            let error = run(&line, Duration::from_secs(1)).unwrap_err();
            assert!(error.contains("did not end within 1 s"), "{error}");
            let started = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
            let started = Pid::from_raw(started).unwrap();
            let is_gone = || {
                let stat = std::fs::read_to_string(format!("/proc/{}/stat", started.as_raw_nonzero()));
                // One that nobody has waited for yet is dead all the same.
                stat.map_or(true, |stat| stat.contains(") Z "))
            };
            let begun = Instant::now();
            while !is_gone() {
                assert!(begun.elapsed() < Duration::from_secs(10), "{line} goes on");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    #[test]
    fn a_start_removes_what_a_killed_server_left_of_its_key_file() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        store(RootKeySource::Beside, &data).choose(true).unwrap();
        let part = |name: &str| dir.path().join(name);
        // No process has the first number; the test's parent is there, and the others are none of a server's.
        let (dead, own) =
            (part("data.key.4194305.part"), part(&format!("data.key.{}.part", std::process::id())));
        let living = part(&format!("data.key.{}.part", std::os::unix::process::parent_id()));
        let foreign =
            [part("data.key.x.part"), part("data.key.4194305.part.old"), part("other.key.4194305.part")];
        for path in [&dead, &own, &living].into_iter().chain(&foreign) {
            std::fs::write(path, text(1)).unwrap();
        }
        store(RootKeySource::Beside, &data).choose(true).unwrap();
        assert!(!dead.exists() && !own.exists() && living.exists());
        assert!(foreign.iter().all(|path| path.exists()));
    }

    #[test]
    fn a_rotation_adds_a_key_to_the_file_or_takes_what_the_operator_gives() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, format!("# mine\n{}\n", text(1))).unwrap();
        let store_of = |source| store(source, &dir.path().join("data"));
        let from_file = store_of(RootKeySource::File(path.clone()));
        let roots = from_file.rotate(id(1)).unwrap();
        assert_eq!(roots.ids().len(), 2);
        assert_eq!(roots.ids()[1], id(1));
        assert_eq!(from_file.read().unwrap().unwrap().ids(), roots.ids());
        assert!(std::fs::read_to_string(&path).unwrap().contains("# mine"));
        assert_eq!(from_file.rotate(id(1)).unwrap().ids(), roots.ids(), "the operator's first key is taken");
        let command = |line: String| store_of(RootKeySource::Command(line));
        let same = command(format!("echo {}", text(1))).rotate(id(1));
        assert!(matches!(same, Err(RotateError::Refused(why)) if why.contains("prints")));
        for (line, why) in
            [("echo rubbish", "key_source"), ("exit 3", "ended with"), ("true", "no key in it")]
        {
            let failed = command(line.to_owned()).rotate(id(1));
            assert!(matches!(&failed, Err(RotateError::Refused(told)) if told.contains(why)), "{failed:?}");
        }
        let given = command(format!("echo {} {}", text(2), text(1))).rotate(id(1)).unwrap();
        assert_eq!(given.ids(), [id(2), id(1)]);
    }
}

//! The file `directory`: reading and writing it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sluice_journal::Owner;

use super::shards::{SHARDS_MAX, latest_start};
use crate::api::StartError;
use crate::random::random_number;

pub(super) const NAME: &str = "directory";
const TITLE: &str = "sluice data directory";
const FORMAT_VERSION: u32 = 2;

/// Content of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Marker {
    /// Identity of this directory; a copy has the same.
    pub(super) identity: u64,
    /// Number of the last start that opened all shards; 0: none.
    pub(super) start: u64,
    /// Number of shards that exist.
    pub(super) shards: u32,
    pub(super) state: DirectoryState,
}

/// Change that was begun and may not be finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DirectoryState {
    Complete,
    /// Shards are being made, up to this many.
    Growing(u32),
    Restoring,
}

impl Marker {
    fn encode(&self) -> String {
        let state = match self.state {
            DirectoryState::Complete => "complete".to_owned(),
            DirectoryState::Growing(shards) => format!("growing {shards}"),
            DirectoryState::Restoring => "restoring".to_owned(),
        };
        let Marker { identity, start, shards, .. } = self;
        let body = format!(
            "{TITLE}\nformat {FORMAT_VERSION}\nidentity {identity:016x}\nstart {start}\nshards {shards}\nstate {state}\n"
        );
        format!("{body}checksum {:08x}\n", crc32fast::hash(body.as_bytes()))
    }

    fn decode(path: &Path, text: &str) -> Result<Marker, StartError> {
        let damaged = || {
            StartError::Failed(format!(
                "{} is damaged: keep a copy of the data directory, and {}",
                path.display(),
                how_to_state("N", path)
            ))
        };
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        if !text.starts_with(TITLE) {
            return Err(damaged());
        }
        let version: u32 = field("format").and_then(|value| value.parse().ok()).ok_or_else(damaged)?;
        if version != FORMAT_VERSION {
            return Err(StartError::Refused(format!(
                "{} has format version {version}, and this program reads only version {FORMAT_VERSION}: \
                 it was written by another version of sluice; nothing was changed: use that version",
                path.display()
            )));
        }
        let state = match field("state").map(|state| state.split_once(' ').unwrap_or((state, ""))) {
            Some(("complete", "")) => Some(DirectoryState::Complete),
            Some(("restoring", "")) => Some(DirectoryState::Restoring),
            Some(("growing", shards)) => shards.parse().ok().map(DirectoryState::Growing),
            _ => None,
        };
        let marker = Marker {
            identity: field("identity").and_then(|v| u64::from_str_radix(v, 16).ok()).ok_or_else(damaged)?,
            start: field("start").and_then(|value| value.parse().ok()).ok_or_else(damaged)?,
            shards: field("shards").and_then(|value| value.parse().ok()).ok_or_else(damaged)?,
            state: state.ok_or_else(damaged)?,
        };
        if marker.encode() == text { Ok(marker) } else { Err(damaged()) }
    }

    /// Reads what an operator states of a directory whose file was lost: the number of its shards alone. The
    /// rest is taken from the shards. It is not complete, so that a start writes the whole file.
    fn stated(data_dir: &Path, text: &str) -> Option<Marker> {
        let shards = text.trim_end().strip_prefix("shards ")?.parse().ok()?;
        if !(1..=SHARDS_MAX).contains(&shards) {
            return None;
        }
        let (identity, start) = latest_start(data_dir, shards).unwrap_or_else(|| (new_identity(), 0));
        Some(Marker { identity, start, shards, state: DirectoryState::Growing(shards) })
    }

    pub(super) fn read(data_dir: &Path) -> Result<Option<Marker>, StartError> {
        let path = data_dir.join(NAME);
        match fs::read(&path) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                Marker::stated(data_dir, &text).map_or_else(|| Marker::decode(&path, &text), Ok).map(Some)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StartError::of_io(&error, format!("cannot read {}: {error}", path.display()))),
        }
    }

    pub(super) fn write(&self, data_dir: &Path) -> io::Result<()> {
        let aside = data_dir.join(format!("{NAME}.tmp"));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        file.write_all(self.encode().as_bytes())?;
        file.sync_data()?;
        fs::rename(&aside, data_dir.join(NAME))?;
        File::open(data_dir)?.sync_all()
    }

    /// Owner that this start writes into the manifest of a shard.
    pub(super) fn owner(&self, shard: u32) -> Owner {
        Owner { server: self.identity, shard, start: self.start }
    }

    /// Number of shards that exist, or may.
    pub(super) fn shards_at_most(&self) -> u32 {
        match self.state {
            DirectoryState::Growing(shards) => shards.max(self.shards),
            DirectoryState::Complete | DirectoryState::Restoring => self.shards,
        }
    }
}

/// The remedy for a file that does not tell the number of shards.
pub(super) fn how_to_state(shards: &str, path: &Path) -> String {
    format!(
        "bring the file back from a copy, or restore the latest backup with `sluice restore`; or, if you are sure that \
         there were {shards} shards and each one's directory is in place, say so: echo shards {shards} > {}",
        path.display()
    )
}

/// Identity of a new directory.
pub(super) fn new_identity() -> u64 {
    random_number()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_comes_back_and_any_flipped_byte_is_seen() {
        let path = Path::new("directory");
        for state in [DirectoryState::Complete, DirectoryState::Growing(7), DirectoryState::Restoring] {
            let marker = Marker { identity: 0x12ab, start: 9, shards: 3, state };
            let text = marker.encode();
            assert_eq!(Marker::decode(path, &text).expect("whole"), marker);
            for at in 0..text.len() {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1;
                let flipped = String::from_utf8_lossy(&bytes).into_owned();
                assert!(Marker::decode(path, &flipped).is_err(), "byte {at}");
                assert!(Marker::decode(path, &text[..at]).is_err(), "cut at {at}");
            }
        }
    }
}

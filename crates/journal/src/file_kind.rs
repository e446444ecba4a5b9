//! Kinds of the numbered files of a journal, and their names.

/// Kinds of numbered files.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    /// A segment of the log.
    Log,
    /// Where the blobs of a sealed segment lie.
    Table,
    /// Live blobs that compaction has copied.
    Blobs,
    /// A snapshot.
    Snapshot,
}

impl Kind {
    /// The name of the file of this kind with this number.
    pub(crate) fn name(self, number: u64) -> String {
        let ending = match self {
            Kind::Log => "log",
            Kind::Table => "table",
            Kind::Blobs => "blobs",
            Kind::Snapshot => "snapshot",
        };
        format!("{number:012}.{ending}")
    }

    /// Reads a name.
    pub(crate) fn parse(name: &str) -> Option<(Kind, u64)> {
        let (number, _) = name.split_once('.')?;
        let number = number.parse().ok()?;
        [Kind::Log, Kind::Table, Kind::Blobs, Kind::Snapshot]
            .into_iter()
            .find(|kind| kind.name(number) == name)
            .map(|kind| (kind, number))
    }
}

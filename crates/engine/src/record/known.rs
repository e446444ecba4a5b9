//! What a newer program has written is told before any of it is applied.

use super::decode::{self, Kind, RareRecord, kind_of};
use crate::BEHAVIOUR_VERSION;
use crate::error::Error;

/// Whether this program can apply a record, by its kind, its layout, and the behaviour version that it begins.
///
/// # Errors
/// What is not known, in words: a newer program has written the record.
pub fn check_known(body: &[u8]) -> Result<(), String> {
    check(body).map_err(|error| match error {
        Error::Internal { reason } => reason,
        other => other.to_string(),
    })
}

fn check(body: &[u8]) -> Result<(), Error> {
    match kind_of(body)? {
        Kind::Rare => match decode::rare(body)? {
            RareRecord::Epoch { behaviour, .. } => check_behaviour(behaviour),
            _ => Ok(()),
        },
        Kind::Tick | Kind::Send | Kind::Receive | Kind::Settle | Kind::Extend => Ok(()),
    }
}

/// Whether this program knows the rules of a behaviour version.
///
/// # Errors
/// [`Error::Internal`] with both versions.
pub(crate) fn check_behaviour(behaviour: u16) -> Result<(), Error> {
    if behaviour <= BEHAVIOUR_VERSION {
        return Ok(());
    }
    let reason = format!(
        "the log follows behaviour version {behaviour}, this program knows up to {BEHAVIOUR_VERSION}"
    );
    Err(Error::Internal { reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use crate::command::RecordSink;

    struct Body(Vec<u8>);

    impl RecordSink for Body {
        fn body(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }

        fn blob(&mut self, _pieces: &[&[u8]]) {}
    }

    fn body(command: &Command<'_>) -> Vec<u8> {
        let mut body = Body(Vec::new());
        command.encode(&mut body);
        body.0
    }

    #[test]
    fn a_newer_epoch_and_unknown_kinds_and_layouts_are_told() {
        let epoch = |behaviour| body(&Command::Epoch { number: 7, behaviour });
        assert_eq!(check_known(&epoch(BEHAVIOUR_VERSION)), Ok(()));
        let newer = check_known(&epoch(BEHAVIOUR_VERSION + 1)).unwrap_err();
        assert!(newer.contains(&format!("behaviour version {}", BEHAVIOUR_VERSION + 1)), "{newer}");
        let mut tick = body(&Command::Tick);
        assert_eq!(check_known(&tick), Ok(()));
        tick[1] = 250;
        assert!(check_known(&tick).unwrap_err().contains("layout 250"));
        assert!(check_known(&[250, 1]).unwrap_err().contains("kind 250"));
        assert!(check_known(&[]).is_err());
    }
}

//! The present boot of the machine.

use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::process::Command;

use data_encoding::HEXLOWER_PERMISSIVE;
use sluice_replica::BootId;

/// File in which Linux tells a number of each boot, the same in all containers of the machine.
const OF_LINUX: &str = "/proc/sys/kernel/random/boot_id";

/// The present boot, as the system tells it. Where it tells none each start of the server counts as one, so
/// that nothing that was lost is overlooked.
pub(super) fn present() -> BootId {
    let told = if cfg!(target_os = "linux") { fs::read_to_string(OF_LINUX).ok() } else { of_sysctl() };
    told.as_deref().and_then(read).unwrap_or_else(|| {
        tracing::warn!("the system does not tell its boot: each start counts as one after a loss of power");
        let number = || RandomState::new().build_hasher().finish().to_le_bytes();
        let (low, high) = (number(), number());
        BootId(std::array::from_fn(|at| if at < 8 { low[at] } else { high[at - 8] }))
    })
}

/// The boot as macOS tells it.
fn of_sysctl() -> Option<String> {
    let told = Command::new("sysctl").args(["-n", "kern.bootsessionuuid"]).output().ok()?;
    String::from_utf8(told.stdout).ok()
}

/// A boot by its UUID (RFC 9562 §4).
fn read(text: &str) -> Option<BootId> {
    let digits: String = text.trim().chars().filter(|digit| *digit != '-').collect();
    let bytes = HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()?;
    bytes.try_into().ok().map(BootId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_is_read_from_its_uuid_and_from_nothing_else() {
        let boot = read("119deb54-3924-41a5-8064-29DA54CBF415\n").unwrap();
        assert_eq!(boot.0[..4], [0x11, 0x9d, 0xeb, 0x54]);
        for wrong in ["", "119deb54", "119deb54-3924-41a5-8064-29da54cbf41x"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(present(), present(), "the machine tells it");
    }
}

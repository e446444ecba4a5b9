//! Failures that pass without repair: no room on the disk, no file handles.

use std::io;

/// True for failures that pass: the disk is full, or there are no file handles left.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    is_full(error) || is_out_of_handles(error)
}

/// True when the error means that the disk is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// True when the process or the system has no file handles left.
pub(crate) fn is_out_of_handles(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    matches!(errno, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}

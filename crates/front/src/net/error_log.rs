//! Errors of the server in its log: of each code one line in a while, with how many more there were. So a
//! caller who repeats what fails does not fill the log.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderValue, Method};
use sluice_calls::CallError;
use tokio::time::Instant;

/// Time between two lines of one code.
const PAUSE: Duration = Duration::from_secs(10);

/// Recently logged errors, by code: there are as many as [`sluice_calls::codes::TABLE`] has.
#[derive(Debug, Default)]
pub(crate) struct ErrorLog(Mutex<HashMap<&'static str, Lately>>);

#[derive(Debug)]
struct Lately {
    logged_at: Instant,
    left_out: u64,
}

impl ErrorLog {
    /// Logs an error of a request, if somebody on the server's side has to know and was not just told.
    pub(crate) fn log(&self, error: &CallError, request_id: &HeaderValue, method: &Method, path: &str) {
        if error.is_ours()
            && let Some(left_out) = self.due(error.code())
        {
            tracing::error!(
                request_id = request_id.to_str().unwrap_or_default(),
                code = error.code(),
                left_out,
                "{method} {path}: {}",
                error.message()
            );
        }
    }

    /// The number of errors of this code that were not logged since its last line, if the next line is due.
    fn due(&self, code: &'static str) -> Option<u64> {
        let mut lately = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match lately.get_mut(code) {
            Some(lately) if now.duration_since(lately.logged_at) < PAUSE => {
                lately.left_out += 1;
                None
            }
            _ => {
                let before = lately.insert(code, Lately { logged_at: now, left_out: 0 });
                Some(before.map_or(0, |before| before.left_out))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_code_has_a_line_in_a_while_that_counts_the_others() {
        let log = ErrorLog::default();
        assert_eq!((log.due("disk_full"), log.due("internal")), (Some(0), Some(0)));
        assert!((0..1_000).all(|_| log.due("disk_full").is_none()));
        tokio::time::advance(PAUSE).await;
        assert_eq!((log.due("disk_full"), log.due("internal")), (Some(1_000), Some(0)));
    }
}

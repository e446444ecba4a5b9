//! An engine restored from a snapshot, which must answer each record as the one that it comes from.

use sluice_engine::{Engine, Outcome};

use super::{Driver, restore};

/// Records for which a restored engine is followed.
const RECORDS: u32 = 60;

#[derive(Default)]
pub(super) struct Shadow {
    engine: Option<Engine>,
    /// Records that are still to be compared.
    left: u32,
    out: Outcome,
}

impl Shadow {
    /// Restores a second engine from a snapshot of this one, unless one is being followed.
    pub(super) fn begin(&mut self, engine: &mut Engine) {
        if self.left > 0 {
            return;
        }
        engine.snapshot_abort();
        let digest = engine.digest();
        let mut bytes = Vec::new();
        engine.snapshot_begin();
        while !engine.snapshot_step(10_000, &mut bytes) {}
        let mut restored = restore(&bytes, 777);
        restored.watch_events(true);
        assert_eq!(restored.digest(), digest);
        (self.engine, self.left) = (Some(restored), RECORDS);
    }

    /// Applies the latest record to the second engine, and compares the outcomes.
    pub(super) fn follow(&mut self, driver: &Driver) {
        let Some(engine) = self.engine.as_mut().filter(|_| self.left > 0) else { return };
        let record = driver.log.last().unwrap();
        engine.apply(record.now_us, record.index, &record.body, &mut self.out);
        assert_eq!(self.out, driver.out, "record {} after a snapshot", record.index);
        self.left -= 1;
        if self.left == 0 {
            engine.recount().unwrap();
            assert_eq!(engine.digest(), driver.engine.digest());
        }
    }
}

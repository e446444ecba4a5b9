//! A permit is made by authorisation alone.

use sluice_calls::{CallName, Asker, Permit};

fn handler<'c>(asker: Asker<'c>, asked: CallName<'c>) -> Permit<'c> {
    Permit { asker, asked }
}

fn main() {}

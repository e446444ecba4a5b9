//! A permit is made by authorisation alone.

use sluice_calls::{Asked, Asker, Permit};

fn handler<'c>(asker: Asker<'c>, asked: Asked<'c>) -> Permit<'c> {
    Permit { asker, asked }
}

fn main() {}

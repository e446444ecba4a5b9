//! The types of the settings of pushes.

use sluice_push::address::Allowed;

use super::values::{Any, SettingValue};

impl SettingValue for Allowed {
    const PLACEHOLDER: &'static str = "ADDRESS/BITS,...";
    type Range = Any;

    fn read(text: &str, _: &Any) -> Result<Self, String> {
        Allowed::parse(text)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

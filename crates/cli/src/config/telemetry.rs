//! The types of the settings of telemetry.

use sluice_telemetry::Signals;
use sluice_telemetry::endpoint::{Endpoint, Headers};

use super::values::{Any, Between, SettingValue};

/// A part of a whole, in millionths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share(pub(crate) u32);

/// Digits of a percentage behind its point.
const DIGITS: usize = 4;

impl SettingValue for Share {
    const PLACEHOLDER: &'static str = "PERCENT";
    type Range = Between<u32>;

    fn read(text: &str, range: &Self::Range) -> Result<Self, String> {
        let expected = || "expected a percentage from 0% to 100%, such as 1% or 0.25%".to_owned();
        let number = text.strip_suffix('%').ok_or_else(expected)?;
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(part) || part.len() > DIGITS {
            return Err(expected());
        }
        let millionths: Option<u32> = format!("{whole}{part:0<DIGITS$}").parse().ok();
        millionths.filter(|ppm| (range.0..=range.1).contains(ppm)).map(Share).ok_or_else(expected)
    }

    fn show(&self) -> String {
        let (whole, part) = (self.0 / 10_000, self.0 % 10_000);
        let text = format!("{whole}.{part:0DIGITS$}");
        format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl SettingValue for Option<Endpoint> {
    const PLACEHOLDER: &'static str = "URL";
    type Range = Any;

    fn read(text: &str, _: &Any) -> Result<Self, String> {
        if text.is_empty() { Ok(None) } else { Endpoint::parse(text).map(Some) }
    }

    fn show(&self) -> String {
        self.as_ref().map_or_else(String::new, Endpoint::to_string)
    }
}

impl SettingValue for Headers {
    const PLACEHOLDER: &'static str = "FIELD=VALUE,...";
    const IS_SECRET: bool = true;
    type Range = Any;

    fn read(text: &str, _: &Any) -> Result<Self, String> {
        Headers::parse(text)
    }

    fn show(&self) -> String {
        Headers::show(self)
    }
}

impl SettingValue for Signals {
    const PLACEHOLDER: &'static str = "traces,metrics,logs";
    type Range = Any;

    fn read(text: &str, _: &Any) -> Result<Self, String> {
        let mut signals = Signals { traces: false, metrics: false, logs: false };
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "traces" => signals.traces = true,
                "metrics" => signals.metrics = true,
                "logs" => signals.logs = true,
                _ => return Err("expected some of traces, metrics and logs, with commas between".to_owned()),
            }
        }
        Ok(signals)
    }

    fn show(&self) -> String {
        let named = [("traces", self.traces), ("metrics", self.metrics), ("logs", self.logs)];
        let told = named.into_iter().filter(|(_, is_told)| *is_told).map(|(name, _)| name);
        told.collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_and_shown() {
        let read = |text: &str| Share::read(text, &Between(0, 1_000_000));
        for (text, ppm, shown) in [
            ("0%", 0, "0%"),
            ("1%", 10_000, "1%"),
            ("0.25%", 2_500, "0.25%"),
            ("0.0001%", 1, "0.0001%"),
            ("007.50%", 75_000, "7.5%"),
            ("100%", 1_000_000, "100%"),
        ] {
            assert_eq!(read(text), Ok(Share(ppm)), "{text}");
            assert_eq!(Share(ppm).show(), shown);
        }
        for text in
            ["", "1", "%", ".5%", "5.%", "-1%", "+1%", "101%", "100.0001%", "0.00001%", "1e2%", "99999999%"]
        {
            assert!(read(text).unwrap_err().starts_with("expected a percentage"), "{text}");
        }
    }

    #[test]
    fn signals_are_read_and_shown() {
        for (text, shown) in [("logs, traces", "traces,logs"), ("", ""), ("metrics,metrics", "metrics")] {
            assert_eq!(Signals::read(text, &Any).map(|signals| signals.show()).as_deref(), Ok(shown));
        }
        assert!(Signals::read("spans", &Any).is_err());
    }
}

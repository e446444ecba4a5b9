//! Parsers for the values of flags.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;
use std::time::Duration;

use sluice_engine::limit::{RATE_COUNT_MAX, RATE_PERIOD_MS_MAX};
use sluice_front::http::WEIGHT_MAX;
use sluice_units::{parse_duration, parse_size};

/// Parses a duration such as `30s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
}

/// Parses a size in bytes such as `64MiB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    parse_size(text)
}

/// Refuses an empty text, which is what an unset variable of a script becomes.
pub(crate) fn not_empty(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("it is empty: is a variable not set?".to_owned()) } else { Ok(text.to_owned()) }
}

/// Returns a parser for whole numbers in a range.
pub(crate) fn number<T>(
    range: impl RangeBounds<T> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Copy,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| match (range.start_bound(), range.end_bound()) {
            (Bound::Included(least), Bound::Included(most)) => {
                format!("expected a number from {least} to {most}")
            }
            (Bound::Included(least), _) => format!("expected a number, {least} or more"),
            _ => "expected a number".to_owned(),
        })
    }
}

/// Parses `QUEUE` or `QUEUE=WEIGHT`; without a weight it is 0.
pub(crate) fn queue_weight(text: &str) -> Result<(String, u16), String> {
    let Some((name, weight)) = text.split_once('=') else { return Ok((text.to_owned(), 0)) };
    match weight.parse() {
        Ok(weight) if (1..=WEIGHT_MAX).contains(&weight) => Ok((name.to_owned(), weight)),
        _ => Err(format!("{weight:?} is not a weight: expected QUEUE=WEIGHT with 1 to {WEIGHT_MAX}")),
    }
}

/// Parses `NAME=VALUE` or `NAME: VALUE`.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    let at = text.find(['=', ':']).filter(|at| *at > 0).ok_or("expected NAME=VALUE")?;
    Ok((text[..at].trim().to_owned(), text[at + 1..].trim_start().to_owned()))
}

/// Parses `COUNT/PERIOD[:BURST]`.
pub(crate) fn rate(text: &str) -> Result<sluice_client::Rate, String> {
    let expected = "expected COUNT/PERIOD[:BURST], such as 50/1s or 50/1s:10";
    let (count, rest) = text.split_once('/').ok_or(expected)?;
    let (period, burst) = match rest.split_once(':') {
        Some((period, burst)) => (period, Some(burst)),
        None => (rest, None),
    };
    let number = |what: &str, text: &str| match text.parse() {
        Ok(number) if (1..=RATE_COUNT_MAX).contains(&number) => Ok(number),
        _ => Err(format!("the {what} {text:?} is not a number from 1 to {RATE_COUNT_MAX}; {expected}")),
    };
    let period_ms = match parse_duration(period) {
        Ok(time) if (1..=u128::from(RATE_PERIOD_MS_MAX)).contains(&time.as_millis()) => {
            time.as_millis() as u64
        }
        _ => return Err(format!("the period {period:?} is not a duration from 1ms to 31d; {expected}")),
    };
    let burst = burst.map(|burst| number("burst", burst)).transpose()?;
    Ok(sluice_client::Rate { count: number("count", count)?, period_ms, burst })
}

/// Parses `KEY=WEIGHT`.
pub(crate) fn fair_weight(text: &str) -> Result<(String, u16), String> {
    let expected = "expected KEY=WEIGHT with 1 to 1000";
    let (key, weight) = text.rsplit_once('=').ok_or(expected)?;
    Ok((key.to_owned(), weight.parse().map_err(|_| expected)?))
}

/// Parses `none`, or `KIND[:BASE[:CAP[:JITTER%]]]`.
pub(crate) fn backoff(text: &str) -> Result<sluice_client::Backoff, String> {
    use sluice_client::BackoffKind;
    let expected = "expected KIND[:BASE[:CAP[:JITTER]]] with KIND one of none, fixed, linear, exponential, \
                    such as exponential:1s:10m:10%";
    let mut backoff = sluice_client::Backoff::default();
    let mut parts = text.split(':');
    backoff.kind = match parts.next() {
        Some("none") => BackoffKind::None,
        Some("fixed") => BackoffKind::Fixed,
        Some("linear") => BackoffKind::Linear,
        Some("exponential") => BackoffKind::Exponential,
        _ => return Err(expected.to_owned()),
    };
    let millis = |text: &str| parse_duration(text).map(|d| d.as_millis() as u64).map_err(|_| expected);
    if let Some(base) = parts.next() {
        backoff.base_ms = millis(base)?;
        backoff.cap_ms = backoff.cap_ms.max(backoff.base_ms);
    }
    if let Some(cap) = parts.next() {
        backoff.cap_ms = millis(cap)?;
    }
    if let Some(jitter) = parts.next() {
        backoff.jitter_percent = jitter.trim_end_matches('%').parse().map_err(|_| expected)?;
    }
    if parts.next().is_some() { Err(expected.to_owned()) } else { Ok(backoff) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_may_have_weights() {
        assert_eq!(queue_weight("a"), Ok(("a".to_owned(), 0)));
        assert_eq!(queue_weight("b=3"), Ok(("b".to_owned(), 3)));
        for bad in ["b=0", "b=", "b=x", "b=1001", "b=70000"] {
            assert!(queue_weight(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_are_told_their_range() {
        let parse = number(0u8..=9);
        assert_eq!(parse("9"), Ok(9));
        for bad in ["10", "high", "", "-1", "1.5"] {
            assert_eq!(parse(bad), Err("expected a number from 0 to 9".to_owned()), "{bad}");
        }
        assert_eq!(number(1u64..)("0"), Err("expected a number, 1 or more".to_owned()));
    }

    #[test]
    fn headers_come_with_equals_or_colon() {
        assert_eq!(header("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(header("traceparent: 00-1"), Ok(("traceparent".to_owned(), "00-1".to_owned())));
        assert!(header("a").is_err() && header("=b").is_err());
    }

    #[test]
    fn rates_are_a_count_in_a_period() {
        let plain = sluice_client::Rate { count: 50, period_ms: 60_000, burst: None };
        assert_eq!(rate("50/1m"), Ok(plain));
        assert_eq!(rate("50/1m:10"), Ok(sluice_client::Rate { burst: Some(10), ..plain }));
        for (bad, told) in [
            ("", "expected COUNT/PERIOD"),
            ("50", "expected COUNT/PERIOD"),
            ("x/1s", "the count \"x\" is not a number from 1 to 1000000"),
            ("0/1s", "the count \"0\""),
            ("50/1", "the period \"1\" is not a duration from 1ms to 31d"),
            ("50/32d", "the period \"32d\""),
            ("50/1s:x", "the burst \"x\""),
        ] {
            assert!(rate(bad).unwrap_err().contains(told), "{bad}");
        }
    }

    #[test]
    fn backoffs_are_read_part_by_part() {
        let full = backoff("linear:500ms:1m:20%").unwrap();
        assert_eq!((full.base_ms, full.cap_ms, full.jitter_percent), (500, 60_000, 20));
        assert_eq!(backoff("fixed:1h").unwrap().cap_ms, 3_600_000, "the cap is not below the base");
        for bad in ["", "often", "fixed:5", "fixed:1s:1s:1:1"] {
            assert!(backoff(bad).is_err(), "{bad}");
        }
    }
}

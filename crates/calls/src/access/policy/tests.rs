use super::*;
use crate::access::{Right, Target};
use crate::testing::caller;

const GOOD: &str = r#"
[[rule]]
name = "billing"
identities = ["billing", "spiffe://prod/billing-*"]
role = "consumer"
namespaces = ["shop"]
queues = ["invoices", "emails.*"]

[[rule]]
name = "all"
identities = ["*"]
role = "observer"

[[rate]]
identities = ["batch-*"]
requests_per_s = 100

[revoked]
serials = ["05:AB", "0102"]
"#;

fn mistakes(text: &str) -> Vec<String> {
    Policy::parse(text).unwrap_err().iter().map(ToString::to_string).collect()
}

/// The good file with one line replaced, and the mistake that it then has.
fn broken(line: &str, by: &str) -> String {
    assert!(GOOD.contains(line), "{line}");
    let found = mistakes(&GOOD.replacen(line, by, 1));
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

#[test]
fn a_file_gives_what_it_says() {
    let policy = Policy::parse(GOOD).unwrap();
    let rules = |name| policy.grants_of(name).map(|grant| grant.rule.to_string()).collect::<Vec<_>>();
    assert_eq!(rules("spiffe://prod/billing-7"), ["rule \"billing\" (consumer)", "rule \"all\" (observer)"]);
    assert_eq!(rules("else"), ["rule \"all\" (observer)"]);
    assert_eq!(policy.rate_of("batch-1"), Some(RequestRate { per_s: 100, burst: 100 }));
    assert_eq!(policy.rate_of("else"), None);
    assert!(policy.revokes("5ab") && policy.revokes("0102") && !policy.revokes("0103"));
    assert!(Policy::parse("").is_ok_and(|policy| !policy.has_rules()));
}

#[test]
fn namespaces_and_queues_may_be_left_out() {
    let caller = caller("role = 'producer'");
    assert!(caller.may(Right::Send, Target::Queue("default", "q")).is_ok());
    assert!(caller.may(Right::Send, Target::Queue("shop", "q")).is_err());
}

#[test]
fn keys_are_all_unless_the_rule_names_some_queues() {
    for (rule, may) in [
        ("role = 'operator'", true),
        ("role = 'operator'\nqueues = ['*']", true),
        ("role = 'operator'\nqueues = ['mail']", false),
        ("role = 'operator'\nqueues = ['mail']\nkeys = ['a/*']", true),
        ("role = 'operator'\nkeys = ['b/*']", false),
    ] {
        let caller = caller(rule);
        assert_eq!(caller.may(Right::Operate, Target::Key("default", "a/1")).is_ok(), may, "{rule}");
    }
}

/// Checks what is told of the good file with one text replaced: text, what stands in its place, and how the
/// mistake begins.
fn assert_told(cases: &[(&str, &str, &str)]) {
    for (line, by, told) in cases {
        let found = broken(line, by);
        assert!(found.starts_with(told), "{by}\n  expected {told}\n  got      {found}");
    }
}

#[test]
fn a_mistake_in_each_field_of_a_rule_is_named_with_its_line() {
    assert_told(&[
        ("name = \"billing\"", "name = 7", "line 3: rule 1: name: expected a string, got 7"),
        (
            "name = \"billing\"",
            "name = \"\"",
            "line 3: rule 1: name: expected 1 to 128 bytes without control characters, got 0 bytes: \"\"",
        ),
        ("name = \"billing\"\n", "", "line 2: rule 1: name is missing"),
        (
            "name = \"all\"",
            "name = \"billing\"",
            "line 10: rule 2: name: \"billing\" is the name of a rule before",
        ),
        (
            "identities = [\"*\"]",
            "identities = []",
            "line 11: rule 2: identities: expected a list of 1 to 1000 strings, got []",
        ),
        (
            "identities = [\"*\"]",
            "identities = \"*\"",
            "line 11: rule 2: identities: expected a list of 1 to 1000 strings, got \"*\"",
        ),
        ("identities = [\"*\"]\n", "", "line 9: rule 2: identities is missing"),
        (
            "role = \"consumer\"",
            "role = \"boss\"",
            "line 5: rule 1: role: \"boss\" is not a role: expected admin,",
        ),
        (
            "namespaces = [\"shop\"]",
            "namespaces = [\"a b\"]",
            "line 6: rule 1: namespaces: \"a b\" has the character",
        ),
        (
            "namespaces = [\"shop\"]",
            "namespaces = [1]",
            "line 6: rule 1: namespaces: expected a list of 1 to 1000 strings, got 1 in it",
        ),
        ("\"emails.*\"]", "\"\"]", "line 7: rule 1: queues: expected a pattern of 1 to"),
        (
            "\"emails.*\"]",
            "\"a/b\"]",
            "line 7: rule 1: queues: \"a/b\" has the character '/', which no queue and no namespace has in its name",
        ),
        ("queues =", "queue =", "line 7: rule 1: \"queue\" is not a field: expected name, identities"),
    ]);
}

#[test]
fn a_mistake_in_rates_and_revocations_is_named_with_its_line() {
    assert_told(&[
        (
            "requests_per_s = 100",
            "requests_per_s = 0",
            "line 16: rate 1: requests_per_s: expected a number from 1 to 10000000, got 0",
        ),
        (
            "requests_per_s = 100",
            "requests_per_s = -1",
            "line 16: rate 1: requests_per_s: expected a number from 1 to 10000000, got -1",
        ),
        (
            "requests_per_s = 100",
            "requests_per_s = \"5\"",
            "line 16: rate 1: requests_per_s: expected a number from 1 to 10000000, got \"5\"",
        ),
        ("requests_per_s = 100", "burst = 5", "line 14: rate 1: requests_per_s is missing"),
        (
            "requests_per_s = 100",
            "requests_per_s = 100\nburst = 'x'",
            "line 17: rate 1: burst: expected a number from 1 to 10000000, got 'x'",
        ),
        ("\"0102\"", "\"xyz\"", "line 19: revoked: serials: \"xyz\" is not a serial number"),
        ("\"0102\"", "7", "line 19: revoked: serials: expected strings, got 7"),
        ("\"0102\"", "\"0\"", "line 19: revoked: serials: \"0\" is no certificate's serial number"),
        ("serials =", "serial =", "line 19: revoked: \"serial\" is not a field: expected serials"),
        ("[[rate]]", "[[rates]]", "line 14: \"rates\" is not a field: expected rule, rate, revoked"),
        ("[revoked]", "[[revoked]]", "line 18: revoked: expected a table [revoked]"),
    ]);
}

#[test]
fn all_mistakes_are_told_at_once_in_the_order_of_lines() {
    let found = mistakes("[[rule]]\nname = 1\nrole = 'x'\nidentities = ['a']\n[[rate]]\n");
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(
        found[0].starts_with("line 2") && found[1].starts_with("line 3") && found[2].starts_with("line 5")
    );
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    let found = mistakes("[[rule]]\nname = \n");
    assert!(found[0].starts_with("line 2: not valid TOML"), "{found:?}");
    assert!(mistakes(&" ".repeat(POLICY_BYTES_MAX + 1))[0].contains("bytes, more than"));
}

#[test]
fn noise_never_panics() {
    let mut random = crate::testing::Random(23);
    for _ in 0..5_000 {
        let mut text = GOOD.as_bytes().to_vec();
        random.mutate(&mut text);
        if let Ok(text) = std::str::from_utf8(&text)
            && let Err(mistakes) = Policy::parse(text)
        {
            let lines = 1 + text.matches('\n').count();
            assert!(mistakes.iter().all(|mistake| (1..=lines).contains(&mistake.line)), "{mistakes:?}");
        }
    }
}

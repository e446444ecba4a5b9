//! The page of errors tells the truth about every code.

use std::collections::BTreeMap;

use sluice_calls::codes::TABLE;
use sluice_engine::Error;

const PAGE: &str = include_str!("../../../docs/errors.md");

/// HTTP status and exit code of each code that the page has a row for, as text.
fn rows() -> BTreeMap<String, (String, String)> {
    let mut rows = BTreeMap::new();
    for line in PAGE.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split(" | ").collect();
        let code = cells[0].trim_start_matches("| ").trim_matches('`').to_owned();
        let known = rows.insert(code.clone(), (cells[1].to_owned(), cells[2].to_owned()));
        assert!(known.is_none(), "{code} has two rows");
    }
    rows
}

#[test]
fn every_code_has_a_row_with_its_status_and_exit_code() {
    let mut rows = rows();
    for code in TABLE {
        let row = rows.remove(code.code);
        let (http, exit) = row.unwrap_or_else(|| panic!("docs/errors.md has no row for {}", code.code));
        assert_eq!((http, exit), (code.http.to_string(), code.exit.to_string()), "{}", code.code);
    }
    assert!(rows.is_empty(), "docs/errors.md has rows for codes that do not exist: {rows:?}");
}

#[test]
fn the_engine_has_no_code_that_the_page_omits() {
    let rows = rows();
    for code in Error::CODES {
        assert!(rows.contains_key(*code), "docs/errors.md has no row for {code}");
    }
}

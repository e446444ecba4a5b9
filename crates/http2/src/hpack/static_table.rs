//! The fields that everybody knows (RFC 7541 §2.3.1, Appendix A), with what an encoder does with values that
//! are not there, and a perfect hash of their names.

/// Cookies below this could be guessed, one byte after the other, by what they compress to (§7.1.3): they are
/// never indexed.
const GUESSABLE_COOKIE_BYTES: usize = 20;

/// The way in which an encoder writes a field that is in no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Indexing {
    /// The value comes again: it goes into the dynamic table at once.
    AtOnce,
    /// The value comes again rarely: in the dynamic table it would take the place of others.
    Varying,
    /// The value is a secret: no table on the way may keep it (§7.1.3).
    Never,
}

/// A field of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) name: &'static [u8],
    pub(super) value: &'static [u8],
    pub(super) indexing: Indexing,
}

impl Row {
    /// Indexing of a field with the name of this row and this value.
    pub(super) fn indexing_of(&self, value: &[u8]) -> Indexing {
        if self.name == b"cookie" && value.len() < GUESSABLE_COOKIE_BYTES {
            Indexing::Never
        } else {
            self.indexing
        }
    }
}

/// Number of fields of the static table; indexes of the dynamic table begin behind it (§2.3.3).
pub(super) const ROWS: usize = 61;

const fn row(name: &'static str, value: &'static str, indexing: Indexing) -> Row {
    Row { name: name.as_bytes(), value: value.as_bytes(), indexing }
}

static TABLE: [Row; ROWS] = TABLE_ROWS;

const TABLE_ROWS: [Row; ROWS] = {
    use Indexing::{AtOnce, Never, Varying};
    [
        row(":authority", "", AtOnce),
        row(":method", "GET", AtOnce),
        row(":method", "POST", AtOnce),
        row(":path", "/", Varying),
        row(":path", "/index.html", Varying),
        row(":scheme", "http", AtOnce),
        row(":scheme", "https", AtOnce),
        row(":status", "200", AtOnce),
        row(":status", "204", AtOnce),
        row(":status", "206", AtOnce),
        row(":status", "304", AtOnce),
        row(":status", "400", AtOnce),
        row(":status", "404", AtOnce),
        row(":status", "500", AtOnce),
        row("accept-charset", "", AtOnce),
        row("accept-encoding", "gzip, deflate", AtOnce),
        row("accept-language", "", AtOnce),
        row("accept-ranges", "", AtOnce),
        row("accept", "", AtOnce),
        row("access-control-allow-origin", "", AtOnce),
        row("age", "", Varying),
        row("allow", "", AtOnce),
        row("authorization", "", Never),
        row("cache-control", "", AtOnce),
        row("content-disposition", "", AtOnce),
        row("content-encoding", "", AtOnce),
        row("content-language", "", AtOnce),
        row("content-length", "", Varying),
        row("content-location", "", Varying),
        row("content-range", "", Varying),
        row("content-type", "", AtOnce),
        row("cookie", "", AtOnce),
        row("date", "", Varying),
        row("etag", "", Varying),
        row("expect", "", AtOnce),
        row("expires", "", Varying),
        row("from", "", AtOnce),
        row("host", "", AtOnce),
        row("if-match", "", Varying),
        row("if-modified-since", "", Varying),
        row("if-none-match", "", Varying),
        row("if-range", "", Varying),
        row("if-unmodified-since", "", Varying),
        row("last-modified", "", Varying),
        row("link", "", Varying),
        row("location", "", Varying),
        row("max-forwards", "", AtOnce),
        row("proxy-authenticate", "", AtOnce),
        row("proxy-authorization", "", Never),
        row("range", "", Varying),
        row("referer", "", Varying),
        row("refresh", "", AtOnce),
        row("retry-after", "", Varying),
        row("server", "", AtOnce),
        row("set-cookie", "", Never),
        row("strict-transport-security", "", AtOnce),
        row("transfer-encoding", "", AtOnce),
        row("user-agent", "", AtOnce),
        row("vary", "", AtOnce),
        row("via", "", AtOnce),
        row("www-authenticate", "", AtOnce),
    ]
};

/// The statuses that the table has, and the index of the first of them.
pub(super) const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
pub(super) const FIRST_STATUS: usize = 8;

/// The field at an index (from 1).
pub(super) fn get(index: usize) -> Option<&'static Row> {
    TABLE.get(index.checked_sub(1)?)
}

/// The first field of this name, and its index.
pub(super) fn find_name(name: &[u8]) -> Option<(usize, &'static Row)> {
    let index = usize::from(INDEXES[slot(name, MULTIPLIER)?]);
    get(index).filter(|row| row.name == name).map(|row| (index, row))
}

/// The index of the field of this name and this value; `first` is the index of the first field of the name.
pub(super) fn find_value(first: usize, value: &[u8]) -> Option<usize> {
    let rows = &TABLE[first - 1..];
    let same_name = rows.iter().take_while(|row| row.name == rows[0].name);
    same_name.zip(first..).find(|(row, _)| row.value == value).map(|(_, index)| index)
}

const SLOTS: usize = 256;

/// Index of the name whose slot it is; 0 where there is none.
static INDEXES: [u8; SLOTS] = indexes(MULTIPLIER);

/// With this no two names have the same slot.
const MULTIPLIER: u32 = multiplier();

/// Length, first and last byte tell all names of the table apart; a multiplication spreads them.
const fn slot(name: &[u8], multiplier: u32) -> Option<usize> {
    let [first, .., last] = name else { return None };
    let key = (*first as u32) << 16 | (*last as u32) << 8 | (name.len() as u32 & 0xff);
    Some((key.wrapping_mul(multiplier) >> 24) as usize)
}

const fn indexes(multiplier: u32) -> [u8; SLOTS] {
    let mut indexes = [0; SLOTS];
    // Backwards, so that of several fields with one name the first stays.
    let mut index = ROWS;
    while index > 0 {
        if let Some(slot) = slot(TABLE_ROWS[index - 1].name, multiplier) {
            indexes[slot] = index as u8;
        }
        index -= 1;
    }
    indexes
}

const fn multiplier() -> u32 {
    let mut multiplier = 1;
    while !tells_apart(multiplier) {
        multiplier = multiplier.wrapping_add(0x9e37_79b8);
    }
    multiplier
}

const fn tells_apart(multiplier: u32) -> bool {
    let mut used = [false; SLOTS];
    let mut index = 0;
    while index < ROWS {
        // Fields of one name are neighbours, and share the first one's slot.
        if index == 0 || !same(TABLE_ROWS[index].name, TABLE_ROWS[index - 1].name) {
            let Some(slot) = slot(TABLE_ROWS[index].name, multiplier) else { return false };
            if used[slot] {
                return false;
            }
            used[slot] = true;
        }
        index += 1;
    }
    true
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_name_and_by_value() {
        for (index, row) in (1..).zip(&TABLE) {
            let (first, found) = find_name(row.name).expect("a name of the table");
            assert!(first <= index && found.name == row.name);
            assert_eq!(find_value(first, row.value), Some(index));
            assert_eq!(find_value(first, b"something else"), None);
        }
        assert_eq!(find_name(b":status").map(|(first, _)| first), Some(8), "the first of them");
    }

    #[test]
    fn statuses_stand_in_their_order() {
        for (index, status) in (FIRST_STATUS..).zip(STATUSES) {
            assert_eq!(get(index).map(|row| row.value), Some(status.to_string().as_bytes()));
        }
    }

    #[test]
    fn other_names_are_not_found() {
        for name in ["", "a", "x-request-id", ":statut", "Date", "content-typo", &"a".repeat(300)] {
            assert!(find_name(name.as_bytes()).is_none(), "{name}");
        }
    }

    #[test]
    fn indexes_end_where_the_table_does() {
        assert!(get(0).is_none());
        assert_eq!(get(61).map(|row| row.name), Some(&b"www-authenticate"[..]));
        assert!(get(62).is_none());
    }
}

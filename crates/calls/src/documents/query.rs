//! Queries: the documents whose JSON matches a filter, by key or sorted by what is in them.
//!
//! A query looks at the documents by key, a part at a time: at those that an index finds, if one serves its
//! filter, or at all of them. By key an answer comes after a bounded number of them, with the place at which
//! the next one goes on. A sorted query has to look at all of them for each page, of which it keeps the
//! first; where these are too many, it is refused.

mod cursor;
mod lookup;
mod page;
mod plan;
mod scan;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_filter::{Filter, Pointer};

use self::cursor::Place;
use self::lookup::look_up;
use self::page::Page;
use self::plan::{Plan, SortBy};
use self::scan::{Most, Part, Scan};
use super::{Document, example};
use crate::access::Right;
use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::fault::{Fault, Read};
use crate::payload::JsonObject;
use crate::permit::Permit;
use crate::value::{PageSize, given, page_size};

/// Most values to sort by.
const SORT_MAX: usize = 8;
/// Longest pointer of a value to sort by, in bytes.
const SORT_POINTER_BYTES_MAX: usize = 256;
/// The bounds of a page of a query by key.
const BY_KEY: Most = Most { documents: 10_000, bytes: 16 << 20, passed: 100_000 };
/// The bounds of a sorted query.
const SORTED: Most = Most { documents: 100_000, bytes: 128 << 20, passed: 1_000_000 };

/// A search for documents by what their JSON contains.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "DocumentQueryRequest")]
#[schemars(example = json!({
    "where": {"/state": "paid", "/total": {"ge": 100}}, "sort": [{"pointer": "/total", "descending": true}],
}))]
pub struct Query {
    /// Filter that the content matches; default: all documents that are JSON.
    r#where: Option<JsonObject>,
    /// Only keys that begin with this.
    prefix: Option<String>,
    /// Values to sort by, the first one first: up to 8; default: by key.
    sort: Option<Vec<Sort>>,
    /// `next` of the page before.
    after: Option<String>,
    /// Most documents of the page.
    limit: Option<PageSize>,
    /// False: the documents come without content, content type and attributes; default true.
    content: Option<bool>,
}

/// A value to sort by.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "DocumentSort")]
pub struct Sort {
    /// JSON pointer (RFC 6901) of the value; documents without one come first.
    #[schemars(required)]
    pointer: Option<String>,
    /// True: from the last to the first.
    descending: Option<bool>,
}

/// Documents that match, in the order of the query.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "DocumentQueryAnswer")]
#[schemars(example = json!({"documents": [example()], "scanned": 17, "index": "state"}))]
pub struct Found {
    /// The documents. There may be few of them, even none, and a next page.
    documents: Vec<Document>,
    /// Number of documents that were looked at.
    scanned: u64,
    /// Name of the index that has found them; absent: all documents were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<String>,
    /// Place at which the next page begins; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Sort {
    fn read(&self) -> Read<SortBy> {
        let missing = || Fault::missing("pointer", "a value is found by its pointer, such as /total");
        let pointer = self.pointer.as_deref().ok_or_else(missing)?;
        if pointer.len() > SORT_POINTER_BYTES_MAX {
            let reason = format!("expected at most {SORT_POINTER_BYTES_MAX} bytes, got {}", pointer.len());
            return Err(Fault::invalid(reason).inside("pointer"));
        }
        let wrong = || Fault::invalid("expected a JSON pointer, such as /total").inside("pointer");
        let pointer = Pointer::parse(pointer).ok_or_else(wrong)?;
        Ok(SortBy { pointer, is_descending: self.descending.unwrap_or_default() })
    }
}

impl Query {
    /// The plan of a call that is made at this time, in milliseconds since the Unix epoch.
    fn plan(&self, now_ms: u64) -> Read<Plan> {
        let filter = self.r#where.as_ref().map(|text| Filter::parse(&text.0)).transpose();
        let filter = filter.map_err(|error| Box::<Fault>::from(error).inside("where"))?;
        let sort = self.sort.as_deref().unwrap_or_default();
        if sort.len() > SORT_MAX {
            let reason = format!("{} values are too many: use at most {SORT_MAX}", sort.len());
            return Err(Fault::invalid(reason).inside("sort"));
        }
        let each = |(at, one): (usize, &Sort)| one.read().map_err(|fault| fault.at(at).inside("sort"));
        Ok(Plan {
            filter,
            sort: sort.iter().enumerate().map(each).collect::<Read<_>>()?,
            has_contents: self.content.unwrap_or(true),
            now_ms,
        })
    }
}

impl Unary for Query {
    type Answer = Found;
    const BODY: Body = Body::Optional;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Found>, CallError> {
        let plan = Arc::new(self.plan(permit.node().clock().now_ms())?);
        let place = given(self.after.as_deref()).map(|text| Place::read(text, &plan)).transpose();
        let place = place.map_err(|fault| fault.inside("after"))?;
        let prefix = self.prefix.as_deref().unwrap_or_default();
        let (key, rank) = match place {
            Some(Place::Key(key) | Place::Hidden(key)) => (Some(key), None),
            Some(Place::Rank(rank)) => (None, Some(rank)),
            None => (None, None),
        };
        let page = Page::new(page_size(self.limit), rank);
        let most = if plan.sort.is_empty() { BY_KEY } else { SORTED };
        let lookup = look_up(permit, &plan, prefix, key.as_deref()).await?;
        let index = lookup.as_ref().map(|lookup| lookup.index.clone());
        let scan = Scan::new(permit, prefix, key, most)?;
        let scan = match lookup {
            Some(lookup) => scan.of(lookup.documents),
            None => scan,
        };
        let (documents, scanned, next) = match plan.sort.is_empty() {
            true => by_key(permit, &plan, scan, page).await?,
            false => sorted(&plan, scan, page).await?,
        };
        let next = next.map(|place| place.text(&plan)).transpose()?;
        Ok(Found { documents, scanned: scanned as u64, index, next }.into())
    }
}

/// Documents, the number of those that were looked at, and the place at which it goes on.
type Answer = (Vec<Document>, usize, Option<Place>);

/// The next documents by key.
async fn by_key(
    permit: &Permit<'_>,
    plan: &Arc<Plan>,
    mut scan: Scan<'_>,
    mut page: Page,
) -> Result<Answer, CallError> {
    let mut scanned = 0;
    let place = |key: String| match permit.may_key(Right::Read, &key) {
        true => Place::Key(key),
        false => Place::Hidden(key),
    };
    let mut before = String::new();
    loop {
        let part = match scan.next(page.bytes()).await? {
            Part::Documents(part) => part,
            Part::End => return Ok((page.into_documents().0, scanned, None)),
            Part::Enough => {
                let next = scan.place().map(|key| place(key.to_owned()));
                return Ok((page.into_documents().0, scanned, next));
            }
        };
        let keys: Vec<String> = part.iter().map(|(view, _)| view.key.clone()).collect();
        for one in plan.matching(part).await? {
            let at = one.at;
            if !page.add(one) {
                let last = at.checked_sub(1).map_or(before, |at| keys[at].clone());
                return Ok((page.into_documents().0, scanned + at, Some(place(last))));
            }
        }
        scanned += keys.len();
        before = keys.into_iter().next_back().unwrap_or(before);
    }
}

/// The first documents of all in the order of the query.
async fn sorted(plan: &Arc<Plan>, mut scan: Scan<'_>, mut page: Page) -> Result<Answer, CallError> {
    loop {
        match scan.next(page.bytes()).await? {
            Part::Documents(part) => {
                for one in plan.matching(part).await? {
                    page.add(one);
                }
            }
            Part::Enough => return Err(too_costly().into()),
            Part::End => {
                let (documents, last) = page.into_documents();
                return Ok((documents, scan.documents(), last.map(Place::Rank)));
            }
        }
    }
}

#[cold]
fn too_costly() -> Box<Fault> {
    let Most { documents, bytes, .. } = SORTED;
    let reason = format!(
        "a sorted query looks at {documents} documents and {bytes} bytes at most, and there are more: narrow \
         the prefix, or leave out sort and read page by page"
    );
    Fault::new("query_too_costly", reason)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::documents::Put;
    use crate::operation::Operation;
    use crate::payload::Text;
    use crate::testing::{Open, caller};

    async fn put(server: &Open, key: &str, content: &str) {
        let put = Put { content: Some(Text::from(content)), ..Put::default() };
        put.run(&server.permit(Operation::DocumentPut, key)).await.unwrap();
    }

    async fn found(server: &Open, query: &Query) -> Found {
        query.clone().run(&server.permit(Operation::DocumentQuery, "")).await.unwrap().answer
    }

    /// The page of a query that comes next.
    pub(crate) fn behind(query: &Query, after: Option<String>) -> Query {
        Query { after, ..query.clone() }
    }

    pub(crate) fn query(filter: &str, sort: &[(&str, bool)], limit: u64) -> Query {
        let sort = sort.iter().map(|(pointer, descending)| Sort {
            pointer: Some((*pointer).to_owned()),
            descending: Some(*descending),
        });
        Query {
            r#where: Some(JsonObject(filter.to_owned())),
            sort: Some(sort.collect()),
            limit: Some(PageSize::clamped(limit)),
            ..Query::default()
        }
    }

    fn keys(found: &Found) -> Vec<&str> {
        found.documents.iter().map(|document| document.key.as_str()).collect()
    }

    /// The keys of all pages, and how many documents were looked at.
    async fn all(server: &Open, mut query: Query) -> (String, u64) {
        let (mut all, mut scanned) = (String::new(), 0);
        loop {
            let page = found(server, &query).await;
            all.push_str(&keys(&page).concat());
            all.push('.');
            scanned += page.scanned;
            query.after = page.next;
            if query.after.is_none() {
                return (all, scanned);
            }
        }
    }

    #[tokio::test]
    async fn pages_follow_each_other_by_key_and_by_values() {
        let server = Open::new();
        for (key, n) in [("a", "2"), ("b", "1"), ("c", "2"), ("d", "3"), ("e", "1"), ("f", "none")] {
            put(&server, key, &format!("{{\"n\":{n}}}")).await;
        }
        let some = r#"{"/n": {"le": 2}}"#;
        assert_eq!(all(&server, query(some, &[], 2)).await, ("ab.ce.".to_owned(), 6));
        assert_eq!(all(&server, query(some, &[], 1)).await, ("a.b.c.e.".to_owned(), 6));
        assert_eq!(all(&server, query("{}", &[("/n", false)], 2)).await, ("be.ac.d.".to_owned(), 18));
        assert_eq!(all(&server, query("{}", &[("/n", true)], 3)).await, ("dac.be.".to_owned(), 12));
        let two = [("/none", true), ("/n", false)];
        assert_eq!(all(&server, query(some, &two, 100)).await, ("beac.".to_owned(), 6));
    }

    #[tokio::test]
    async fn a_call_ends_at_its_bounds_and_the_next_one_goes_on_there() {
        let server = Open::new();
        let keys: Vec<String> = (0..700).map(|at| format!("{}/{at}", ["a", "b", "c"][at / 300])).collect();
        for key in &keys {
            put(&server, key, "{}").await;
        }
        let caller = caller("role = 'observer'\nkeys = ['b/*']");
        let permit = server.permit(Operation::DocumentQuery, "").as_caller(&caller);
        let plan = Arc::new(Query::default().plan(0).unwrap());
        let most = Most { documents: 150, bytes: usize::MAX, passed: 10 };
        let (mut read, mut calls, mut hidden, mut after) = (Vec::new(), 0, 0, None);
        loop {
            let scan = Scan::new(&permit, "", after, most).unwrap();
            let (found, scanned, next) = by_key(&permit, &plan, scan, Page::new(1_000, None)).await.unwrap();
            assert_eq!(found.len(), scanned);
            read.extend(found.into_iter().map(|document| document.key));
            calls += 1;
            after = match next {
                Some(Place::Key(key)) => Some(key),
                Some(Place::Hidden(key)) => {
                    hidden += 1;
                    assert!(!key.starts_with("b/"), "{key}");
                    Some(key)
                }
                _ => break,
            };
        }
        let mut expected: Vec<&String> = keys.iter().filter(|key| key.starts_with("b/")).collect();
        expected.sort();
        assert_eq!(read.iter().collect::<Vec<_>>(), expected);
        assert!(calls > 2 && hidden > 0, "{calls} {hidden}");
        let scan = Scan::new(&permit, "", None, most).unwrap();
        let refused = sorted(&plan, scan, Page::new(1, None)).await.unwrap_err();
        assert_eq!(refused.code(), "query_too_costly");
    }

    #[tokio::test]
    async fn a_place_that_others_must_not_see_is_sealed() {
        let plan = query("{}", &[], 1).plan(0).unwrap();
        let place = Place::Hidden("secret/1".to_owned());
        let text = place.text(&plan).unwrap();
        assert_eq!(Place::read(&text, &plan).unwrap(), place);
        let open = String::from_utf8(data_encoding::BASE64URL_NOPAD.decode(text.as_bytes()).unwrap());
        assert!(!open.unwrap().contains("secret"));
        let forged = Place::Key("k".to_owned()).text(&plan).unwrap().replace('e', "f");
        for wrong in [&text[1..], "", "!", &forged] {
            assert_eq!(Place::read(wrong, &plan).unwrap_err().code, "invalid_argument", "{wrong}");
        }
        let sorted = query("{}", &[("/n", false)], 1).plan(0).unwrap();
        assert!(Place::read(&text, &sorted).unwrap_err().reason.contains("another sort"));
    }
}

//! Settling and extending: items that are refused one by one, and the order of the results.

use sluice_engine::Error;
use sluice_engine::id::Receipt;

/// Items that were refused before the node saw them, with their place in the request.
pub(crate) type Refused = Vec<(usize, Error)>;
/// What is made of the receipts that can be read, and those that cannot.
pub(crate) type Parsed<T> = (Vec<T>, Refused);

/// Results in the order of the request: those of the node, and between them those refused before.
pub(crate) fn in_order(done: Vec<Result<(), Error>>, refused: Refused) -> Vec<Result<(), Error>> {
    if refused.is_empty() {
        return done;
    }
    let mut rest = done.into_iter();
    let mut merged = Vec::with_capacity(rest.len() + refused.len());
    for (at, error) in refused {
        merged.extend(rest.by_ref().take(at - merged.len()));
        merged.push(Err(error));
    }
    merged.extend(rest);
    merged
}

/// Makes an item of each receipt that can be read, of its place and itself; the others are refused at theirs.
pub(crate) fn parse_receipts<'s, T>(
    texts: impl Iterator<Item = &'s str>,
    item: impl Fn(usize, Receipt) -> T,
) -> Parsed<T> {
    let mut good = Vec::with_capacity(texts.size_hint().0);
    let mut refused = Vec::new();
    for (at, text) in texts.enumerate() {
        match text.parse::<Receipt>() {
            Ok(receipt) => good.push(item(at, receipt)),
            Err(error) => refused.push((at, error)),
        }
    }
    (good, refused)
}

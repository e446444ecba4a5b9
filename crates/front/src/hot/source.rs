//! A request as its protocol has it, read from front to back by the decoders of the hot calls.

use serde::de::DeserializeOwned;
use sluice_calls::fault::{Fault, Read};
use sluice_calls::transactions::Kept;

use super::content::{Content, Names, Text};

/// A reader of one request. Each method reads the value that comes next.
///
/// Fields have the names that they have in JSON. Faults come with the place inside that value.
pub(crate) trait Source<'a>: Sized + Send {
    /// Reads an object whose fields are among `allowed`; `field` reads the value of the one that it is given.
    fn object(
        &mut self,
        allowed: &'static [&'static str],
        field: impl FnMut(&mut Self, &'static str) -> Read<()>,
    ) -> Read<()>;

    /// Reads an object with any fields; `entry` reads the value of the one that it is given.
    fn entries(&mut self, entry: impl FnMut(&mut Self, Text<'a>) -> Read<()>) -> Read<()>;

    /// Reads a list; `item` reads the item at the index that it is given.
    fn array(&mut self, item: impl FnMut(&mut Self, usize) -> Read<()>) -> Read<()>;

    /// Reads a text.
    fn string(&mut self) -> Read<Text<'a>>;

    /// Reads octets: the field whose name ends with `_base64`.
    fn octets(&mut self) -> Read<Content<'a>>;

    /// Reads the field `name`, one of `names`, of which one may be given.
    fn content(&mut self, place: &mut Option<Content<'a>>, names: Names, name: &str) -> Read<()> {
        if place.is_some() {
            return Err(Fault::conflict(names.text, names.base64));
        }
        *place = Some(if name == names.text { Content::Text(self.string()?) } else { self.octets()? });
        Ok(())
    }

    /// Reads an integer from `min` to `max`.
    fn integer(&mut self, min: u64, max: u64) -> Read<u64>;

    /// Reads a truth value.
    fn boolean(&mut self) -> Read<bool>;

    /// Reads a value of a type that knows how it is read.
    fn value<T: DeserializeOwned>(&mut self) -> Read<T>;

    /// The form of the value that comes next, where it may be a text or an object.
    fn form(&mut self) -> Read<Form>;

    /// The fault of a value that is not of the type `expected`; tells what stands there.
    fn wrong_type(&mut self, expected: &str) -> Box<Fault>;

    /// True if nothing comes: the request has no body.
    fn is_blank(&mut self) -> bool;

    /// The whole request.
    fn whole(&self) -> Kept<'a>;

    /// A source of the same protocol, of another request.
    type Again<'r>: Source<'r>;

    /// Reads the operations of a request that was kept.
    fn again<'r>(kept: Kept<'r>) -> Read<Self::Again<'r>>;

    /// The texts read so far that held escapes.
    fn scratch(&self) -> &str;

    /// Ends the request: nothing may follow. Gives the scratch that texts refer to.
    fn finish(self) -> Read<String>;
}

/// The form of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// A text.
    Text,
    /// An object.
    Object,
    /// Neither.
    Other,
}

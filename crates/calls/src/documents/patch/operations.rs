//! Operations of a JSON patch (RFC 6902), one after the other.

use json_patch::{PatchErrorKind, PatchOperation, jsonptr, patch_unsafe};
use serde_json::Value;
use sluice_engine::limits::DOCUMENT_BYTES_MAX;

use super::content::{DEPTH_MAX, depth, memory};
use super::decimal::is_equal;
use crate::fault::{Fault, Read, clip};

/// Most bytes that operations may copy together.
const COPIED_BYTES_MAX: usize = DOCUMENT_BYTES_MAX;

/// Does the operations of a patch, in order.
///
/// # Errors
/// `patch_failed`; `invalid_argument`: it copies or nests too much.
pub(super) fn operate(operations: &[PatchOperation], content: &mut Value) -> Read<()> {
    let mut copied = 0;
    for (at, operation) in operations.iter().enumerate() {
        copied += copied_bytes(operation, content);
        if copied > COPIED_BYTES_MAX {
            let reason = format!("the patch copies more than {COPIED_BYTES_MAX} bytes");
            return Err(Fault::invalid(reason).at(at));
        }
        if depth_after(operation, content) > DEPTH_MAX {
            let reason = format!("the patch nests more than {DEPTH_MAX} lists and objects");
            return Err(Fault::invalid(reason).at(at));
        }
        let done = match operation {
            PatchOperation::Test(test) => expect(content.pointer(test.path.as_str()), &test.value),
            PatchOperation::Add(_)
            | PatchOperation::Remove(_)
            | PatchOperation::Replace(_)
            | PatchOperation::Move(_)
            | PatchOperation::Copy(_) => one(operation, content),
        };
        done.map_err(|kind| failed(operation, &kind).at(at))?;
    }
    Ok(())
}

fn one(operation: &PatchOperation, content: &mut Value) -> Result<(), PatchErrorKind> {
    patch_unsafe(content, std::slice::from_ref(operation)).map_err(|error| error.kind)
}

/// The test of RFC 6902 §4.6: numbers are equal by their value.
fn expect(found: Option<&Value>, expected: &Value) -> Result<(), PatchErrorKind> {
    match found {
        None => Err(PatchErrorKind::InvalidPointer),
        Some(found) if is_same(found, expected) => Ok(()),
        Some(_) => Err(PatchErrorKind::TestFailed),
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => is_equal(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_in_other = |(name, value)| other.get(name).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(is_in_other)
        }
        (one, other) => one == other,
    }
}

#[cold]
fn failed(operation: &PatchOperation, kind: &PatchErrorKind) -> Box<Fault> {
    let mut place = operation.path();
    let reason = match kind {
        PatchErrorKind::TestFailed => "has another value",
        PatchErrorKind::InvalidPointer => match operation {
            PatchOperation::Add(_) | PatchOperation::Move(_) | PatchOperation::Copy(_) => {
                "cannot be added: there is no object or list above it, or its place in the list is behind the end"
            }
            PatchOperation::Remove(_) | PatchOperation::Replace(_) | PatchOperation::Test(_) => {
                "is not there"
            }
        },
        PatchErrorKind::InvalidFromPointer => {
            if let PatchOperation::Move(from) = operation {
                place = &from.from;
            } else if let PatchOperation::Copy(copy) = operation {
                place = &copy.from;
            }
            "is not there"
        }
        PatchErrorKind::CannotMoveInsideItself => "lies within the value that is moved",
        other => return Fault::new("patch_failed", other.to_string()),
    };
    Fault::new("patch_failed", format!("{:?} {reason}", clip(place.as_str())))
}

/// Memory that an operation takes, in bytes.
pub(super) fn memory_of(operation: &PatchOperation) -> usize {
    let (from, value) = match operation {
        PatchOperation::Add(add) => (0, memory(&add.value)),
        PatchOperation::Replace(replace) => (0, memory(&replace.value)),
        PatchOperation::Test(test) => (0, memory(&test.value)),
        PatchOperation::Move(from) => (from.from.as_str().len(), 0),
        PatchOperation::Copy(copy) => (copy.from.as_str().len(), 0),
        PatchOperation::Remove(_) => (0, 0),
    };
    size_of::<PatchOperation>() + operation.path().as_str().len() + from + value
}

/// Size of what an operation copies within a content, in bytes of JSON.
fn copied_bytes(operation: &PatchOperation, content: &Value) -> usize {
    let PatchOperation::Copy(copy) = operation else { return 0 };
    content.pointer(copy.from.as_str()).map_or(0, |value| value.to_string().len())
}

/// Lists and objects that are nested where an operation puts a value, with those of the value.
fn depth_after(operation: &PatchOperation, content: &Value) -> usize {
    let found = |from: &jsonptr::PointerBuf| content.pointer(from.as_str());
    let (path, value) = match operation {
        PatchOperation::Add(add) => (&add.path, Some(&add.value)),
        PatchOperation::Replace(replace) => (&replace.path, Some(&replace.value)),
        PatchOperation::Move(from) => (&from.path, found(&from.from)),
        PatchOperation::Copy(copy) => (&copy.path, found(&copy.from)),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return 0,
    };
    path.count() + value.map_or(0, depth)
}

#[cfg(test)]
mod tests {
    use serde_json::json as value;

    use super::*;

    fn operated(operations: &Value, mut content: Value) -> Read<Value> {
        let operations: Vec<PatchOperation> = serde_json::from_value(operations.clone()).unwrap();
        operate(&operations, &mut content).map(|()| content)
    }

    #[test]
    fn numbers_are_tested_by_their_value() {
        let content = value!({"n": 1, "of": [{"m": 2.0}, 10]});
        for (path, expected, holds) in [
            ("/n", value!(1.0), true),
            ("/n", value!(1.5), false),
            ("/n", value!("1"), false),
            ("", value!({"of": [{"m": 2}, 1e1], "n": 1.0}), true),
            ("/of", value!([{"m": 2}]), false),
            ("/of/0", value!({"k": 2}), false),
        ] {
            let test = value!([{"op": "test", "path": path, "value": expected}]);
            assert_eq!(operated(&test, content.clone()).is_ok(), holds, "{test}");
        }
    }

    #[test]
    fn failures_name_the_place() {
        for (operation, expected) in [
            (value!({"op": "remove", "path": "/b"}), "\"/b\" is not there"),
            (value!({"op": "test", "path": "/a", "value": 2}), "\"/a\" has another value"),
            (value!({"op": "copy", "from": "/b", "path": "/c"}), "\"/b\" is not there"),
            (
                value!({"op": "move", "from": "/a", "path": "/a/b"}),
                "\"/a/b\" lies within the value that is moved",
            ),
        ] {
            let failed = operated(&value!([operation]), value!({"a": 1})).unwrap_err();
            assert_eq!(
                (failed.code, failed.field.as_str(), failed.reason.as_str()),
                ("patch_failed", "[0]", expected)
            );
        }
        let failed = operated(&value!([{"op": "add", "path": "/b/c", "value": 1}]), value!({})).unwrap_err();
        assert!(failed.reason.starts_with("\"/b/c\" cannot be added"), "{}", failed.reason);
    }
}

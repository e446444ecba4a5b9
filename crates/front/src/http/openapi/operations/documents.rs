//! Operations whose body is the content of a document.

use sluice_calls::documents::{VERSION_MAX, Written};
use sluice_engine::limits::{DOCUMENT_HISTORY_MAX, DOCUMENT_TTL_MS_MAX};

use super::parts::{
    Answer, Content, Description, Kind, PLAIN, Parameter, Request, answer, header, json_of, query,
};

/// The header by which a repeat of a write is known.
const REPEATED: Parameter = header(
    "Idempotency-Key",
    Kind::Text,
    "A repeat writes nothing while the version that it has written is the current one",
);

/// Describes a write whose content is the body.
pub(super) fn put() -> Description {
    Description {
        parameters: vec![
            REPEATED,
            header("If-Match", Kind::Text, "Write only if the document has this ETag; `*`: if there is one"),
            header("If-None-Match", Kind::Text, "`*`: write only if there is no document"),
            header("Sluice-Lock-Token", Kind::Text, "Write only while this lock of the key is held"),
            header("Sluice-Ttl-Ms", Kind::Integer(1, DOCUMENT_TTL_MS_MAX), "Gone after so long"),
            header(
                "Sluice-History",
                Kind::Integer(0, DOCUMENT_HISTORY_MAX as u64),
                "Number of former versions that are kept; default: as before",
            ),
            header("Sluice-Attribute-{name}", Kind::Text, "An attribute of the document"),
        ],
        request: Some(Request { required: false, content: Content::Octets }),
        answers: vec![
            answer(201, "Created", json_of::<Written>()),
            answer(200, "Changed", json_of::<Written>()),
        ],
        ..PLAIN
    }
}

/// Describes a change whose patch is the body.
pub(super) fn patch() -> Description {
    Description {
        parameters: vec![
            REPEATED,
            header("If-Match", Kind::Text, "Patch only if the document has this ETag"),
            header("Sluice-Lock-Token", Kind::Text, "Patch only while this lock of the key is held"),
        ],
        request: Some(Request { required: true, content: Content::Octets }),
        answers: vec![answer(200, "Changed", json_of::<Written>())],
        ..PLAIN
    }
}

/// Describes a read whose content is the body.
pub(super) fn read() -> Description {
    Description {
        parameters: vec![
            header("If-None-Match", Kind::Text, "ETags that the caller has"),
            query("version", Kind::Integer(1, VERSION_MAX), "A former version; default: the current one"),
        ],
        answers: vec![
            answer(200, "The content", Content::Octets),
            Answer { status: 304, about: "The caller has it", content: None },
        ],
        ..PLAIN
    }
}

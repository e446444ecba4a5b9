//! Operations whose body is the bytes of an attachment.

use sluice_calls::documents::Written;
use sluice_engine::limits::ATTACHMENT_BYTES_MAX;

use super::parts::{
    Answer, Content, Description, Kind, PLAIN, Parameter, Request, answer, header, json_of, query,
};

const NAME: Parameter = query("name", Kind::Text, "Name of the attachment; required");

/// Describes a chunk whose bytes are the body.
pub(super) fn append() -> Description {
    Description {
        parameters: vec![
            query("upload", Kind::Text, "Id of the upload; required"),
            header(
                "Upload-Offset",
                Kind::Integer(0, ATTACHMENT_BYTES_MAX),
                "Number of the bytes that the upload has before it; required",
            ),
        ],
        request: Some(Request { required: true, content: Content::Octets }),
        answers: vec![Answer { status: 204, about: "Added; Upload-Offset is the next one", content: None }],
        ..PLAIN
    }
}

/// Describes a write whose bytes are the body.
pub(super) fn put() -> Description {
    Description {
        parameters: vec![
            NAME,
            header(
                "If-Match",
                Kind::Text,
                "Write only if the attachment has this ETag; `*`: if there is one",
            ),
            header("If-None-Match", Kind::Text, "`*`: write only if there is no attachment with this name"),
            header(
                "Sluice-Lock-Token",
                Kind::Text,
                "Write only while this lock of the document's key is held",
            ),
            header("Repr-Digest", Kind::Text, "SHA-256 of the bytes, as `sha-256=:BASE64:` (RFC 9530)"),
        ],
        request: Some(Request { required: false, content: Content::Octets }),
        answers: vec![
            answer(201, "Created", json_of::<Written>()),
            answer(200, "Replaced", json_of::<Written>()),
        ],
        ..PLAIN
    }
}

/// Describes a read whose bytes are the body.
pub(super) fn read() -> Description {
    Description {
        parameters: vec![
            NAME,
            header("Range", Kind::Text, "One range of bytes (RFC 9110 section 14)"),
            header("If-Range", Kind::Text, "ETag: else the whole attachment is the answer"),
            header("If-None-Match", Kind::Text, "ETags that the caller has"),
        ],
        answers: vec![
            answer(200, "The bytes", Content::Octets),
            answer(206, "The bytes of the range", Content::Octets),
            Answer { status: 304, about: "The caller has it", content: None },
            Answer { status: 416, about: "It has no byte in the range", content: None },
        ],
        ..PLAIN
    }
}

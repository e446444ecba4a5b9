//! The gRPC contract `sluice.v1`, as both sides of the wire use it.
//!
//! What lives here: the code generated from `proto/` for the frames of a session, the descriptors of the
//! whole package, and how gRPC frames its messages. What does not: what a call means (that is the front's),
//! and connections.
//!
//! Map: [`v1`] the generated types, [`DESCRIPTORS`] the package's `FileDescriptorSet`,
//! [`STANDARD_DESCRIPTORS`] that of gRPC's own services, [`framing`] gRPC's length-prefixed messages, `lists`
//! frames with long lists, [`wire`] the wire format field by field.
//!
//! No `protoc` is needed: what is generated is committed, and `tests/generated.rs` holds it against `proto/`
//! and the folder `standard`. It writes it anew with `SLUICE_WRITE_PROTO=1`.
//!
//! Texts of frames are [`bytes::Bytes`] here although they are `string` in the contract, the same on the
//! wire: so decoding a frame copies and allocates nothing for them. Who reads one has to check that it is
//! UTF-8.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod framing;
mod lists;
pub mod wire;

/// The types of `common.proto` and `session.proto`.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod v1 {
    include!("generated/sluice.v1.rs");
}

/// A serialised `google.protobuf.FileDescriptorSet` with every file of the package.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");

/// A serialised `google.protobuf.FileDescriptorSet` with the files of services that gRPC itself defines, for
/// tools that know no contract: `grpc.health.v1`, `grpc.reflection.v1` and `grpc.reflection.v1alpha`.
pub const STANDARD_DESCRIPTORS: &[u8] = include_bytes!("generated/standard.bin");

/// The examples of the README, compiled by `cargo test`.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

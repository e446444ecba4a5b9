//! What is committed as generated is what `proto/` and `standard/` give. `SLUICE_WRITE_PROTO=1 cargo test
//! -p sluice-proto` writes it anew.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use prost::Message as _;
use prost_types::FileDescriptorSet;
use prost_types::field_descriptor_proto::Type;

/// Files of which Rust code is generated; of the others only the descriptors are used.
const FRAMES: &[&str] = &[
    "sluice/v1/common.proto",
    "sluice/v1/attachments.proto",
    "sluice/v1/documents.proto",
    "sluice/v1/locks.proto",
    "sluice/v1/messages.proto",
    "sluice/v1/session.proto",
    "sluice/v1/transactions.proto",
];

/// Compiles the files of these folders, with their comments.
fn compile(root: &str, folders: &[&str]) -> FileDescriptorSet {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
    let files_in = |folder: &&str| -> Vec<PathBuf> {
        let files = std::fs::read_dir(root.join(folder)).unwrap();
        files.map(|file| Path::new(folder).join(file.unwrap().file_name())).collect()
    };
    let mut files: Vec<PathBuf> = folders.iter().flat_map(files_in).collect();
    files.sort();
    let mut compiler = protox::Compiler::new([&root]).unwrap();
    compiler.include_imports(true).include_source_info(true).open_files(files).unwrap();
    compiler.file_descriptor_set()
}

/// The descriptors without comments.
fn plain(documented: &FileDescriptorSet) -> Vec<u8> {
    let mut plain = documented.clone();
    plain.file.iter_mut().for_each(|file| file.source_code_info = None);
    plain.encode_to_vec()
}

/// Fields that most messages do not have and that take much room: each message is as large as all of its
/// fields.
const BOXED: &[&str] =
    &[".sluice.v1.Message.backoff", ".sluice.v1.Message.unique", ".sluice.v1.Message.on_failure"];

/// Texts become bytes, which are the same on the wire; not those of maps, whose keys have to be texts.
fn code(mut set: FileDescriptorSet) -> String {
    set.file.retain(|file| FRAMES.contains(&file.name()));
    for file in &mut set.file {
        file.service.clear();
        for field in file.message_type.iter_mut().flat_map(|message| &mut message.field) {
            if field.r#type() == Type::String {
                field.set_type(Type::Bytes);
            }
        }
    }
    let mut config = prost_build::Config::new();
    config.bytes(["."]).skip_protoc_run();
    BOXED.iter().for_each(|field| {
        config.boxed(field);
    });
    let requests: Vec<_> = set
        .file
        .into_iter()
        .map(|file| (prost_build::Module::from_protobuf_package_name(file.package()), file))
        .collect();
    config.generate(requests).unwrap().into_values().collect()
}

#[test]
fn what_is_generated_is_up_to_date() {
    let generated = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/generated");
    let package = compile("../../proto", &["sluice/v1"]);
    let standard = compile("standard", &["grpc/health/v1", "grpc/reflection/v1", "grpc/reflection/v1alpha"]);
    let write = std::env::var_os("SLUICE_WRITE_PROTO").is_some();
    for (name, content) in [
        ("descriptors.bin", plain(&package)),
        ("standard.bin", plain(&standard)),
        ("sluice.v1.rs", code(package).into_bytes()),
    ] {
        let path = generated.join(name);
        if write {
            std::fs::write(&path, &content).unwrap();
        }
        let is_same = std::fs::read(&path).is_ok_and(|committed| committed == content);
        assert!(
            is_same,
            "{name} is not what the contract gives: SLUICE_WRITE_PROTO=1 cargo test -p sluice-proto"
        );
    }
}

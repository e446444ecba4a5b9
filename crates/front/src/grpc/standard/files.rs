//! The files of all contracts that are served, by their names and by the names that they declare.

use std::collections::HashMap;
use std::sync::LazyLock;

use prost::Message as _;
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto};
use sluice_proto::wire::{Raw, next_field};
use sluice_proto::{DESCRIPTORS, STANDARD_DESCRIPTORS};

/// The files of the contracts.
#[derive(Debug)]
pub(super) struct Files {
    /// Each a serialised `google.protobuf.FileDescriptorProto`.
    files: Vec<&'static [u8]>,
    /// The place of each, by its name.
    names: HashMap<String, usize>,
    /// The place of the file that declares a full name.
    symbols: HashMap<String, usize>,
    /// Full names of the services, in order.
    services: Vec<String>,
}

/// The files; they are part of the program.
pub(super) fn files() -> &'static Files {
    static FILES: LazyLock<Files> = LazyLock::new(|| {
        Files::read(&[DESCRIPTORS, STANDARD_DESCRIPTORS])
            .expect("generated with the program, and held against the contracts")
    });
    &FILES
}

impl Files {
    /// Reads serialised `google.protobuf.FileDescriptorSet`s. `None`: one of them is malformed.
    fn read(sets: &[&'static [u8]]) -> Option<Files> {
        let mut all =
            Files { files: Vec::new(), names: HashMap::new(), symbols: HashMap::new(), services: Vec::new() };
        for mut set in sets.iter().copied() {
            // The files are its field 1, and all that it has.
            while let Some((_, Raw::Bytes(file))) = next_field(&mut set).ok()? {
                all.add(file, &FileDescriptorProto::decode(file).ok()?);
            }
        }
        all.services.sort();
        Some(all)
    }

    fn add(&mut self, bytes: &'static [u8], file: &FileDescriptorProto) {
        let package = file.package();
        file.message_type.iter().for_each(|message| self.add_message(package, message));
        file.enum_type.iter().for_each(|one| self.add_enum(package, one));
        for service in &file.service {
            let name = format!("{package}.{}", service.name());
            service.method.iter().for_each(|method| self.add_symbol(&name, method.name()));
            self.add_symbol(package, service.name());
            self.services.push(name);
        }
        self.names.insert(file.name().to_owned(), self.files.len());
        self.files.push(bytes);
    }

    fn add_message(&mut self, scope: &str, message: &DescriptorProto) {
        self.add_symbol(scope, message.name());
        let name = format!("{scope}.{}", message.name());
        message.field.iter().for_each(|field| self.add_symbol(&name, field.name()));
        message.oneof_decl.iter().for_each(|one| self.add_symbol(&name, one.name()));
        message.nested_type.iter().for_each(|nested| self.add_message(&name, nested));
        message.enum_type.iter().for_each(|one| self.add_enum(&name, one));
    }

    /// Values of an enum are declared beside it, not in it.
    fn add_enum(&mut self, scope: &str, declared: &EnumDescriptorProto) {
        self.add_symbol(scope, declared.name());
        declared.value.iter().for_each(|value| self.add_symbol(scope, value.name()));
    }

    /// Adds a name that the next file declares.
    fn add_symbol(&mut self, scope: &str, name: &str) {
        self.symbols.insert(format!("{scope}.{name}"), self.files.len());
    }

    /// The file with this name, as imports have it.
    pub(super) fn named(&self, name: &str) -> Option<&'static [u8]> {
        self.names.get(name).map(|at| self.files[*at])
    }

    /// The file that declares a full name, with or without a dot before it.
    pub(super) fn declaring(&self, symbol: &str) -> Option<&'static [u8]> {
        self.symbols.get(symbol.trim_start_matches('.')).map(|at| self.files[*at])
    }

    /// Full names of all services, in order.
    pub(super) fn services(&self) -> &[String] {
        &self.services
    }
}

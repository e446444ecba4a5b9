//! Schemas of values.

/// Implements `JsonSchema` for types whose schema stands wherever they are used.
macro_rules! inline_schemas {
    ($($type:ident: $schema:expr;)*) => {
        $(impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        })*
    };
}
pub(crate) use inline_schemas;

//! The schemas of bodies. Tests hold them against the readers' lists of fields and against real answers.

mod delivering;
mod events;
mod fields;
mod flows;
mod parts;
mod schedules;
mod sending;
mod server;

use serde_json::{Map, Value};

const ID: &str = "00000040000000g000g0";
const RECEIPT: &str = "00000040000000g000g00000800000100g2s3k4q5m6n8";
const AT_MS: u64 = 1_767_225_600_000;

/// All schemas by name.
pub(super) fn all() -> Map<String, Value> {
    let mut schemas = Map::new();
    for group in [
        sending::sending(),
        delivering::receiving(),
        delivering::settling(),
        schedules::all(),
        events::all(),
        server::errors(),
    ] {
        if let Value::Object(group) = group {
            schemas.extend(group);
        }
    }
    schemas
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::hot::{extend, receive, schedules, send, settle};

    /// Fields of a schema, those of all its alternatives together.
    fn fields(schemas: &Map<String, Value>, schema: &Value) -> Vec<String> {
        if let Some(name) = schema["$ref"].as_str() {
            return fields(schemas, &schemas[name.rsplit('/').next().unwrap()]);
        }
        if let Some(alternatives) = schema["oneOf"].as_array() {
            return alternatives.iter().flat_map(|one| fields(schemas, one)).collect();
        }
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn requests_have_the_fields_that_the_readers_take() {
        let schemas = all();
        for (name, known) in [
            ("Message", send::MESSAGE_FIELDS),
            ("GroupRequest", send::GROUP_FIELDS),
            ("GroupMessage", send::GROUP_MESSAGE_FIELDS),
            ("Step", send::STEP_FIELDS),
            ("SchedulePut", schedules::SCHEDULE_FIELDS),
            ("ReceiveRequest", receive::RECEIVE_FIELDS),
            ("ReceiveManyRequest", receive::RECEIVE_MANY_FIELDS),
            ("AckRequest", settle::ACK_FIELDS),
            ("NackRequest", settle::NACK_FIELDS),
            ("ReleaseRequest", settle::RELEASE_FIELDS),
            ("RejectRequest", settle::REJECT_FIELDS),
            ("SettleRequest", settle::SETTLE_FIELDS),
            ("ExtendRequest", extend::EXTEND_FIELDS),
        ] {
            let mut described = fields(&schemas, &schemas[name]);
            described.sort_unstable();
            described.dedup();
            let mut known = known.to_vec();
            known.sort_unstable();
            assert_eq!(described, known, "{name}");
        }
        let items = |name: &str| fields(&schemas, &schemas[name]["properties"]["items"]["items"]);
        assert_eq!(items("SettleRequest").len(), settle::SETTLE_ITEM_FIELDS.len());
    }
}

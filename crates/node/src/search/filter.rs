//! A filter over messages.

use std::sync::LazyLock;

use serde_json::{Map, Value};
use sluice_engine::query::{MessageView, State};
use sluice_filter::{Filter, FilterError, Pointer};

use super::fields::{Content, FIELDS, Field, Source};
use super::terms::{Terms, terms_of};

/// The state of a message.
static STATE: LazyLock<Option<Pointer>> = LazyLock::new(|| Pointer::parse("/state"));

/// A condition on messages, in the language of all filters.
#[derive(Clone, Debug)]
pub struct MessageFilter {
    text: String,
    filter: Filter,
    /// The fields that it names, each once.
    fields: Vec<&'static Field>,
    /// States of all that matches, if it names them.
    states: Option<Vec<State>>,
    /// See [`terms_of`].
    terms: Vec<Terms>,
}

/// The bytes that a filter needs of a message which its index does not decide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    /// Content type, headers, payload.
    pub(super) blob: bool,
    /// Tags.
    pub(super) tags: bool,
    /// Errors.
    pub(super) errors: bool,
}

impl PartialEq for MessageFilter {
    fn eq(&self, other: &MessageFilter) -> bool {
        self.text == other.text
    }
}

impl Default for MessageFilter {
    /// The filter that every message matches.
    fn default() -> MessageFilter {
        let filter = Filter::default();
        MessageFilter { text: "{}".to_owned(), filter, fields: Vec::new(), states: None, terms: Vec::new() }
    }
}

impl MessageFilter {
    /// Reads a filter from JSON text.
    ///
    /// # Errors
    /// The first fault, with its place: those of [`Filter::parse`], fields that messages do not have, and
    /// states that there are not.
    pub fn parse(text: &str) -> Result<MessageFilter, FilterError> {
        let filter = Filter::parse(text)?;
        let mut fields: Vec<&'static Field> = Vec::new();
        for pointer in filter.pointers() {
            let field = pointer.first().and_then(Field::named).ok_or_else(|| unknown_field(pointer))?;
            if !fields.iter().any(|known| std::ptr::eq(*known, field)) {
                fields.push(field);
            }
        }
        if let Some(pointer) = STATE.as_ref() {
            filter.equals(pointer).try_for_each(|state| state_of(state).map(drop))?;
        }
        let states = STATE.as_ref().and_then(|pointer| filter.equal_to_one_of(pointer));
        let read = |states: Vec<&Value>| states.into_iter().map(state_of).collect::<Result<_, _>>();
        let states = states.map(read).transpose()?;
        let terms = terms_of(&filter);
        Ok(MessageFilter { text: text.to_owned(), filter, fields, states, terms })
    }

    /// The text that it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// States in one of which all that matches is; `None`: it may be in any.
    pub fn states(&self) -> Option<&[State]> {
        self.states.as_deref()
    }

    /// The one state that all that matches has; `None`: there may be several.
    pub fn state(&self) -> Option<State> {
        match self.states() {
            Some([state]) => Some(*state),
            _ => None,
        }
    }

    /// Terms for the index of a queue: see [`terms_of`].
    pub(super) fn terms(&self) -> &[Terms] {
        &self.terms
    }

    /// True or false if a message matches or does not by what the engine's index has of it, at this time in
    /// milliseconds since the Unix epoch; `None`: its bytes decide.
    pub fn matches_index(&self, view: &MessageView, now_ms: u64) -> Option<bool> {
        self.matches_known(view, &Content::default(), now_ms)
    }

    /// The bytes that it needs.
    pub(super) fn needs(&self) -> Needs {
        let any = |is: fn(&Source) -> bool| self.fields.iter().any(|field| is(&field.of));
        Needs {
            blob: any(|of| matches!(of, Source::Blob(_))),
            tags: any(|of| matches!(of, Source::Tags)),
            errors: any(|of| matches!(of, Source::Errors(_))),
        }
    }

    /// True if a message matches, whatever of it is damaged.
    pub(super) fn matches(&self, view: &MessageView, content: &Content, now_ms: u64) -> bool {
        self.matches_known(view, content, now_ms) == Some(true)
    }

    fn matches_known(&self, view: &MessageView, content: &Content, now_ms: u64) -> Option<bool> {
        let known = self.fields.iter().filter(|field| field.is_known(view, content));
        let values = known.filter_map(|field| Some((field.name.to_owned(), field.value(view, content)?)));
        let value = Value::Object(values.collect::<Map<_, _>>());
        let is_known = |pointer: &Pointer| {
            pointer.first().and_then(Field::named).is_some_and(|field| field.is_known(view, content))
        };
        self.filter.matches_partly(&value, is_known, now_ms)
    }
}

fn unknown_field(pointer: &Pointer) -> FilterError {
    let names: Vec<String> = FIELDS.iter().map(|field| format!("/{}", field.name)).collect();
    let reason = format!("no such field: those of a message are {}", names.join(", "));
    FilterError::at_pointer(pointer, reason)
}

fn state_of(value: &Value) -> Result<State, FilterError> {
    let state = State::ALL.into_iter().find(|state| value.as_str() == Some(state.name()));
    state.ok_or_else(|| {
        let reason = format!("expected one of {}", State::ALL.map(State::name).join(", "));
        FilterError { at: "/state".to_owned(), reason }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        MessageFilter::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn what_no_message_has_is_refused_with_its_place() {
        assert!(
            error(r#"{"/sate":"dead"}"#).starts_with("/sate: no such field: those of a message are /id, ")
        );
        assert!(error(r#"{"or":[{"/payload/a":1},{"":{"exists":true}}]}"#).contains("no such field"));
        assert!(error(r#"{"/state":"deda"}"#).starts_with("/state: expected one of delayed, ready, "));
        assert!(error(r#"{"/state":{"in":["dead",7]}}"#).starts_with("/state: expected"));
        for hidden in [
            r#"{"not":{"/state":"hled"}}"#,
            r#"{"/state":{"not":{"eq":"hled"}}}"#,
            r#"{"/state":{"not":{"in":["held","hled"]}}}"#,
            r#"{"or":[{"/state":"hled"},{"/attempts":1}]}"#,
        ] {
            assert!(error(hidden).starts_with("/state: expected one of delayed, "), "{hidden}");
        }
        assert!(error(r#"{"/tags":["a"]}"#).starts_with("/tags: expected an operator"));
    }

    #[test]
    fn the_states_of_what_matches_are_told() {
        let states = |text: &str| MessageFilter::parse(text).unwrap().states().map(<[State]>::to_vec);
        assert_eq!(states(r#"{"/state":"dead","/attempts":3}"#), Some(vec![State::Dead]));
        assert_eq!(states(r#"{"/state":{"in":["held","dead"]}}"#), Some(vec![State::Held, State::Dead]));
        assert_eq!(states(r#"{"not":{"/state":"dead"}}"#), None);
        assert_eq!(MessageFilter::parse(r#"{"/state":{"in":["held","dead"]}}"#).unwrap().state(), None);
        assert_eq!(MessageFilter::default(), MessageFilter::parse("{}").unwrap());
    }

    #[test]
    fn names_are_given_once_each() {
        for (at, field) in FIELDS.iter().enumerate() {
            assert!(FIELDS[at + 1..].iter().all(|other| other.name != field.name), "{}", field.name);
        }
    }
}

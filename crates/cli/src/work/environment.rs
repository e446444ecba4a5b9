//! The environment of a command.

use sluice_client::Delivered;

/// The variables of one message. A value with a NUL byte is left out, because an environment cannot hold it.
pub(super) fn variables(message: &Delivered) -> Vec<(String, String)> {
    let mut all = vec![
        ("SLUICE_MESSAGE_ID".to_owned(), message.id.clone()),
        ("SLUICE_QUEUE".to_owned(), message.queue.clone()),
        ("SLUICE_RECEIPT".to_owned(), message.receipt.clone()),
        ("SLUICE_ATTEMPT".to_owned(), message.attempt.to_string()),
        ("SLUICE_MAX_ATTEMPTS".to_owned(), message.max_attempts.to_string()),
        ("SLUICE_DELIVERIES".to_owned(), message.deliveries.to_string()),
        ("SLUICE_PRIORITY".to_owned(), message.priority.to_string()),
        ("SLUICE_SENT_AT_MS".to_owned(), message.sent_at_ms.to_string()),
        ("SLUICE_CONTENT_TYPE".to_owned(), message.content_type.clone().unwrap_or_default()),
    ];
    if let Some(details) = &message.details {
        let given =
            [("SLUICE_CORRELATION_ID", &details.correlation_id), ("SLUICE_REPLY_TO", &details.reply_to)];
        let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        all.extend(given);
    }
    let headers = message.headers.iter().map(|(name, value)| (header_variable(name), value.clone()));
    all.extend(headers);
    for (_, value) in &mut all {
        value.retain(|c| c != '\0');
    }
    all
}

/// The variable of a header: `Content-Language` becomes `SLUICE_HEADER_CONTENT_LANGUAGE`.
fn header_variable(name: &str) -> String {
    let mut variable = String::from("SLUICE_HEADER_");
    variable
        .extend(name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }));
    variable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_names_become_variables() {
        assert_eq!(header_variable("trace-parent.x"), "SLUICE_HEADER_TRACE_PARENT_X");
        assert_eq!(header_variable("a=b\0ü"), "SLUICE_HEADER_A_B__");
    }
}

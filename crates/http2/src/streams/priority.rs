//! Priorities of RFC 9218.

/// The priority of a response: its urgency, and whether it is useful in pieces (RFC 9218 §4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priority {
    /// 0 is the most urgent, 7 the least.
    pub urgency: u8,
    /// True when it is incremental: it shares the connection with responses of the same urgency, rather than
    /// following those that were requested before it.
    pub incremental: bool,
}

impl Default for Priority {
    /// Priority of a stream about which the client has said nothing. It shares with its equals: RFC 9218
    /// would have such streams wait for each other, which is right for a page that is shown in order and
    /// wrong for requests that know nothing of each other.
    fn default() -> Self {
        Self { urgency: 3, incremental: true }
    }
}

impl Priority {
    /// Urgencies that there are.
    pub(crate) const URGENCIES: usize = 8;

    /// Reads the value of a `priority` field or a PRIORITY_UPDATE frame. What is unknown or out of range is
    /// passed over, as RFC 9218 §4 asks for; what is not said has the default of §4.1 and §4.2, which is not
    /// that of a stream without priority.
    pub fn parse(value: &[u8]) -> Self {
        Self { urgency: 3, incremental: false }.and(value)
    }

    /// With what a further value says.
    pub(crate) fn and(self, value: &[u8]) -> Self {
        let mut priority = self;
        for member in value.split(|&byte| byte == b',') {
            let item = member.split(|&byte| byte == b';').next().unwrap_or_default();
            match item.trim_ascii() {
                &[b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_reads(value: &str, urgency: u8, incremental: bool) {
        assert_eq!(Priority::parse(value.as_bytes()), Priority { urgency, incremental }, "{value}");
    }

    #[test]
    fn rfc9218_4_urgency_and_incremental() {
        assert_reads("", 3, false);
        assert_reads("u=0", 0, false);
        assert_reads("u=7, i", 7, true);
        assert_reads("i=?1,u=5;foo=bar", 5, true);
        assert_reads("i, i=?0", 3, false);
    }

    #[test]
    fn rfc8941_4_2_several_fields_are_one_list() {
        let priority = Priority::parse(b"u=1").and(b"i");
        assert_eq!(priority, Priority { urgency: 1, incremental: true });
    }

    #[test]
    fn rfc9218_4_what_is_unknown_or_out_of_range_is_passed_over() {
        assert_reads("u=8", 3, false);
        assert_reads("u=-1, x, i", 3, true);
        assert_reads("u=\"1\", i=1", 3, false);
        assert_reads("\u{fffd},,,=", 3, false);
    }
}

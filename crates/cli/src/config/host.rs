//! Names of hosts.

use std::net::IpAddr;

/// Parses a host: an IP address, or a DNS name whose first label may be `*`.
///
/// # Errors
/// The text is neither.
pub(crate) fn read_host(name: &str) -> Result<Option<IpAddr>, String> {
    if let Ok(address) = name.parse() {
        return Ok(Some(address));
    }
    let mut labels = name.strip_prefix("*.").unwrap_or(name).split('.');
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let sound = |label: &str| !label.is_empty() && label.len() <= 63 && label.chars().all(plain);
    if name.len() > 253 || !labels.all(sound) {
        return Err(format!("{name:?} is neither a DNS name nor an address"));
    }
    Ok(None)
}

/// The canonical spelling of a host accepted by [`read_host`], as certificates and comparisons use it.
pub(crate) fn plain_host(name: &str) -> String {
    match name.parse::<IpAddr>() {
        Ok(address) => address.to_string(),
        Err(_) => name.to_ascii_lowercase(),
    }
}

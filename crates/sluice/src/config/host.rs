//! The names by which clients connect.

use std::net::IpAddr;

/// Reads the name of a host: an address, or a DNS name, of which the first label may be `*`.
///
/// # Errors
/// It is neither.
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

/// The one spelling of a name that [`read_host`] takes in which certificates have it and names are compared.
pub(crate) fn plain_host(name: &str) -> String {
    match name.parse::<IpAddr>() {
        Ok(address) => address.to_string(),
        Err(_) => name.to_ascii_lowercase(),
    }
}

//! The settings about the nodes of a cluster.

use std::collections::BTreeMap;

use super::values::{Any, SettingValue};

/// Address of this node, as `HOST:PORT`; `None`: that at which it listens.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Address(pub(crate) Option<String>);

impl SettingValue for Address {
    const PLACEHOLDER: &'static str = "HOST:PORT";
    type Range = Any;

    fn read(text: &str, range: &Any) -> Result<Self, String> {
        if text.is_empty() { Ok(Address(None)) } else { String::read(text, range).map(Some).map(Address) }
    }

    fn show(&self) -> String {
        self.0.clone().unwrap_or_default()
    }
}

/// Addresses of the nodes of a cluster by their numbers; empty: the server is alone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ClusterMembers(pub(crate) BTreeMap<u64, String>);

impl SettingValue for ClusterMembers {
    const PLACEHOLDER: &'static str = "N=HOST:PORT,...";
    type Range = Any;

    fn read(text: &str, _: &Any) -> Result<Self, String> {
        let mut members = BTreeMap::new();
        for member in text.split(',').map(str::trim).filter(|member| !member.is_empty()) {
            let expected = || format!("{member:?} is not a node: expected N=HOST:PORT, N from 1");
            let (number, address) = member.split_once('=').ok_or_else(expected)?;
            let number = number.parse().ok().filter(|number| *number > 0).ok_or_else(expected)?;
            let is_address = address
                .rsplit_once(':')
                .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
            if !is_address {
                return Err(expected());
            }
            if members.insert(number, address.to_owned()).is_some() {
                return Err(format!("node {number} stands twice"));
            }
        }
        Ok(ClusterMembers(members))
    }

    fn show(&self) -> String {
        let members = self.0.iter().map(|(number, address)| format!("{number}={address}"));
        members.collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ClusterMembers, String> {
        ClusterMembers::read(text, &Any)
    }

    #[test]
    fn members_read_as_they_are_written() {
        for text in ["", "1=one:7070", "1=one:7070,2=127.0.0.1:7071,5=[::1]:7072"] {
            assert_eq!(read(text).map(|members| members.show()).as_deref(), Ok(text));
        }
        for bad in ["one:7070", "0=one:7070", "1=one", "1=:7070", "1=one:x", "1=a:1,1=b:2"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}

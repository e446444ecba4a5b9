//! Clients of another node of the cluster, whose requests come over its connection.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Clients of a node that are kept between their requests.
const CLIENTS_KEPT: usize = 1_024;

/// The clients of a node, by address. Each is kept between its requests, so that its certificate is read
/// once, until there are too many.
pub(super) struct Clients<P>(Mutex<HashMap<IpAddr, Vec<Arc<P>>>>);

impl<P> Default for Clients<P> {
    fn default() -> Clients<P> {
        Clients(Mutex::default())
    }
}

impl<P> Clients<P> {
    /// The client with this address that `is_it`, or a new one. Those of the address that are over are
    /// forgotten.
    pub(super) fn find(
        &self,
        address: IpAddr,
        is_over: impl Fn(&P) -> bool,
        is_it: impl Fn(&P) -> bool,
        new: impl FnOnce() -> P,
    ) -> Arc<P> {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(these) = clients.get_mut(&address) {
            these.retain(|client| !is_over(client));
            if let Some(client) = these.iter().find(|client| is_it(client)) {
                return Arc::clone(client);
            }
        }
        if clients.values().map(Vec::len).sum::<usize>() >= CLIENTS_KEPT {
            clients.clear();
        }
        let client = Arc::new(new());
        clients.entry(address).or_default().push(Arc::clone(&client));
        client
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_client_is_made_once_and_their_number_is_bounded() {
        let clients = Clients::default();
        let address = |number: u32| IpAddr::V4(Ipv4Addr::from_bits(number));
        let find = |number: u32| clients.find(address(number), |_| false, |_| true, || number);
        assert!(Arc::ptr_eq(&find(1), &find(1)));
        assert_eq!(*clients.find(address(1), |_| false, |one| *one == 7, || 7), 7);
        assert_eq!(*clients.find(address(1), |one| *one == 1, |_| true, || 8), 7);
        for number in 2..10_000 {
            assert_eq!(*find(number), number);
            assert!(clients.0.lock().unwrap().values().map(Vec::len).sum::<usize>() <= CLIENTS_KEPT);
        }
    }
}

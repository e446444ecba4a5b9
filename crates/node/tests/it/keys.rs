//! Root keys while the node runs.

use std::sync::Arc;

use sluice_engine::Error;
use sluice_journal::{Encryption, RootKey, RootKeys};
use sluice_node::keys::{KeyId, KeySource, RotateError};
use sluice_node::{Node, Options};

use crate::support::{options, send};

/// Gives these, whatever was before.
#[derive(Debug)]
struct Given(Vec<u8>);

impl KeySource for Given {
    fn rotate(&self, _: KeyId) -> Result<RootKeys, RotateError> {
        let text: String =
            self.0.iter().map(|number| format!("{}\n", format!("{number:02x}").repeat(32))).collect();
        RootKeys::parse(&text).map_err(|error| RotateError::Refused(error.to_string()))
    }
}

#[tokio::test]
async fn keys_without_one_that_files_need_are_refused_as_the_operators() {
    let dir = tempfile::tempdir().unwrap();
    let old = RootKey::new([1; 32]);
    let start = |given: &[u8]| {
        let encryption = Encryption::with(RootKeys::parse(&old.to_text()).unwrap());
        let key_source: Option<Arc<dyn KeySource>> = Some(Arc::new(Given(given.to_vec())));
        Node::start(Options { encryption, key_source, ..options(Some(dir.path())) }).unwrap()
    };
    let node = start(&[2]);
    send(&node, "q", &[b"a"]).await;
    match node.rotate_keys().await.unwrap_err() {
        Error::InvalidArgument { field, reason } => {
            assert_eq!(field, "key_source");
            assert!(reason.contains(&old.id().to_string()), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(node.keys().await.unwrap().current, Some(old.id()), "nothing was changed");
    node.shutdown(std::time::Duration::from_secs(10)).await.unwrap();

    let node = start(&[2, 1]);
    let status = node.rotate_keys().await.unwrap();
    assert_eq!(status.current, Some(RootKey::new([2; 32]).id()));
    node.shutdown(std::time::Duration::from_secs(10)).await.unwrap();
}

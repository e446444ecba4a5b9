//! Uploads that belong to one caller, and end with it.

use sluice_engine::attachments::UploadId;
use sluice_engine::command::Command;
use sluice_engine::{Error, NamespaceId};

use crate::attachments::AttachmentName;
use crate::handle::Node;
use crate::shard::request::Request;

/// An upload that ends when this is dropped before it was committed.
#[derive(Debug)]
pub struct HeldUpload {
    node: Node,
    shard: u32,
    namespace: NamespaceId,
    id: UploadId,
    is_over: bool,
}

impl HeldUpload {
    /// Its id.
    pub fn id(&self) -> UploadId {
        self.id
    }

    /// Notes that it was committed.
    pub fn committed(&mut self) {
        self.is_over = true;
    }

    /// Ends it, and waits until that is done.
    pub async fn end(mut self) {
        self.is_over = self.node.upload_end(self.namespace, self.id).await.is_ok();
    }
}

impl Drop for HeldUpload {
    fn drop(&mut self) {
        if !self.is_over {
            let end = Command::UploadEnd { namespace: self.namespace, upload: self.id };
            self.node.push_surely(self.shard, Request::surely(&end));
        }
    }
}

impl Node {
    /// Begins an upload, as [`Node::upload_begin`] does, that ends with its caller.
    ///
    /// # Errors
    /// Those of [`Node::upload_begin`].
    pub async fn upload_hold(
        &self,
        target: AttachmentName<'_>,
        content_type: &str,
    ) -> Result<HeldUpload, Error> {
        let (node, content_type) = (self.clone(), content_type.to_owned());
        let (namespace, key, name) = (target.namespace, target.key.to_owned(), target.name.to_owned());
        // A task of its own: when the caller goes before the answer, the upload is dropped there, and ends.
        let begun = tokio::spawn(async move {
            let shard = node.inner.placement.shard_of(namespace)?;
            let target = AttachmentName { namespace, key: &key, name: &name };
            let id = node.upload_begin(target, &content_type).await?;
            Ok(HeldUpload { node, shard, namespace, id, is_over: false })
        });
        begun.await.map_err(|_| Error::ShuttingDown {})?
    }
}

//! Handlers with a unit of work: what they stage is committed together with the ack.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::error::ClientError;
use crate::message::Settle;
use crate::stop::Stop;
use crate::work::{self, Terms, Unfinished, Work, WorkError};
use crate::worker::options::{Job, Summary, Worker, WorkerEvent};
use crate::worker::settler::{Ending, Unsettled};

impl Worker {
    /// Runs like [`Worker::run`], with a unit of work for each message. When the handler returns `Ok`, the
    /// message is acked and all that was staged is committed as one transaction; or, if the lease is lost,
    /// nothing of it. When the handler returns an error or panics, nothing that was staged happens, and the
    /// message is nacked with the text of the error.
    ///
    /// After a conflict (`version_mismatch`, `lock_held`, of the commit or in an error of the handler) the
    /// handler runs again, on fresh reads: up to 20 times within some seconds, while the lease is held and
    /// the worker is not stopping. Then the message is nacked. So what the handler does beside its unit of
    /// work has to bear repeating.
    ///
    /// # Errors
    /// Those of [`Worker::run`].
    ///
    /// ```no_run
    /// # async fn example(client: sluice_client::Client) -> Result<(), sluice_client::ClientError> {
    /// use sluice_client::{Job, Message, Stop, Work, Worker, WorkerOptions};
    ///
    /// let worker = Worker::new(client, WorkerOptions::new(vec![("paid".to_owned(), 0)]));
    /// let handler = |job: Job, work: Work| async move {
    ///     let order = String::from_utf8(job.message.payload.0.to_vec())?;
    ///     let state = work.get(&order).await?.ok_or("there is no such order")?;
    ///     if state != b"paid" {
    ///         work.put(&order, "paid")?;
    ///         work.send("mail", Message::new(b"thank you"))?;
    ///     }
    ///     Ok(())
    /// };
    /// let (events, _) = tokio::sync::mpsc::unbounded_channel();
    /// worker.transactional(Stop::new(), handler, events).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn transactional<F, Fut>(
        &self,
        stop: Stop,
        handler: F,
        events: mpsc::UnboundedSender<WorkerEvent>,
    ) -> Result<Summary, ClientError>
    where
        F: Fn(Job, Work) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), WorkError>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let stopping = stop.clone();
        let to_end = |job: Job| {
            let (worker, handler, stopping) = (self.clone(), Arc::clone(&handler), stopping.clone());
            async move { worker.work_on(&job, &*handler, &stopping).await }
        };
        self.run_to_end(stop, to_end, events).await
    }

    /// Works on one message until its unit is committed or given up.
    async fn work_on<Fut>(&self, job: &Job, handler: impl Fn(Job, Work) -> Fut, stopping: &Stop) -> Ending
    where
        Fut: Future<Output = Result<(), WorkError>>,
    {
        let terms = Terms { receipt: Some(&job.message.receipt), patience: self.options.lease };
        let may_go_on = || !job.lost.is_stopped() && !stopping.is_stopped();
        let done = work::run(&self.client, terms, |unit| handler(job.clone(), unit), may_go_on).await;
        let unsettled = match done {
            Ok(finished) => {
                let settle = finished.outcome.unwrap_or(Settle::Ack);
                return match finished.committed {
                    Some(_) => Ending::Settled(settle, Ok(())),
                    None => Ending::Settle(settle),
                };
            }
            Err(Unfinished::Failed(error)) => {
                return Ending::Settle(Settle::Nack { error: error.to_string(), delay: None });
            }
            Err(Unfinished::Lost(error)) if error.code() == Some("cancelled") => return Ending::Cancelled,
            Err(Unfinished::Lost(error)) => Unsettled::Lost(error.to_string()),
            Err(Unfinished::Unanswered(error)) => Unsettled::Unanswered(error.to_string()),
        };
        Ending::Settled(Settle::Ack, Err(unsettled))
    }
}

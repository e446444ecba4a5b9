//! `grpc.health.v1`: the server is serving when `/readyz` says so, and each service with it.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::response::Response;
use sluice_calls::fault::clip;
use sluice_calls::{CallError, Calls};
use sluice_proto::framing::frame_with;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::sleep;

use super::files::files;
use super::request::{place, text_in};
use crate::grpc::status::success_with;
use crate::grpc::streaming::streamed;
use crate::grpc::wire::{put_bytes, put_number};
use crate::net::arrived::Arrived;
use crate::net::body::Body;
use crate::net::context::Context;

/// Time between two looks at the health, for who watches it.
const PAUSE: Duration = Duration::from_secs(1);
/// Field of a request: the service.
const SERVICE: u32 = 1;
/// Fields of answers.
const STATUS: u32 = 1;
const STATUSES: u32 = 1;
const KEY: u32 = 1;
const VALUE: u32 = 2;

/// The health of a service, by the numbers of `grpc.health.v1.HealthCheckResponse.ServingStatus`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    Serving = 1,
    NotServing = 2,
    /// There is no such service.
    Unknown = 3,
}

impl Status {
    fn of_server(calls: &Calls) -> Status {
        if calls.ready() { Status::Serving } else { Status::NotServing }
    }

    /// `grpc.health.v1.HealthCheckResponse`.
    fn write(self, out: &mut Vec<u8>) {
        put_number(out, STATUS, self as u64);
    }
}

/// True for a service that is served; an empty name stands for the server.
fn is_served(service: &str) -> bool {
    service.is_empty() || files().services().iter().any(|known| known == service)
}

/// A method of the service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::grpc) enum Method {
    /// Health of a service.
    Check,
    /// Health of all services.
    List,
    /// Health of a service, as a stream.
    Watch,
}

/// Answers a call.
///
/// # Errors
/// `not_found` from `Check`, `overloaded` from `Watch`, `invalid_protobuf`.
pub(super) fn answer(arrived: &Arrived, method: Method, message: &[u8]) -> Result<Response<Body>, CallError> {
    let service = || text_in(message, SERVICE).map_err(|fault| fault.inside("service"));
    match method {
        Method::Check => Ok(success_with(check(&arrived.context.calls, service()?)?)),
        Method::List => Ok(success_with(list(&arrived.context.calls))),
        Method::Watch => watch(arrived, service()?),
    }
}

fn check(calls: &Calls, service: &str) -> Result<Vec<u8>, CallError> {
    if !is_served(service) {
        let service = clip(service);
        let known = files().services().join(", ");
        let message = format!("no service {service:?} is served here; there are {known}");
        return Err(CallError::new("not_found", message).with(|it| it.text("service", &service)));
    }
    let mut out = Vec::new();
    Status::of_server(calls).write(&mut out);
    Ok(out)
}

fn list(calls: &Calls) -> Vec<u8> {
    let mut status = Vec::new();
    Status::of_server(calls).write(&mut status);
    let mut out = Vec::new();
    for service in [""].into_iter().chain(files().services().iter().map(String::as_str)) {
        let mut entry = Vec::new();
        put_bytes(&mut entry, KEY, service.as_bytes());
        put_bytes(&mut entry, VALUE, &status);
        put_bytes(&mut out, STATUSES, &entry);
    }
    out
}

fn watch(arrived: &Arrived, service: &str) -> Result<Response<Body>, CallError> {
    let place = place(arrived)?;
    let (out, pieces) = mpsc::channel(1);
    let watch = Watch { context: Arc::clone(&arrived.context), is_served: is_served(service), out };
    tokio::spawn(watch.run(place));
    Ok(streamed(pieces, Arc::new(OnceLock::new())))
}

/// A stream of the health of a service, until the client or the server ends it.
struct Watch {
    context: Arc<Context>,
    is_served: bool,
    out: mpsc::Sender<io::Result<Bytes>>,
}

impl Watch {
    async fn run(self, _place: OwnedSemaphorePermit) {
        let mut told = self.status();
        let mut is_heard = self.tell(told).await;
        while is_heard {
            let is_stopping = tokio::select! {
                biased;
                () = self.out.closed() => return,
                () = self.context.calls.stopping() => true,
                () = sleep(PAUSE) => false,
            };
            let status = self.status();
            if status != told {
                told = status;
                is_heard = self.tell(status).await;
            }
            if is_stopping {
                return;
            }
        }
    }

    fn status(&self) -> Status {
        if self.is_served { Status::of_server(&self.context.calls) } else { Status::Unknown }
    }

    /// Tells the status; false if nobody hears it.
    async fn tell(&self, status: Status) -> bool {
        let mut piece = Vec::new();
        frame_with(&mut piece, |out| status.write(out));
        self.out.send(Ok(piece.into())).await.is_ok()
    }
}

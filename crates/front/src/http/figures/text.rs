//! `/metrics` in the Prometheus text format, version 0.0.4.

use std::fmt::{Display, Write as _};

use http::StatusCode;
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::figures::Figures;
use sluice_telemetry::metrics::{Buckets, Kind};

use super::{Sink, Source};
use crate::http::route::call::Call;
use crate::net::body::Body;
use crate::net::respond;

/// `GET /metrics`
pub(crate) async fn metrics(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let mut page = Page::default();
    let source = Source { context: call.context, figures: Figures::of(&call.permit) };
    source.write(&mut page).await?;
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    Ok(respond::content(StatusCode::OK, content_type, page.text))
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            self.text.push(if at == 0 { '{' } else { ',' });
            // Names of queues, namespaces and routes have no character that needs an escape here.
            let _ = write!(self.text, "{label}=\"{text}\"");
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

impl Sink for Page {
    fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter | Kind::OlderCounter => "counter",
            Kind::Histogram => "histogram",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        self.line(name, labels, value);
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], buckets: Buckets<'_>) {
        let of_buckets = format!("{name}_bucket");
        let bounds = buckets.bounds.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(buckets.cumulated.iter().chain([&buckets.count])) {
            self.line(&of_buckets, &[labels, &[("le", &*bound)]].concat(), count);
        }
        self.line(&format!("{name}_sum"), labels, buckets.sum);
        self.line(&format!("{name}_count"), labels, buckets.count);
    }
}

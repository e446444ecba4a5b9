//! The tools as the Model Context Protocol has them.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult, ErrorCode,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use sluice_client::{Client, ClientError, Credentials, Options};
use tokio::sync::Semaphore;

use super::caller::Caller;
use super::calling::{self, Asked};
use super::tools::{McpTool, all};

/// Calls that are made at the same time; others wait.
const CALLS_MAX: usize = 64;
/// Calls that wait for something at the same time, beside those that do not: what keeps a lease or a lock
/// must not stand behind them.
const WAITS_MAX: usize = 1_024;
/// Scheme of the header that carries a token (RFC 6750 §2.1).
const BEARER: &str = "Bearer ";

const INSTRUCTIONS: &str = "\
Queues, documents and locks of a Sluice server. To work: receive a message, extend its lease while you work \
(the lease ends after 15 minutes if you name none), then ack it with a result, or nack it with the error. Stop \
working on a message when a call says lease_lost or cancelled. Send creates work for others; where a person has to \
approve it, the answer has held and waits_for: do not send it again, and ask result_show later. Writes of \
documents take conditions (if_version, if_etag), so that you do not overwrite the work of others. Errors have a \
code and say what would be right; forbidden means that your rights do not allow it: do not look for another way.";

/// Form of a call (Model Context Protocol, "Calling Tools").
const CALL_EXPECTED: &str =
    "expected params with a `name`, which is a text, and `arguments`, which are an object";

/// The identity under which tools call the server.
#[derive(Clone, Debug)]
pub(super) enum Identity {
    /// That of the process, for its only caller.
    Process(Client),
    /// That of each caller, by the token of the request. The process has none.
    Callers {
        /// URLs of the server.
        server: String,
        namespace: String,
        /// Options without credentials, but for the CA.
        options: Options,
    },
}

/// A server of the protocol.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    tools: Arc<Vec<McpTool>>,
    identity: Identity,
    calls: Arc<Semaphore>,
    waits: Arc<Semaphore>,
    /// The only caller; `None`: each request has its own.
    caller: Option<Caller>,
}

impl Agent {
    pub(super) fn new(identity: Identity) -> Agent {
        let description = sluice_front::http::openapi(env!("CARGO_PKG_VERSION"));
        let [calls, waits] = [CALLS_MAX, WAITS_MAX].map(|most| Arc::new(Semaphore::new(most)));
        Agent { tools: Arc::new(all(&description)), identity, calls, waits, caller: None }
    }

    /// The same for one caller, after whose end nothing waits any more.
    pub(super) fn of(self, caller: Caller) -> Agent {
        Agent { caller: Some(caller), ..self }
    }

    /// Waits until nobody is there who could get an answer.
    async fn left_alone(&self) {
        match &self.caller {
            Some(caller) => caller.gone().await,
            None => std::future::pending().await,
        }
    }

    /// Calls a tool when it is its turn.
    async fn call(&self, client: &Client, tool: &McpTool, asked: Asked) -> Result<Value, Value> {
        let _turn = if asked.waits() { &self.waits } else { &self.calls }.acquire().await;
        calling::call(client, tool, asked).await
    }

    /// A client with the caller's own rights.
    fn client(&self, context: &RequestContext<RoleServer>) -> Result<Client, ClientError> {
        match &self.identity {
            Identity::Process(client) => Ok(client.clone()),
            Identity::Callers { server, namespace, options } => {
                let token = context.extensions.get::<Parts>().and_then(bearer);
                let credentials = Credentials { token, ..options.credentials.clone() };
                let client = Client::with_options(server, Options { credentials, ..options.clone() })?;
                Ok(client.in_namespace(namespace))
            }
        }
    }
}

/// The token of a request.
fn bearer(parts: &Parts) -> Option<String> {
    let value = parts.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let is_bearer = value.get(..BEARER.len())?.eq_ignore_ascii_case(BEARER);
    is_bearer.then(|| value[BEARER.len()..].trim().to_owned())
}

fn answer(result: Result<Value, Value>) -> CallToolResponse {
    let result = match result {
        Ok(answer) => CallToolResult::structured(answer),
        Err(error) => CallToolResult::structured_error(error),
    };
    result.into()
}

impl ServerHandler for Agent {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("sluice", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.iter().map(|tool| tool.listed.clone()).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tools.iter().find(|tool| tool.listed.name == request.name) else {
            let name: String = request.name.chars().take(60).collect();
            return Err(ErrorData::invalid_params(
                format!("{name:?} is no tool: tools/list tells them"),
                None,
            ));
        };
        let client = match self.client(&context) {
            Ok(client) => client,
            Err(error) => {
                let error = json!({"error": {"code": "unauthenticated", "message": error.to_string(), "details": {}}});
                return Ok(answer(Err(error)));
            }
        };
        let asked = match calling::asked(tool, request.arguments.unwrap_or_default()) {
            Ok(asked) => asked,
            Err(error) => return Ok(answer(Err(error))),
        };
        let waits = asked.waits();
        tokio::select! {
            // A receive that nobody waits for any more ends, and takes nothing with it.
            () = context.ct.cancelled() => Err(ErrorData::invalid_request("the call was cancelled", None)),
            () = self.left_alone(), if waits => {
                Err(ErrorData::invalid_request("the call was cancelled by the end of the input", None))
            }
            result = self.call(&client, tool, asked) => Ok(answer(result)),
        }
    }

    /// Refuses what is no call, which the library takes for a method that it does not know.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(match request.method.as_str() {
            "tools/call" => ErrorData::invalid_params(CALL_EXPECTED, None),
            _ => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_from_its_header_and_from_nothing_else() {
        let token = |value: &[u8]| {
            let request = http::Request::builder().header("authorization", value).body(()).unwrap();
            bearer(&request.into_parts().0)
        };
        assert_eq!(token(b"Bearer sluice_a_b").as_deref(), Some("sluice_a_b"));
        assert_eq!(token(b"bearer  sluice_a_b ").as_deref(), Some("sluice_a_b"));
        for none in [
            &b"Basic dTpw"[..],
            b"",
            b"Bear",
            b"Bearer",
            "Bearär x".as_bytes(),
            b"\xff\xff\xff\xff\xff\xff\xff",
        ] {
            assert_eq!(token(none), None, "{none:?}");
        }
    }

    #[test]
    fn the_handler_lists_tools_with_a_guide() {
        let agent = Agent::new(Identity::Process(Client::new("http://127.0.0.1:1").unwrap()));
        let info = agent.get_info();
        assert!(info.capabilities.tools.is_some() && info.instructions.is_some());
        assert_eq!(info.server_info.name, "sluice");
    }
}

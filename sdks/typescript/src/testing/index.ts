/**
 * Helpers for tests of programs that use Sluice: a server in memory, and a recorder of what is sent.
 *
 * @packageDocumentation
 */
export { Recorder, type Expected, type RecordedMessage } from "./recorder.js";
export { startServer, TestServer, type Advance, type TestServerOptions } from "./server.js";

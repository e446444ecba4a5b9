import { afterAll, beforeAll } from "vitest";
import { startServer, type TestServer, type TestServerOptions } from "../../src/testing/index.js";
import { freePorts } from "./ports.js";

/** A server in memory on a port of the tests. */
export async function serve(options: TestServerOptions = {}): Promise<TestServer> {
  return startServer({ listen: `127.0.0.1:${await freePorts(1)}`, ...options });
}

/** A server for all tests of a file. */
export function useServer(options: TestServerOptions = {}): { readonly current: TestServer } {
  let server: TestServer | undefined;
  beforeAll(async () => {
    server = await serve(options);
  });
  afterAll(() => server?.stop());
  return {
    get current() {
      return server as TestServer;
    },
  };
}

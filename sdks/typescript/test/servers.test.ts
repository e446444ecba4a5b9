import { createServer, type Server, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Client } from "../src/index.js";
import { freePorts } from "./support/ports.js";
import { useServer } from "./support/server.js";
import { failure } from "./support/until.js";

const server = useServer();
const sockets: Socket[] = [];
let silent: Server;
let silentUrl: string;

beforeAll(async () => {
  const port = await freePorts(1);
  silentUrl = `http://127.0.0.1:${port}`;
  silent = createServer((socket) => sockets.push(socket));
  await new Promise<void>((resolve) => silent.listen(port, "127.0.0.1", resolve));
});
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  silent.close();
});

test("a server that is not there, or does not answer, is passed by", async () => {
  const servers = ["http://127.0.0.1:1", silentUrl, server.current.url];
  await using client = new Client({ servers, requestTimeoutMs: 300 });
  expect((await client.send("mail", "hello")).duplicate).toBe(false);
  expect(client.server).toBe(server.current.url);
  await using worker = client.worker("mail", (job) => job.text());
  expect((await client.request("mail", "again")).text()).toBe("again");
  await worker.stop();
});

test("what is not repeatable is not repeated where it may have taken effect", async () => {
  await using client = new Client({ servers: [silentUrl, server.current.url], requestTimeoutMs: 300 });
  const error = await failure(client.locks.break("key"));
  expect(error).toMatchObject({ code: "timed_out", mayHaveTakenEffect: true });
  expect(await client.locks.break("key")).toBe(0);
});

test("a call is repeated for as long as the options say", async () => {
  const began = performance.now();
  await using client = new Client({ servers: "http://127.0.0.1:1", connectRetryForMs: 500 });
  const error = await failure(client.send("mail", ""));
  expect(error).toMatchObject({ code: "unreachable", mayHaveTakenEffect: false });
  expect(performance.now() - began).toBeGreaterThan(200);
  const late = failure(client.calls.messages.send({ queue: "mail" }, { timeoutMs: 100 }));
  expect(await late).toMatchObject({ code: "timed_out" });
});

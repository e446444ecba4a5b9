import { expect, test } from "vitest";
import type { Sender } from "../src/index.js";
import { Recorder, startServer } from "../src/testing/index.js";
import { serve } from "./support/server.js";
import { failure } from "./support/until.js";

async function signUp(sender: Sender, name: string): Promise<void> {
  const options = { priority: 5, idempotencyKey: `welcome-${name}` };
  await sender.send("mail", { to: name, kind: "welcome" }, options);
  await sender.sendMany("audit", [{ payload: "signed up" }, { payload: "welcomed", tags: ["mail"] }]);
}

test("a recorder knows what was sent", async () => {
  const recorder = new Recorder();
  recorder.assertNothingSent();
  await signUp(recorder, "ann");
  const mail = recorder.assertSent("mail", { payload: { to: "ann" }, priority: 5 });
  expect(mail).toEqual({
    queue: "mail",
    id: "recorded-0",
    payload: { to: "ann", kind: "welcome" },
    priority: 5,
  });
  recorder.assertSent("audit", (message) => message.tags?.[0] === "mail");
  expect(recorder.find("audit").length).toBe(2);
  expect(() => recorder.assertSent("mail", { payload: { to: "bob" } })).toThrow(/sent were:\n  mail: .*ann/);
  expect(() => recorder.assertSent("audit", { tags: ["mail", "x"] })).toThrow();
  expect(() => recorder.assertNothingSent("mail")).toThrow(/nothing was to be sent/);
  recorder.assertNothingSent("other");
  recorder.clear();
  recorder.assertNothingSent();
});

test("a recorder sends on if it is given a client", async () => {
  await using server = await serve();
  const client = server.client();
  const recorder = new Recorder(client);
  await signUp(recorder, "ann");
  const [message] = await client.receive("mail");
  expect(message?.id).toBe(recorder.assertSent("mail").id);
});

test("a program that is not there is told with what to do", async () => {
  const error = await failure(startServer({ bin: "/none/sluice" }));
  expect(error).toMatchObject({ code: "failed", message: expect.stringContaining("set SLUICE_BIN") });
});

test("a server that refuses to start tells why", async () => {
  const error = await failure(serve({ args: ["--shards", "none"] }));
  expect(error).toMatchObject({ code: "failed", message: expect.stringContaining("--shards") });
});

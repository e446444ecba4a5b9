import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import type { Sender } from "../src/index.js";
import { Recorder, startServer } from "../src/testing/index.js";
import { serve } from "./support/server.js";
import { failure, until } from "./support/until.js";

const DAY_MS = 86_400_000;

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

test("a day passes at once: a delayed message, a lease and a schedule", async () => {
  await using server = await serve();
  const client = server.client();
  await client.send("later", "tomorrow", { delayMs: DAY_MS });
  await client.send("held", "once more");
  expect((await client.receive("held")).map((message) => message.attempt)).toEqual([1]);
  await client.schedules.put("hourly", { everyMs: DAY_MS / 24, queue: "reports", payload: "report" });
  const [before, began] = [await server.now(), performance.now()];
  const after = await server.advance({ hours: 24 });
  expect(performance.now() - began).toBeLessThan(2_000);
  expect(after.getTime() - before.getTime()).toBeGreaterThanOrEqual(DAY_MS);
  expect((await client.receive("later")).map((message) => message.text())).toEqual(["tomorrow"]);
  expect((await client.receive("held")).map((message) => message.attempt)).toEqual([2]);
  expect((await client.receive("reports", { max: 100 })).length).toBe(24);
});

test("the time moves by any unit, and forward only", async () => {
  await using server = await serve();
  await server.advance({ days: 1, hours: 1, minutes: 1, seconds: 1, milliseconds: 1 });
  const { aheadMs } = await server.client().calls.testing.getTime({});
  expect(Number(aheadMs)).toBe(((25 * 60 + 1) * 60 + 1) * 1_000 + 1);
  expect(await failure(server.advance({ seconds: -1 }))).toBeInstanceOf(RangeError);
  const tooFar = await failure(server.advance({ days: 200 * 365 }));
  expect(tooFar).toMatchObject({ code: "invalid_argument" });
});

test("a server ends with the process that has started it", async () => {
  const bin = process.env.SLUICE_BIN || "sluice";
  const script = `
    const { spawn } = require("node:child_process");
    const server = spawn(process.argv[1], ["serve", "--test"], { stdio: ["pipe", "pipe", "ignore"] });
    server.stdout.once("data", (line) => process.stdout.write(line, () => process.kill(process.pid, "SIGKILL")));
  `;
  const { stdout } = spawnSync(process.execPath, ["-e", script, bin], { encoding: "utf8" });
  const { url } = JSON.parse(stdout) as { url: string };
  await until(() => fetch(`${url}/healthz`).then(() => false, () => true));
});

test("a program that is not there is told with what to do", async () => {
  const error = await failure(startServer({ bin: "/none/sluice" }));
  expect(error).toMatchObject({ code: "failed", message: expect.stringContaining("set SLUICE_BIN") });
});

test("a server that refuses to start tells why", async () => {
  const error = await failure(serve({ args: ["--shards", "none"] }));
  expect(error).toMatchObject({ code: "failed", message: expect.stringContaining("--shards") });
});

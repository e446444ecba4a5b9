import { createServer } from "node:net";

/** Ports of the tests of this package, so that they keep out of the way of others on the same machine. */
const FIRST = Number(process.env.SLUICE_TEST_PORTS ?? 24_000);
const COUNT = 490;

/** A run of free ports, picked at random so that files of tests that run together do not meet. */
export async function freePorts(count: number): Promise<number> {
  for (let tries = 0; tries < 100; tries += 1) {
    const first = FIRST + Math.floor(Math.random() * (COUNT - count));
    const ports = Array.from({ length: count }, (_, index) => first + index);
    if ((await Promise.all(ports.map(isFree))).every(Boolean)) return first;
  }
  throw new Error("no free ports");
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

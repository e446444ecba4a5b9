import { expect, test } from "vitest";
import { Leases } from "../src/worker/leases.js";

test("leases are due at half time, and again when an extend fails", () => {
  const leases = new Leases(40_000);
  leases.add("a", 0);
  leases.add("b", 30_000);
  expect(leases.takeDue(14_000)).toEqual([]);
  expect(leases.takeDue(20_000)).toEqual(["a"]);
  expect(leases.takeDue(24_000)).toEqual([]);
  expect(leases.takeDue(30_000)).toEqual(["a"]);
  leases.extended("a", 30_000);
  expect(leases.takeDue(40_000)).toEqual([]);
});

test("a lease that is not extended in time is over", () => {
  const leases = new Leases(40_000);
  const lease = leases.add("a", 0);
  const lost = lease.signal;
  leases.extended("a", 10_000);
  expect(leases.over(49_000)).toEqual([]);
  expect(leases.over(50_000)).toEqual(["a"]);
  expect([leases.lose("a", "over"), leases.lose("a", "again")]).toEqual([true, false]);
  expect([lost.aborted, lost.reason, lease.isLost]).toEqual([true, "over", true]);
  expect([leases.receipts(), leases.takeDue(60_000), leases.over(60_000)]).toEqual([[], [], []]);
});

test("a signal that is asked for after the loss has aborted", () => {
  const leases = new Leases(40_000);
  const lease = leases.add("a", 0);
  leases.lose("a", "over");
  expect([lease.signal.aborted, lease.signal.reason]).toEqual([true, "over"]);
});

import { create, fromBinary, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { expect, test } from "vitest";
import { ReadFrameSchema } from "../src/gen/sluice/client/frames_pb.js";
import { DeliveredSchema, type Delivered } from "../src/gen/sluice/v1/common_pb.js";
import { DeliveriesSchema, ServerFrameSchema } from "../src/gen/sluice/v1/session_pb.js";
import { readDeliveries } from "../src/worker/reading.js";

/** A message in which each field has a value of its own. */
function full(text: string): Delivered {
  const values = DeliveredSchema.fields.map((field) => {
    if (field.fieldKind === "list" && field.listKind === "message") {
      return [field.localName, [{ name: `${text} a`, value: `${text} b` }, { name: "c", value: "" }]];
    }
    if (field.fieldKind === "list") return [field.localName, [`${text} x`, "", "y"]];
    const type = field.fieldKind === "scalar" ? field.scalar : undefined;
    const kinds: Record<number, unknown> = {
      4: BigInt(Number.MAX_SAFE_INTEGER - field.number),
      9: `${text} ${field.number}`,
      12: new TextEncoder().encode(`${text} ${field.number}`),
      13: 4_000_000_000 - field.number,
    };
    return [field.localName, kinds[type as number]];
  });
  const init = Object.fromEntries(values) as MessageInitShape<typeof DeliveredSchema>;
  expect(Object.values(init)).not.toContain(undefined);
  return create(DeliveredSchema, init);
}

function withoutType(message: object): object {
  return JSON.parse(JSON.stringify(message, (name, value: unknown) => {
    if (name.startsWith("$")) return undefined;
    return typeof value === "bigint" ? `${value}` : value;
  })) as object;
}

test.each(["short", "ünïcödé \u{1f600}", "long ".repeat(1_000)])("all fields are read: %s", (text) => {
  const sent = [full(text), create(DeliveredSchema), create(DeliveredSchema, { checkpoint: new Uint8Array() })];
  const octets = toBinary(DeliveriesSchema, create(DeliveriesSchema, { consumer: 1, messages: sent }));
  expect(readDeliveries(octets).map(withoutType)).toEqual(sent.map(withoutType));
  expect(readDeliveries(octets).map(({ checkpoint }) => checkpoint?.length)).toEqual([
    sent[0]?.checkpoint?.length, undefined, 0,
  ]);
});

test("fields that are not known are left out", () => {
  const inner = new BinaryWriter().tag(1, WireType.LengthDelimited).string("a");
  inner.tag(900, WireType.Varint).uint32(7).tag(901, WireType.LengthDelimited).string("new");
  inner.tag(902, WireType.Bit64).fixed64(1n).tag(3, WireType.LengthDelimited).string("q");
  const outer = new BinaryWriter().tag(903, WireType.Bit32).fixed32(1);
  outer.tag(2, WireType.LengthDelimited).bytes(inner.finish());
  expect(readDeliveries(outer.finish())).toMatchObject([{ id: "a", queue: "q" }]);
});

test("what is cut off is refused", () => {
  const octets = toBinary(DeliveriesSchema, create(DeliveriesSchema, { messages: [full("x")] }));
  for (let length = 1; length < octets.length; length += 1) {
    expect(() => readDeliveries(octets.subarray(0, length)), `${length}`).toThrow();
  }
});

test("each frame of the server is read", () => {
  const names = ServerFrameSchema.oneofs[0]?.fields.map(({ name, number }) => `${name} ${number}`);
  expect(ReadFrameSchema.oneofs[0]?.fields.map(({ name, number }) => `${name} ${number}`)).toEqual(names);
  const frame = create(ServerFrameSchema, { frame: { case: "draining", value: { graceMs: 5n } } });
  expect(fromBinary(ReadFrameSchema, toBinary(ServerFrameSchema, frame)).frame.case).toBe("draining");
});

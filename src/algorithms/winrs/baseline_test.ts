import assert from "#assert";
import fc from "fast-check";
import { deviceWith, nominal, paperBlock } from "../../../tests/support/winrs_figures.ts";
import { convProblem } from "../../problem/conv_problem.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import {
  baselineSegments,
  blockCount,
  dataElements,
  filterElements,
  intensity,
  mostSegments,
} from "./baseline.ts";
import { OMEGAS, parseOmega } from "./omega.ts";
import { fastestPair } from "./pair.ts";

const problem = (text: string) => parseDescriptor(text, "bwd-filter");
const VGG_SECOND = problem('mb32ic64ih224oc64kh3ph1n"vgg16:conv1_2"');

function baseline(text: string, inFlight = 132): number {
  const found = problem(text);
  const pair = fastestPair(found.filterSize.at(-1)!, found.outputSize.at(-1)!, nominal);
  const device = deviceWith({ multiprocessors: inFlight });
  return baselineSegments(found, pair, paperBlock(pair.first), device, 0.5);
}

Deno.test("blockCount() gives VGG16's second layer 6 blocks a segment for Ω8(3,6) at 64x32", () => {
  const omega = parseOmega("a8n3r6");
  assert.equal(blockCount(VGG_SECOND, omega, paperBlock(omega)), 6);
  assert.equal(blockCount(VGG_SECOND, omega, { outChannels: 64, inChannels: 64 }), 3);
});

Deno.test("blockCount() rounds channels up in each group", () => {
  const grouped = problem("g3mb1ic99ih8oc195kh3ph1");
  assert.equal(blockCount(grouped, parseOmega("a8n3r6"), paperBlock(parseOmega("a8n3r6"))), 36);
});

Deno.test("blockCount() refuses a kernel whose n does not fit the filter", () => {
  assert.throws(() => blockCount(VGG_SECOND, OMEGAS[1]!, paperBlock(OMEGAS[1]!)), {
    name: "RangeError",
    message: "Cannot count blocks: a filter of 3x3 is not made of 2 elements at once",
  });
});

Deno.test("intensity() is 2·B_N·B_M / (B_N·r + B_M·α)", () => {
  assert.equal(intensity(parseOmega("a8n3r6"), { outChannels: 64, inChannels: 32 }), 6.4);
});

Deno.test("dataElements() and filterElements() count X, ∇Y and ∇W", () => {
  const grouped = problem("g2mb3ic4ih5oc6kh2");
  assert.equal(filterElements(grouped), 6 * 2 * 4);
  assert.equal(dataElements(grouped), 3 * (25 * 4 + 16 * 6) + 48);
});

Deno.test("baselineSegments() is 1 where one segment fills the device, and many for few blocks", () => {
  assert.equal(baseline("mb32ic1024ih14oc1024kh3ph1"), 1);
  assert.equal(baseline("mb32ic64ih224oc64kh3ph1"), 132 * 8 / 6);
});

Deno.test("baselineSegments() grows with the workgroups in flight until work or memory limits it", () => {
  const counts = [8, 32, 132, 528].map((inFlight) =>
    baseline("mb32ic128ih112oc128kh3ph1", inFlight)
  );
  assert.deepEqual(counts, [...counts].sort((a, b) => a - b));
  assert.ok(counts[0]! < counts[3]!);
});

Deno.test("baselineSegments() is a whole number from 1 that Z_max bounds", () => {
  const cases = fc.record({
    batch: fc.integer({ min: 1, max: 64 }),
    channels: fc.integer({ min: 1, max: 300 }),
    size: fc.integer({ min: 9, max: 120 }),
    filter: fc.integer({ min: 1, max: 9 }),
    inFlight: fc.integer({ min: 1, max: 600 }),
  });
  fc.assert(fc.property(cases, ({ batch, channels, size, filter, inFlight }) => {
    const made = convProblem({
      op: "bwd-filter",
      batch,
      inChannels: channels,
      outChannels: channels,
      inputSize: [size, size],
      filterSize: [filter, filter],
    });
    const pair = fastestPair(filter, size - filter + 1, nominal);
    const device = deviceWith({ multiprocessors: inFlight });
    const count = baselineSegments(made, pair, paperBlock(pair.first), device, 0.5);
    assert.ok(Number.isInteger(count) && count >= 1);
    assert.ok(count <= mostSegments(made, 0.5));
  }));
});

import assert from "#assert";
import {
  convProblem,
  type ConvTensor,
  operandTensors,
  OPERATIONS,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { referenceConv } from "../reference/reference.ts";
import { elementCount, unravelIndex } from "../tensor/tensor.ts";
import { simulatedCase } from "../../tests/support/simulated_cases.ts";

const tiles = (...axes: readonly (readonly [n: number, r: number])[]): PlanArithmetic => ({
  tiles: [{ axes: axes.map(([n, r]) => ({ n, r })) }],
});

Deno.test("convFloors() bound what products of a tile's window can sum up to, of every operation, group, axis and dilation", async () => {
  for (const op of OPERATIONS) {
    const forward = op !== "bwd-filter";
    for (const [groups, dilation] of [[1, 1], [2, 1], [1, 2]] as const) {
      for (
        const [size, filter, arithmetic] of [
          [[13], [3], tiles(forward ? [4, 3] : [3, 4])],
          [[9, 11], [3, 3], tiles(forward ? [4, 3] : [3, 2], forward ? [4, 3] : [3, 2])],
          [[9, 11], [3, 5], tiles([1, 1], forward ? [2, 5] : [5, 2])],
          [[5, 6, 7], [3, 3, 3], tiles([1, 1], [1, 1], forward ? [2, 3] : [3, 2])],
        ] as const
      ) {
        const problem = convProblem({
          op,
          batch: 2,
          groups,
          inChannels: 2 * groups,
          outChannels: 3 * groups,
          inputSize: size,
          filterSize: filter,
          paddingBegin: filter.map((taps) => taps >> 1),
          dilation: filter.map(() => dilation),
        });
        const { request, floors } = simulatedCase(problem, arithmetic, "normal");
        const { magnitudes } = await referenceConv(problem, request.inputs, { workers: 0 });
        const floorOf = floors()!.size;
        // Of places a floor is the mean of windows, of taps the sum of all lines.
        const windows = forward
          ? arithmetic.tiles![0]!.axes.reduce(
            (all, { n }, d) => all * (n + filter[d]! - 1) / filter[d]!,
            1,
          )
          : 1;
        magnitudes.forEach((magnitude, i) => {
          const most = floorOf(i) * Math.sqrt(windows) * (1 + 1e-12);
          assert.ok(magnitude <= most, `${op} ${size} ${groups} ${i}: ${magnitude} of ${most}`);
        });
      }
    }
  }
});

Deno.test("convFloors() are what constant data sums up to, and 0 where a tile's window has nothing", async () => {
  const problem = parseDescriptor("mb1ic3ih20oc2kh3ph1");
  const given = simulatedCase(problem, tiles([4, 3], [4, 3]), "constant");
  const { magnitudes } = await referenceConv(problem, given.request.inputs, { workers: 0 });
  const inner = 8 * 20 + 8;
  assert.ok(Math.abs(given.floors()!.size(inner) / magnitudes[inner]! - 1) < 1e-6);
  const dotted = simulatedCase(problem, tiles([4, 3], [4, 3]), "normal");
  const input = dotted.request.inputs.input!.data as Float32Array;
  // Tiles begin at multiples of 4, and read a place before them and behind.
  input.forEach((value, i) => input[i] = i % 400 === 11 * 20 + 12 ? value : 0);
  const shape = tensorShape(problem, resultTensor("fwd"));
  for (let i = 0; i < elementCount(shape); i++) {
    const [, , y, x] = unravelIndex(i, shape) as [number, number, number, number];
    const meets = [y, x].every((at, d) => {
      const first = at - at % 4;
      const dot = [11, 12][d]!;
      return dot >= first - 1 && dot <= first + 4;
    });
    assert.equal(dotted.floors()!.size(i) > 0, meets, `${y}, ${x}`);
  }
  assert.equal(simulatedCase(problem, {}, "normal").floors(), undefined);
});

Deno.test("convFloors() are no larger than sums where images, or channels, are large in one operand and small in the other", async () => {
  for (const op of OPERATIONS) {
    const forward = op !== "bwd-filter";
    const problem = parseDescriptor("mb2ic2ih9iw20oc2kh3ph1", op);
    const { request, floors } = simulatedCase(
      problem,
      forward ? tiles([2, 3], [2, 3]) : tiles([1, 1], [3, 2]),
      "constant",
    );
    // What sums go over: images of a gradient, else channels.
    const axes = { fwd: { input: 1, filter: 1 }, "bwd-data": { output: 1, filter: 0 } };
    const summed: Partial<Record<ConvTensor, number>> = forward
      ? axes[op]
      : { input: 0, output: 0 };
    operandTensors(op).forEach((which, i) => {
      const shape = tensorShape(problem, which);
      const data = request.inputs[which]!.data as Float32Array;
      data.forEach((value, at) => {
        if (unravelIndex(at, shape)[summed[which]!] === i) data[at] = 1000 * value;
      });
    });
    const { magnitudes } = await referenceConv(problem, request.inputs, { workers: 0 });
    const most = Math.max(...magnitudes);
    const { size, square, meanSquare } = floors()!;
    for (let i = 0; i < magnitudes.length; i++) {
      assert.ok(size(i) <= 1.5 * most, `${op} ${i}: ${size(i)} of ${most}`);
      // Results of both channels are alike.
      assert.ok(Math.abs(meanSquare(i) / square(i) - 1) < 1e-6, `${op} ${i}`);
    }
  }
});

import assert from "#assert";
import fc from "fast-check";
import {
  type ConvProblem,
  convProblem,
  type ConvProblemInit,
  OPERATIONS,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { LAYOUTS } from "../tensor/layout.ts";
import { elementCount, unravelIndex } from "../tensor/tensor.ts";
import { referenceConv, type ReferenceResult } from "./reference.ts";
import {
  axisSizes,
  inputsOf,
  naiveConv,
  randomTensors,
  withOp,
} from "../../tests/support/reference_data.ts";

const problems: fc.Arbitrary<ConvProblemInit> = fc.record({
  axes: axisSizes({ input: 9, filter: 4, stride: 4, dilation: 3 })(3),
  batch: fc.integer({ min: 1, max: 3 }),
  groups: fc.integer({ min: 1, max: 3 }),
  inChannels: fc.integer({ min: 1, max: 5 }),
  outChannels: fc.integer({ min: 1, max: 6 }),
}).map(({ axes, batch, groups, inChannels, outChannels }) => ({
  batch,
  groups,
  inChannels: groups * inChannels,
  outChannels: groups * outChannels,
  ...axes,
}));

/** Largest difference of values and magnitudes, in units of the magnitude (or of 1 where that is 0). */
function difference(
  got: ReferenceResult,
  want: { values: Float64Array; magnitudes: Float64Array },
): number {
  let worst = 0;
  for (let i = 0; i < got.values.length; i++) {
    const at = got.indices?.[i] ?? i;
    const scale = want.magnitudes[at]! || 1;
    worst = Math.max(
      worst,
      Math.abs(got.values[i]! - want.values[at]!) / scale,
      Math.abs(got.magnitudes[i]! - want.magnitudes[at]!) / scale,
    );
  }
  return worst;
}

Deno.test("referenceConv() equals the definition for any shape, operation and layout", async () => {
  await fc.assert(
    fc.asyncProperty(
      problems,
      fc.constantFrom(...OPERATIONS),
      fc.constantFrom(...LAYOUTS),
      fc.integer(),
      async (init, op, layout, seed) => {
        const problem = withOp(init, op);
        const tensors = randomTensors(problem, seed);
        const got = await referenceConv(problem, inputsOf(problem, tensors, layout), {
          workers: 0,
        });
        assert.deepEqual(got.shape, tensorShape(problem, resultTensor(op)));
        assert.equal(got.values.length, elementCount(got.shape));
        assert.ok(difference(got, naiveConv(problem, tensors)) < 1e-14);
      },
    ),
    { numRuns: 300 },
  );
});

Deno.test("referenceConv() samples the same values it computes whole", async () => {
  await fc.assert(
    fc.asyncProperty(
      problems,
      fc.constantFrom(...OPERATIONS),
      fc.constantFrom(...LAYOUTS),
      fc.integer({ min: 1, max: 200 }),
      async (init, op, layout, count) => {
        const problem = withOp(init, op);
        const tensors = randomTensors(problem, count);
        const sample = { count, seed: count };
        const inputs = inputsOf(problem, tensors, layout);
        const got = await referenceConv(problem, inputs, { sample, workers: 0 });
        const total = elementCount(got.shape);
        assert.ok(got.values.length >= Math.min(count, total));
        if (got.indices === undefined) assert.equal(got.values.length, total);
        else assert.equal(new Set(got.indices).size, got.values.length);
        assert.ok(difference(got, naiveConv(problem, tensors)) < 1e-14);
      },
    ),
    { numRuns: 300 },
  );
});

Deno.test("referenceConv() keeps the adjoint identity", async () => {
  await fc.assert(
    fc.asyncProperty(problems, fc.integer(), async (init, seed) => {
      const tensors = randomTensors(convProblem(init), seed);
      const [y, dx, dw] = await Promise.all(OPERATIONS.map(async (op) => {
        const problem = withOp(init, op);
        const { values } = await referenceConv(problem, inputsOf(problem, tensors));
        return values;
      })) as [Float64Array, Float64Array, Float64Array];
      const forward = inner(y, tensors.output);
      assert.ok(Math.abs(forward - inner(dx, tensors.input)) < 1e-11);
      assert.ok(Math.abs(forward - inner(dw, tensors.filter)) < 1e-11);
    }),
    { numRuns: 150 },
  );
});

function inner(a: Float64Array, b: Float64Array): number {
  return a.reduce((sum, value, i) => sum + value * b[i]!, 0);
}

/** Large enough for Workers, and for more than one block of rows, columns and depth. */
const LARGE: ConvProblemInit = {
  batch: 8,
  inChannels: 60,
  outChannels: 262,
  groups: 2,
  inputSize: [15, 17],
  filterSize: [3, 3],
  stride: [2, 1],
  paddingBegin: [1, 0],
  paddingEnd: [0, 2],
};

Deno.test("referenceConv() on Workers equals referenceConv() on one thread", async () => {
  for (const op of OPERATIONS) {
    const problem = withOp(LARGE, op);
    const tensors = randomTensors(problem, 3);
    const inputs = inputsOf(problem, tensors, "nhwc");
    const progress: number[] = [];
    const many = await referenceConv(problem, inputs, {
      workers: 2,
      onProgress: (fraction) => progress.push(fraction),
    });
    assert.equal(progress.at(-1), 1);
    assert.ok(many.values.buffer instanceof SharedArrayBuffer, "expected Workers to have run");
    const one = await referenceConv(problem, inputs, { workers: 0 });
    assert.deepEqual(many.values, one.values.map((value) => value));
    assert.deepEqual(many.magnitudes, one.magnitudes);
  }
  const deep = parseDescriptor("mb8ic8ih56oc40kh3", "bwd-filter");
  const inputs = inputsOf(deep, randomTensors(deep, 3), "nhwc");
  const sampled = await referenceConv(deep, inputs, {
    workers: 2,
    sample: { count: 2000, seed: 1 },
  });
  assert.ok(sampled.values.buffer instanceof SharedArrayBuffer, "expected Workers to have run");
  assert.equal(sampled.values.length, 2000);
  assert.ok(difference(sampled, await referenceConv(deep, inputs, { workers: 0 })) < 1e-14);
});

Deno.test("referenceConv() keeps Σ|a||b| when the first negative value comes late", async () => {
  const problem = parseDescriptor("mb1ic700iw3oc5kw1");
  const tensors = randomTensors(problem, 1);
  for (const which of ["input", "filter"] as const) {
    tensors[which].forEach((value, i) => tensors[which][i] = Math.abs(value));
  }
  tensors.input[699 * 3] = -0.5;
  const got = await referenceConv(problem, inputsOf(problem, tensors));
  assert.ok(difference(got, naiveConv(problem, tensors)) < 1e-14);
});

Deno.test("referenceConv() samples every channel equally, corners and the last element included", async () => {
  const init = {
    batch: 4,
    inChannels: 6,
    outChannels: 10,
    inputSize: [20, 30],
    filterSize: [5, 5],
  };
  for (const op of OPERATIONS) {
    const problem: ConvProblem = withOp(init, op);
    const axis = op === "bwd-filter" ? 0 : 1;
    const inputs = inputsOf(problem, randomTensors(problem, 1));
    const got = await referenceConv(problem, inputs, { sample: { count: 195, seed: 7 } });
    const places = Array.from(got.indices!, (index) => unravelIndex(index, got.shape));
    const channels = got.shape[axis]!;
    const counts = new Array<number>(channels).fill(0);
    for (const place of places) counts[place[axis]!]!++;
    assert.deepEqual(counts, new Array<number>(channels).fill(Math.ceil(195 / channels)));
    const text = new Set(places.map((place) => place.slice(2).join()));
    const [h, w] = [got.shape[2]! - 1, got.shape[3]! - 1];
    for (const corner of [`0,0`, `${h},0`, `0,${w}`, `${h},${w}`]) {
      assert.ok(text.has(corner), `${op}: corner ${corner} is not sampled`);
    }
    assert.ok(got.indices!.includes(elementCount(got.shape) - 1), `${op}: no last element`);
    const again = await referenceConv(problem, inputs, { sample: { count: 195, seed: 7 } });
    assert.deepEqual(again.indices, got.indices);
    const other = await referenceConv(problem, inputs, { sample: { count: 195, seed: 8 } });
    assert.notDeepEqual(other.indices, got.indices);
  }
});

Deno.test("referenceConv() adds bias and activation, and their magnitude", async () => {
  const problem = parseDescriptor("mb2ic3ih5oc4kh3");
  const tensors = randomTensors(problem, 5);
  const bias = Float32Array.of(1, -2, 0.5, -0.25);
  const plain = naiveConv(problem, tensors);
  const got = await referenceConv(problem, { ...inputsOf(problem, tensors), bias }, {
    epilogue: { bias: true, activation: "relu" },
  });
  got.values.forEach((value, i) => {
    const shift = bias[Math.floor(i / 9) % 4]!;
    assert.ok(Math.abs(value - Math.max(0, plain.values[i]! + shift)) < 1e-14);
    assert.ok(Math.abs(got.magnitudes[i]! - plain.magnitudes[i]! - Math.abs(shift)) < 1e-14);
  });
});

import assert from "#assert";
import {
  type ConvProblemInit,
  OPERATIONS,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { convertLayout, filterLayoutFor, LAYOUTS } from "../tensor/layout.ts";
import { tensor } from "../tensor/tensor.ts";
import { projectConv, type Projection } from "./projection.ts";
import { referenceConv } from "./reference.ts";
import {
  inputsOf,
  naiveConv,
  randomTensors,
  type Tensors,
  withOp,
} from "../../tests/support/reference_data.ts";

const PROBLEMS: { readonly [what: string]: ConvProblemInit } = {
  plain: {
    batch: 3,
    inChannels: 5,
    outChannels: 7,
    inputSize: [9, 8],
    filterSize: [3, 2],
    paddingBegin: [1, 0],
    paddingEnd: [2, 1],
  },
  "groups and strides": parseDescriptor("g2mb2ic10ih11iw13oc12kh3sh2sw3ph1pw2"),
  "one axis, dilated": parseDescriptor("mb2ic4iw29oc9kw4sw2dw2"),
  "three axes": parseDescriptor("g2mb2ic6id4ih5iw6oc4kd2kh3kw1sd1sh2sw1pd0ph1pw0dd1dh0dw0"),
  "a filter smaller than its stride": parseDescriptor("mb1ic3ih10iw9oc5kh1kw2sh3"),
  depthwise: parseDescriptor("g6mb2ic6ih7oc6kh3ph1"),
};

/** Squares of everything. */
function squared(tensors: Tensors): Tensors {
  const square = (values: Float64Array) => values.map((value) => value * value);
  return {
    input: square(tensors.input),
    filter: square(tensors.filter),
    output: square(tensors.output),
  };
}

/** Weighted sums of a place's members, with the weights that unit results show. */
function weighted(projection: Projection, values: Float64Array, power: 1 | 2): Float64Array {
  const result = new Float64Array(projection.expected.length);
  for (let place = 0; place < result.length; place++) {
    for (const index of projection.indicesOf(place)) {
      const unit = new Float64Array(values.length);
      unit[index] = 1;
      const weight = projection.project(unit).sums[place]!;
      result[place]! += weight ** power * values[index]!;
    }
  }
  return result;
}

function nearly(got: Float64Array, want: Float64Array, what: string): void {
  const size = want.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-300);
  got.forEach((value, i) => {
    assert.ok(Math.abs(value - want[i]!) <= 1e-12 * size, `${what} ${i}: ${value}, not ${want[i]}`);
  });
}

for (const [what, init] of Object.entries(PROBLEMS)) {
  Deno.test(`projectConv(): the projection of a right result, ${what}`, async () => {
    for (const op of OPERATIONS) {
      const problem = withOp(init, op);
      const tensors = randomTensors(problem, 3);
      const { values } = naiveConv(problem, tensors);
      const shape = tensorShape(problem, resultTensor(op));
      for (const layout of LAYOUTS) {
        const result = op === "bwd-filter" ? filterLayoutFor(layout) : layout;
        const from = op === "bwd-filter" ? "kcrs" : "nchw";
        const lying = convertLayout(tensor("f64", shape, new Float64Array(values)), from, result);
        const inputs = { ...inputsOf(problem, tensors, layout), result };
        const projection = await projectConv(problem, inputs, { seed: 5 });
        nearly(projection.project(lying.data).sums, projection.expected, `${op} ${layout}`);
      }
    }
  });
}

Deno.test("referenceConv() computes the results that are listed", async () => {
  for (const op of OPERATIONS) {
    const problem = withOp(PROBLEMS["groups and strides"]!, op);
    const inputs = inputsOf(problem, randomTensors(problem, 3), "nhwc");
    const whole = await referenceConv(problem, inputs);
    const indices = Float64Array.of(0, 17, 18, whole.values.length - 1);
    const some = await referenceConv(problem, inputs, { indices });
    assert.deepEqual(some.indices, indices);
    nearly(some.values, indices.map((index) => whole.values[index]!), op);
  }
});

Deno.test("projectConv(): weights, variances and members are what they say", async () => {
  for (const what of ["plain", "groups and strides", "one axis, dilated"]) {
    for (const op of OPERATIONS) {
      const problem = withOp(PROBLEMS[what]!, op);
      const tensors = randomTensors(problem, 3);
      const canonical = op === "bwd-filter" ? "kcrs" : "nchw";
      const inputs = { ...inputsOf(problem, tensors), result: canonical } as const;
      const projection = await projectConv(problem, inputs, { seed: 5 });
      const { values } = naiveConv(problem, tensors);
      const squares = naiveConv(problem, squared(tensors)).values;
      nearly(weighted(projection, values, 1), projection.expected, `${what} ${op}`);
      nearly(weighted(projection, squares, 2), projection.variances, `${what} ${op} squares`);
      const all = new Set<number>();
      for (let place = 0; place < projection.expected.length; place++) {
        assert.equal(projection.indicesOf(place).length, projection.members);
        projection.indicesOf(place).forEach((index) => all.add(index));
      }
      assert.equal(all.size, values.length);
    }
  }
});

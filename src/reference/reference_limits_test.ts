import assert from "#assert";
import { convProblem } from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { referenceConv } from "./reference.ts";
import { inputsOf, randomTensors, withOp } from "../../tests/support/reference_data.ts";

Deno.test("referenceConv() gives an empty result, or zeros, for empty tensors", async () => {
  const init = { batch: 0, inChannels: 2, outChannels: 3, inputSize: [4, 4], filterSize: [3, 3] };
  const empty = withOp(init, "fwd");
  const y = await referenceConv(empty, inputsOf(empty, randomTensors(empty, 1)), {
    sample: { count: 10, seed: 1 },
  });
  assert.deepEqual([y.shape, y.values.length], [[0, 3, 2, 2], 0]);
  const gradient = withOp(init, "bwd-filter");
  const dw = await referenceConv(gradient, inputsOf(gradient, randomTensors(gradient, 1)));
  assert.deepEqual(dw.values, new Float64Array(54));
});

Deno.test("referenceConv() starts Workers, but none for a tiny problem", async () => {
  const { Worker } = globalThis;
  let started = 0;
  globalThis.Worker = class extends Worker {
    constructor(...args: ConstructorParameters<typeof Worker>) {
      super(...args);
      started++;
    }
  };
  try {
    for (const [channels, size, expected] of [[4, 8, 0], [64, 32, 2]] as const) {
      const problem = convProblem({
        batch: 1,
        inChannels: channels,
        outChannels: channels,
        inputSize: [size, size],
        filterSize: [3, 3],
      });
      const inputs = inputsOf(problem, randomTensors(problem, 1));
      await referenceConv(problem, inputs, { workers: 2 });
      assert.equal(started, expected, `${channels} channels`);
    }
  } finally {
    globalThis.Worker = Worker;
  }
});

Deno.test("referenceConv() refuses operands that do not fit", async () => {
  const problem = parseDescriptor("mb1ic1iw4oc1kw2");
  const inputs = inputsOf(problem, randomTensors(problem, 1));
  await assert.rejects(
    referenceConv(problem, { input: inputs.input! }),
    new TypeError("Cannot compute the fwd reference: filter is missing"),
  );
  await assert.rejects(
    referenceConv(problem, { ...inputs, filter: { data: new Float32Array(3), layout: "kcrs" } }),
    new TypeError(
      "Cannot compute the fwd reference: filter has 3 elements, its shape [1,1,2] has 2",
    ),
  );
  await assert.rejects(
    referenceConv(problem, { ...inputs, input: { ...inputs.input!, layout: "kcrs" } }),
    /kcrs is no layout of the input/,
  );
  await assert.rejects(
    referenceConv(problem, inputs, { epilogue: { bias: true, activation: "none" } }),
    /bias has 0 values, the output has 1 channels/,
  );
  await assert.rejects(
    referenceConv(problem, inputs, { sample: { count: 0, seed: 1 } }),
    /count is 0, expected > 0/,
  );
});

Deno.test("referenceConv() stops when its signal is aborted", async () => {
  const problem = parseDescriptor("mb16ic256ih28oc256kh3");
  const inputs = inputsOf(problem, randomTensors(problem, 1));
  for (const workers of [0, 2]) {
    const user = new AbortController();
    const done: number[] = [];
    const onProgress = (fraction: number) => {
      done.push(fraction);
      setTimeout(() => user.abort(new Error("enough")));
    };
    await assert.rejects(
      referenceConv(problem, inputs, { workers, signal: user.signal, onProgress }),
      new Error("enough"),
    );
    assert.equal(done.length, 1);
    assert.ok(done[0]! < 1, `${done[0]} was done`);
  }
  await assert.rejects(
    referenceConv(problem, inputs, { signal: AbortSignal.abort(new Error("no")) }),
    new Error("no"),
  );
});

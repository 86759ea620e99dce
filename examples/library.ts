/**
 * Convolves two tensors with the library, checks and writes the result, then looks into a plan:
 * `deno run -A examples/library.ts [y.npy]`
 */
import {
  checkConvolution,
  convolve,
  convProblem,
  fillTensor,
  openDevice,
  planConv,
  supportedAlgorithms,
  tensor,
  tensorShape,
  writeNpy,
} from "../mod.ts";

// A problem has sizes only; the layout in memory is an option of `convolve`.
const problem = convProblem({
  batch: 4,
  inChannels: 32,
  outChannels: 64,
  inputSize: [28, 28],
  filterSize: [3, 3],
  paddingBegin: [1, 1],
});
const operands = {
  input: fillTensor("f32", [4, 28, 28, 32], "normal", 1).data,
  filter: fillTensor("f32", [64, 3, 3, 32], "normal", 2).data,
  bias: fillTensor("f32", [64], "normal", 3).data,
};

// A device is opened once and closed at the end of its scope.
using gpu = await openDevice();
const options = { layout: "nhwc", epilogue: { bias: true, activation: "relu" } } as const;
const done = await convolve(gpu, problem, operands, options);
console.log(`${done.plan.kernel} on ${gpu.info.adapter}: [${done.shape.join(", ")}]`);

// Against FP64 on the CPU, by limits that follow from the problem and the algorithm.
const { verdict, accuracy } = await checkConvolution(done, operands);
console.log(
  `${verdict}: ${accuracy.checked} outputs checked, MARE ${accuracy.mare?.toExponential(2)}`,
);

const [path] = Deno.args;
if (path !== undefined) await writeNpy(path, tensor("f32", done.shape, done.result));

// Plans are data, made without a device: what would run where, and how much memory it would take.
const request = {
  problem,
  dtype: "f32",
  layout: "nhwc",
  filterLayout: "krsc",
  epilogue: options.epilogue,
  limits: gpu.limits,
} as const;
console.log(`input ${tensorShape(problem, "input")}, output ${tensorShape(problem, "output")}`);
for (const { name, reason } of supportedAlgorithms({ ...request, algorithm: "auto" })) {
  if (reason !== undefined) {
    console.log(`${name}: ${reason}`);
    continue;
  }
  const { kernel, passes, workspaceBytes } = planConv({ ...request, algorithm: name });
  console.log(`${name}: ${kernel}, ${passes.length} passes, ${workspaceBytes} bytes of workspace`);
}
if (verdict !== "pass") Deno.exit(1);

import assert from "#assert";
import { parseSuite, type SuiteProduct } from "../src/bench/suite.ts";
import { convProblem } from "../src/problem/conv_problem.ts";
import { convTransposeProblem } from "../src/problem/conv_transpose.ts";
import { printDescriptor } from "../src/problem/descriptor.ts";
import { printGemm } from "../src/problem/gemm_suite.ts";
import { ROOT, run } from "./cli.ts";
import { pythonWith } from "./python.ts";

const SCRIPT = `
import sys
sys.path.insert(0, "tools")
from wgconv_torch import Layers, add_conv, product_line
layers = Layers("res_net")
stem = ["float32", [1, 3, 224, 224], [64, 3, 7, 7], [1, 64, 112, 112], (2, 2), (3, 3), (1, 1), 1, False]
add_conv(layers, "stem", ["fwd"], *stem)
add_conv(layers, "other", ["fwd"], *stem)
add_conv(layers, "up", ["bwd-data", "bwd-filter"], "float16", [1, 16, 7, 7], [16, 8, 3, 3], [1, 8, 14, 14],
         [2], [1], [1], 1, True)
add_conv(layers, "one", ["fwd"], "bfloat16", [2, 8, 20], [16, 4, 3], [2, 16, 20], [1], [2], [2], 2, False)
add_conv(layers, "same", ["fwd"], "float32", [1, 4, 8, 8], [4, 4, 2, 2], [1, 4, 8, 8], [1], [0], [1], 1, False)
layers.add(product_line(8, 10, 64, "nt"), 'fc "#1', dtype="int8")
layers.add(product_line(5, 6, 4, "nt", 12), "attention")
layers.skip("lstm")
print(layers.text())
`;

Deno.test("the suite of tools/wgconv_torch.py says what PyTorch's layers compute", async () => {
  const python = await pythonWith("math");
  if (python === undefined) throw new Error("there is no Python");
  const { code, stdout, stderr } = await run(python, ["-c", SCRIPT], { cwd: ROOT });
  assert.equal(code, 0, stderr);
  assert.match(
    stdout,
    /^# Layers of res-net: 7 layers of 6 sizes\n# not listed: lstm \(1 calls\)\n/,
  );
  const products: SuiteProduct[] = [];
  const problems = parseSuite(stdout, "s", "fwd", undefined, {
    onProduct: (product) => void products.push(product),
  });
  const plain = (name: string, init: Parameters<typeof convProblem>[0]) =>
    printDescriptor({ ...convProblem(init), name: `res-net_${name}` });
  const up = convTransposeProblem({
    ...{ batch: 1, inChannels: 16, outChannels: 8, inputSize: [7, 7], filterSize: [3, 3] },
    ...{ stride: 2, padding: 1, outputPadding: 1 },
  });
  const sizes = { batch: 1, inChannels: 4, outChannels: 4, inputSize: [8, 8], filterSize: [2, 2] };
  assert.deepEqual(problems.map((problem) => printDescriptor(problem)), [
    plain("stem*2", {
      ...{ batch: 1, inChannels: 3, outChannels: 64, inputSize: [224, 224] },
      ...{ filterSize: [7, 7], stride: 2, padding: 3 },
    }),
    printDescriptor({ ...up, name: "res-net_up" }),
    plain("one", {
      ...{ batch: 2, groups: 2, inChannels: 8, outChannels: 16, inputSize: [20] },
      ...{ filterSize: [3], padding: 2, dilation: 2 },
    }),
    plain("same", { ...sizes, paddingBegin: [0, 0], paddingEnd: [1, 1] }),
  ]);
  assert.deepEqual(
    problems.map(({ run = {} }) => [run.ops, run.types?.map(({ dtype }) => dtype)]),
    [
      [undefined, undefined],
      [["bwd-data", "bwd-filter"], ["f16"]],
      [["fwd"], ["f32"]],
      [["fwd"], ["f32"]],
    ],
  );
  assert.deepEqual(products.map((product) => printGemm(product)), [
    '8 10 64 n t n"res-net_fc---1"',
    '5 6 4 n t x12 n"res-net_attention"',
  ]);
  assert.deepEqual(products.map(({ run }) => run?.types?.[0]?.dtype), ["i8", "f32"]);
});

/** Integer convolutions of u8 operands and with zero points on the driver at hand: exactly what ONNX defines. */
import assert from "#assert";
import fc from "fast-check";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { randomAxes, randomSizes } from "../random_axes.ts";
import { plainIntegers } from "../support/plain_reference.ts";
import { full, test } from "./driver.ts";
import type { AlgorithmName } from "../../src/algorithms/plan.ts";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import { type ConvProblem, convProblem, tensorShape } from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { BYTE_RANGE, type IntegerOperands } from "../../src/problem/conv_elements.ts";
import type { HostOperands } from "../../src/run/subject.ts";
import { RandomWords } from "../../src/tensor/random.ts";
import { elementCount } from "../../src/tensor/tensor.ts";

/** All values of a byte, both ends among them more often. */
function bytes(count: number, seed: number): Uint8Array<ArrayBuffer> {
  const words = new Uint32Array(count);
  new RandomWords(seed).fill(words);
  return Uint8Array.from(words, (word) => [0, 127, 128, 255, word >>> 8, word >>> 8][word % 6]!);
}

/** Operands of a problem, with zero points of filters where there are such. */
function operandsOf(problem: ConvProblem, integers: IntegerOperands): HostOperands {
  const { inputDtype = "i8", filterDtype = "i8", filterZeroPoint } = integers;
  const { outChannels } = problem;
  const made = (which: "input" | "filter", dtype: "i8" | "u8") => {
    const data = bytes(elementCount(tensorShape(problem, which)), which.length);
    return dtype === "u8" ? data : new Int8Array(data.buffer);
  };
  const [least, most] = BYTE_RANGE[filterDtype];
  return {
    input: made("input", inputDtype),
    filter: made("filter", filterDtype),
    bias: Int32Array.from({ length: outChannels }, (_, k) => 1000 * k - 1500),
    scale: Float32Array.from({ length: outChannels }, (_, k) => 0.0003 * (1 + k % 5)),
    ...(filterZeroPoint === "channel"
      ? {
        filterZeroPoint: Int32Array.from(
          { length: outChannels },
          (_, k) => [least, most, 0, least + 100][k % 4]!,
        ),
      }
      : {}),
  };
}

/** What of operands a request reads. */
function read(operands: HostOperands, ...without: (keyof HostOperands)[]): HostOperands {
  return Object.fromEntries(
    Object.entries(operands).filter(([role]) => !without.includes(role as keyof HostOperands)),
  );
}

const SIGNS = [
  { inputDtype: "u8", inputZeroPoint: 7 },
  { inputDtype: "u8", inputZeroPoint: 255, filterDtype: "u8", filterZeroPoint: 128 },
  { inputDtype: "u8", filterDtype: "u8", filterZeroPoint: "channel" },
  { inputZeroPoint: -128, filterZeroPoint: 127 },
  { inputDtype: "u8", inputZeroPoint: 128, filterZeroPoint: "channel" },
] as const satisfies readonly IntegerOperands[];

const GOLDEN = {
  batch: 2,
  inputSize: [5, 4],
  filterSize: [3, 2],
  stride: [2, 1],
  paddingBegin: [1, 0],
  paddingEnd: [0, 2],
  dilation: [1, 2],
} as const;

test("sums of u8 operands and of zero points are ConvInteger's, padding and groups too", async (gpu) => {
  for (const integers of SIGNS) {
    for (const [inChannels, outChannels, groups] of [[8, 4, 1], [6, 4, 2]] as const) {
      const problem = convProblem({ ...GOLDEN, inChannels, outChannels, groups });
      const operands = operandsOf(problem, integers);
      for (const algorithm of ["direct", "implicit-gemm"] as const) {
        const choice = { algorithm, dtype: "i8", layout: "nhwc", integers } as const;
        const request = convRequest(gpu, problem, {
          ...choice,
          epilogue: { bias: true, activation: "none" },
        });
        const { result } = await checkedResult(gpu, request, read(operands, "scale"));
        const expected = plainIntegers(problem, operands, integers);
        assert.deepEqual([...result], expected, JSON.stringify([integers, groups, algorithm]));
      }
    }
  }
});

test("results of u8 and with zero points round halves to even, and saturate at both ends", async (gpu) => {
  const values = [0, 1, 2, 3, 4, 5, 6, 7, 250, 251, 252, 253, 254, 255];
  const problem = parseDescriptor(`mb1ic4iw${values.length}oc4kw1`);
  const input = Uint8Array.from(
    { length: 4 * values.length },
    (_, i) => i % 4 ? 4 : values[i >> 2]!,
  );
  const filter = Int8Array.from({ length: 16 }, (_, i) => i % 4 ? 0 : [1, -1, 3, -128][i >> 2]!);
  const integers = { inputDtype: "u8", inputZeroPoint: 4 } as const;
  for (const algorithm of ["direct", "implicit-gemm"] as const) {
    for (const filterZeroPoint of [undefined, "channel"] as const) {
      for (
        const [outDtype, zeroPoint] of [["u8", 2], ["i8", 127]] as const
      ) {
        const [least, most] = BYTE_RANGE[outDtype];
        const { result } = await checkedResult(
          gpu,
          convRequest(gpu, problem, {
            algorithm,
            dtype: "i8",
            outDtype,
            layout: "nhwc",
            epilogue: { ...NO_EPILOGUE, scale: 0.5, zeroPoint },
            integers: { ...integers, ...(filterZeroPoint ? { filterZeroPoint } : {}) },
          }),
          { input, filter, ...(filterZeroPoint ? { filterZeroPoint: new Int32Array(4) } : {}) },
        );
        const half = (value: number) => {
          const whole = Math.floor(value);
          return value - whole > 0.5 || value - whole === 0.5 && whole % 2 !== 0
            ? whole + 1
            : whole;
        };
        const expected = values.flatMap((value) =>
          [1, -1, 3, -128].map((weight) =>
            Math.max(least, Math.min(most, half((value - 4) * weight / 2) + zeroPoint))
          )
        );
        assert.deepEqual([...result], expected, `${algorithm} ${outDtype} ${zeroPoint}`);
      }
    }
  }
});

const problems = randomSizes({
  axes: randomAxes({ more: 5, stride: 3, dilation: 3 }),
  batch: fc.integer({ min: 1, max: 2 }),
  groups: fc.constantFrom(1, 1, 2, 3),
  groupIn: fc.constantFrom(1, 3, 4, 8, 16),
  groupOut: fc.constantFrom(1, 3, 4, 8),
});

test("random problems with random zero points equal the reference bit for bit", async (gpu) => {
  await fc.assert(
    fc.asyncProperty(
      problems,
      fc.constantFrom<AlgorithmName>("implicit-gemm", "direct"),
      fc.constantFrom<IntegerOperands>(...SIGNS),
      fc.record({ bias: fc.boolean(), activation: fc.constantFrom("none", "relu") }),
      fc.constantFrom(
        {},
        { outDtype: "u8", scale: 0.0005, zeroPoint: 130 },
        { outDtype: "i8", scale: "channel", zeroPoint: -3 },
      ),
      fc.constantFrom({}, { limits: 2048 }),
      async (init, algorithm, integers, ending, { outDtype, ...quantized }: Quantized, small) => {
        const problem = convProblem(init);
        const request = convRequest(gpu, problem, {
          algorithm,
          dtype: "i8",
          layout: "nhwc",
          integers,
          epilogue: { ...ending, ...quantized } as PlanRequest["epilogue"],
          ...(outDtype === undefined ? {} : { outDtype }),
          schedule: { ...(algorithm === "direct" ? {} : { policy: "tiny" }) },
          ...(small.limits === undefined ? {} : {
            limits: {
              ...gpu.limits,
              maxStorageBufferBindingSize: small.limits,
              maxStorageBuffersPerShaderStage: 10,
            },
          }),
        });
        const unread = [
          ...(ending.bias ? [] : ["bias" as const]),
          ...(quantized.scale === "channel" ? [] : ["scale" as const]),
        ];
        await checkedResult(gpu, request, read(operandsOf(problem, integers), ...unread));
      },
    ),
    { numRuns: full ? 300 : 24, seed: 20261128 },
  );
});

/** What becomes of sums. */
interface Quantized {
  readonly outDtype?: "i8" | "u8";
  readonly scale?: number | "channel";
  readonly zeroPoint?: number;
}

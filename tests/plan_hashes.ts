/**
 * What plans run, as hashes: the WGSL of each kernel, its bindings and its grid, for a matrix of problems, operations,
 * layouts and algorithms in both size modes. Names of kernels are left out, so that they may change where texts do not.
 */
import assert from "#assert";
import { createHash } from "node:crypto";
import { planBiasGradient } from "../src/algorithms/bias_gradient/plan.ts";
import { softwareDevice } from "../src/algorithms/device/software.ts";
import type { GemmRequest } from "../src/algorithms/gemm/operands.ts";
import { planGemm } from "../src/algorithms/gemm/plan.ts";
import { DEFAULT_LIMITS, type DeviceLimits, type Plan } from "../src/algorithms/plan.ts";
import { planConv } from "../src/algorithms/planner.ts";
import { algorithmNames } from "../src/algorithms/registry.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import type { KernelVariant } from "../src/kernels/variant.ts";
import type { MatrixUnits } from "../src/kernels/matrix_units.ts";
import { FLOAT_DTYPES, type Operation, OPERATIONS } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { ACTIVATIONS } from "../src/problem/activations.ts";
import { GEMM_DTYPES, gemmProblem, TRANSPOSES } from "../src/problem/gemm_problem.ts";
import { LAYOUTS } from "../src/tensor/layout.ts";
import { request } from "./plan_request.ts";

/** Where the hashes lie that plans are held against. */
export const PLAN_HASHES = new URL("../fixtures/plan_hashes.txt", import.meta.url);

/** An H200's limits. */
const LARGE: DeviceLimits = {
  ...DEFAULT_LIMITS,
  maxComputeWorkgroupStorageSize: 49_152,
  maxComputeInvocationsPerWorkgroup: 1024,
  maxStorageBufferBindingSize: 2 ** 31 - 4,
  maxBufferSize: 2 ** 32,
};

/** Sizes that divide tiles and sizes that do not; groups, strides, dilation, other paddings after, 1 to 3 axes. */
const PROBLEMS = [
  "mb32ic64ih56oc64kh3ph1",
  "mb5ic13ih11iw17oc19kh3kw5ph1pw2",
  "g4mb4ic32ih14oc48kh3ph1",
  "mb3ic24ih15oc40kh3sh2ph1",
  "mb2ic16ih13oc24kh3ph2dh1",
  "mb8ic3ih32oc64kh7sh2ph3",
  "mb4ic48iw41ow41oc20kw4pw1",
  "mb2ic8id7ih6iw9oc12kd3kh3kw3pd1ph1pw1",
  "mb32ic96ih7oc160kh1",
  "g32mb8ic32ih28oc32kh3ph1",
  "g24mb4ic24ih15oc48kh5sh2ph2",
  "g16mb4ic16ih31oc16kh31ph15",
];
const PRODUCTS = [[64, 64, 64], [512, 384, 1024], [37, 51, 29], [100, 3000, 7]] as const;

/** Of few rows or columns, which are a matrix times vectors: whole fours of both sides, and of none. */
const VECTORS = [[1, 4096, 2048], [1001, 1, 333], [3, 640, 512], [500, 5, 60]] as const;

/** An H200's largest of f16. */
const HALF_UNITS: MatrixUnits = {
  lanes: 32,
  cutsOff: true,
  units: [{ component: "f16", result: "f32", m: 16, n: 16, k: 16 }],
};

/** What else is asked for by name: elements, sums that are moved on, splits, pairs of WinRS. */
const CHOICES: readonly (readonly [
  string,
  Partial<PlanRequest> & { readonly op?: Operation },
])[] = [
  ...OPERATIONS.flatMap((op) =>
    (["direct", "implicit-gemm", "im2col"] as const)
      .filter((algorithm) => algorithm !== "im2col" || op === "fwd")
      .map((algorithm) => [`${op} ${algorithm} f16`, { op, algorithm, dtype: "f16" }] as const)
  ),
  ...OPERATIONS.flatMap((op) =>
    algorithmNames().map((algorithm) =>
      [`${op} ${algorithm} bf16`, { op, algorithm, dtype: "bf16" }] as const
    )
  ),
  ["fwd bf16 to f32", { dtype: "bf16", outDtype: "f32", schedule: { splits: 2 } }],
  ["fwd f16 to f32", { dtype: "f16", outDtype: "f32", schedule: { splits: 2 } }],
  ...OPERATIONS.map((op) =>
    [`${op} in halves`, {
      op,
      algorithm: "winograd2d-nonfused",
      math: "f16x3",
      matrixUnits: HALF_UNITS,
    }] as const
  ),
  ...(["direct", "implicit-gemm", "auto"] as const).map((algorithm) =>
    [`fwd ${algorithm} i8`, { algorithm, dtype: "i8" }] as const
  ),
  ["fwd i8 split", { dtype: "i8", schedule: { splits: 2 } }],
  ...(["direct", "implicit-gemm"] as const).map((algorithm) =>
    [`fwd ${algorithm} i8 to i8`, {
      algorithm,
      dtype: "i8",
      outDtype: "i8",
      epilogue: { bias: true, activation: "relu", scale: 0.001 },
    }] as const
  ),
  ["fwd i8 to i8 by channels", {
    dtype: "i8",
    outDtype: "i8",
    epilogue: { bias: false, activation: "none", scale: "channel" },
  }],
  ["fwd u8 to u8 with zero points", {
    dtype: "i8",
    outDtype: "u8",
    epilogue: { bias: true, activation: "relu", scale: "channel", zeroPoint: 3 },
    integers: { inputDtype: "u8", inputZeroPoint: 7, filterZeroPoint: "channel" },
  }],
  ...ACTIVATIONS.filter((activation) => activation !== "none").map((activation) =>
    [`fwd ${activation}`, { epilogue: { bias: true, activation } }] as const
  ),
  ["fwd stream-k", { schedule: { balance: "stream-k", policy: "small" } }],
  ["fwd winograd1d flushed", { algorithm: "winograd1d", tile: "F(2,3)", schedule: { flush: 64 } }],
  ["fwd winograd2d flushed", {
    algorithm: "winograd2d",
    tile: "F(2x2,3x3)",
    schedule: { flush: 64 },
  }],
  ["bwd-filter winrs f16 half-tile", {
    op: "bwd-filter",
    algorithm: "winrs",
    dtype: "f16",
    schedule: { halfTile: true },
  }],
  ["bwd-filter winrs pair", { op: "bwd-filter", algorithm: "winrs", pair: "a8n3r6,a4n3r2" }],
];
const VARIANTS: readonly KernelVariant[] = [
  { prefetch: false },
  { doubleBuffer: true },
  { unroll: false },
  { peel: false },
];

/** Lines `problem operation layout algorithm device: hash`, sorted as they are made. */
export function* planHashes(): Generator<string> {
  const devices: readonly [string, Partial<PlanRequest>][] = [
    ["large", { limits: LARGE }],
    ["software", { limits: DEFAULT_LIMITS, device: softwareDevice(2) }],
  ];
  for (const descriptor of PROBLEMS) {
    for (const op of OPERATIONS) {
      for (const layout of LAYOUTS) {
        for (const algorithm of [...algorithmNames(), "auto"] as const) {
          for (const [device, more] of devices) {
            const asked = request(parseDescriptor(descriptor, op), {
              ...{ layout, algorithm, limits: LARGE, ...more },
              epilogue: { bias: op === "fwd", activation: "none" },
            });
            const hash = hashOf((sizes) => planConv({ ...asked, sizes }));
            yield `${descriptor} ${op} ${layout} ${algorithm} ${device}: ${hash}`;
          }
        }
      }
    }
  }
  for (const descriptor of PROBLEMS.slice(0, 3)) {
    for (const layout of LAYOUTS) {
      for (const [name, more] of CHOICES) {
        if (more.dtype === "i8" && layout !== "nhwc") continue;
        const { op = "fwd", ...choice } = more;
        const asked = request(parseDescriptor(descriptor, op), {
          ...{ layout, limits: LARGE, algorithm: "implicit-gemm", ...choice },
        });
        yield `${descriptor} ${layout} ${name}: ${
          hashOf((sizes) => planConv({ ...asked, sizes }))
        }`;
      }
    }
  }
  for (const [m, n, k] of PRODUCTS) {
    for (const variant of VARIANTS) {
      const problem = gemmProblem({ m, n, k });
      const hash = hashOf((sizes) =>
        planGemm({ problem, dtype: "f32", limits: LARGE, sizes, schedule: { ...variant } })
      );
      yield `${m},${n},${k} f32 ${JSON.stringify(variant)}: ${hash}`;
    }
    const chained = { dtype: "f16", accumulate: "f16", limits: LARGE } as const;
    yield `${m},${n},${k} f16 summed in f16: ${
      hashOf((sizes) => planGemm({ problem: gemmProblem({ m, n, k }), ...chained, sizes }))
    }`;
    const halves = { dtype: "f32", math: "f16x3", limits: LARGE, matrixUnits: HALF_UNITS } as const;
    for (const transpose of ["nn", "tn", "nt"] as const) {
      const problem = gemmProblem({ m, n, k, transpose, beta: 2 });
      const hash = hashOf((sizes) => planGemm({ problem, ...halves, sizes }));
      yield `${m},${n},${k} ${transpose} f16x3: ${hash}`;
    }
    for (const dtype of ["f32", "f16", "bf16", "i8"] as const) {
      for (const transpose of ["nn", "tn", "nt"] as const) {
        const problem = gemmProblem({ m, n, k, transpose });
        const hash = hashOf((sizes) => planGemm({ problem, dtype, limits: LARGE, sizes }));
        yield `${m},${n},${k} ${transpose} ${dtype}: ${hash}`;
      }
    }
  }
  for (const [m, n, k] of VECTORS) {
    for (const dtype of GEMM_DTYPES) {
      for (const transpose of TRANSPOSES) {
        for (const [device, more] of devices) {
          const problem = gemmProblem({ m, n, k, transpose, beta: 2 });
          const request = { problem, dtype, limits: more.limits!, ...more };
          yield `${m},${n},${k} ${transpose} ${dtype} ${device}: ${
            hashOf((sizes) => planGemm({ ...request, sizes } as GemmRequest))
          }`;
        }
      }
    }
  }
  for (const descriptor of PROBLEMS) {
    for (const layout of LAYOUTS) {
      for (const dtype of FLOAT_DTYPES) {
        const problem = parseDescriptor(descriptor);
        const hash = hashOf((sizes) =>
          planBiasGradient({ problem, layout, dtype, limits: LARGE, sizes })
        );
        yield `${descriptor} bias ${layout} ${dtype}: ${hash}`;
      }
    }
  }
}

/** Hash of a plan in both size modes; what cannot be planned says so. */
function hashOf(planOf: (sizes: "constant" | "uniform") => Plan): string {
  const hash = createHash("sha256");
  try {
    for (const sizes of ["constant", "uniform"] as const) {
      for (const { kernel, bindings, uniforms, grid } of planOf(sizes).passes) {
        const text = kernel.wgsl.replace(/\/\/.*/g, "").replace(/\s+/g, " ").trim();
        assert.ok(!/\bbf16\b/.test(text), `${kernel.name}: WGSL has no bf16`);
        hash.update(text);
        hash.update(JSON.stringify([bindings, kernel.bindings, grid, [...uniforms ?? []]]));
      }
    }
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith("Cannot plan: ")) throw error;
    return `refused ${createHash("sha256").update(error.message).digest("hex").slice(0, 8)}`;
  }
  return hash.digest("hex").slice(0, 16);
}

/** What matrix units multiply, for tests of what its kernels are: of every shape that NVIDIA's GPUs have. */
import assert from "#assert";
import { request } from "./plan_request.ts";
import { softwareDevice } from "../src/algorithms/device/software.ts";
import type { GemmRequest } from "../src/algorithms/gemm/operands.ts";
import { planGemm } from "../src/algorithms/gemm/plan.ts";
import { implicitProduct } from "../src/algorithms/implicit_gemm/product.ts";
import { DEFAULT_LIMITS } from "../src/algorithms/plan.ts";
import { planConv } from "../src/algorithms/planner.ts";
import { isRefusal } from "../src/algorithms/refusal.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { omegaName, OMEGAS } from "../src/algorithms/winrs/omega.ts";
import type { Kernel } from "../src/kernels/kernel.ts";
import { isMatrixTile, matrixPolicies, parseMatrixPolicy } from "../src/kernels/matrix_policies.ts";
import type { MatrixUnit } from "../src/kernels/matrix_units.ts";
import {
  convProblem,
  type ConvProblemInit,
  type Operation,
  OPERATIONS,
} from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { gemmProblem, TRANSPOSES } from "../src/problem/gemm_problem.ts";
import { type FilterLayout, LAYOUTS } from "../src/tensor/layout.ts";

/** WebGPU's on an H200. */
export const limits = {
  ...DEFAULT_LIMITS,
  maxBufferSize: 2 ** 32 - 4,
  maxStorageBufferBindingSize: 2 ** 31 - 4,
  maxComputeWorkgroupStorageSize: 49_152,
  maxComputeInvocationsPerWorkgroup: 1024,
};

const unit = (
  types: "f16 f32" | "i8 i32",
  shape: string,
  fixesSubgroups = false,
): MatrixUnit => {
  const [component, result] = types.split(" ") as [MatrixUnit["component"], MatrixUnit["result"]];
  const [m, n, k] = shape.split("x").map(Number) as [number, number, number];
  return { component, result, m, n, k, ...(fixesSubgroups && { fixesSubgroups }) };
};

/** Units of an H200 with the threads of their subgroups. */
const UNITS: readonly (readonly [MatrixUnit, number])[] = [
  [unit("f16 f32", "16x16x16"), 32],
  [unit("f16 f32", "16x8x16"), 32],
  [unit("f16 f32", "16x8x8"), 32],
  [unit("i8 i32", "16x16x32"), 32],
  [unit("i8 i32", "16x8x32"), 32],
];

/** Those that Dawn lists elsewhere: of RDNA 3 and 4, of Intel's Xe-HPG and Xe2. */
const OTHER_UNITS: typeof UNITS = [
  [unit("f16 f32", "16x16x16", true), 32],
  [unit("i8 i32", "16x16x16", true), 32],
  [unit("f16 f32", "8x8x16", true), 8],
  [unit("i8 i32", "8x8x32", true), 8],
  [unit("f16 f32", "8x16x16", true), 16],
  [unit("i8 i32", "8x16x32", true), 16],
];

/** Tiles by their sizes, of workgroups and subgroups. */
const TILES = ["128x128x32_64x32m", "256x128x32_64x64m", "128x192x32_64x48m", "64x32x32_16x32m"];

/** Results whose sums are stored on their way. */
const STORED = { outDtype: "f32", schedule: { flush: 128 } } as const;

/** Tiles of f32 in halves, whose steps are of high and of low ones. */
const SPLIT_TILES = ["128x128x32_64x32m", "128x64x32_32x32m", "64x64x64_32x16m"];

/** Units with what they multiply: what they take as it is, and f32 in halves. */
const productsOf = (units: typeof UNITS) =>
  units.flatMap(([unit, lanes]) =>
    (unit.component === "f16" ? ["f16", "f32"] as const : ["i8"] as const).map((dtype) => ({
      unit,
      lanes,
      dtype,
    }))
  );
export const PRODUCTS = productsOf(UNITS);
/** The same of units that NVIDIA's driver does not list. */
export const OTHER_PRODUCTS = productsOf(OTHER_UNITS);

/** Products of matrices, with every policy that a unit has, and of every variant. */
export function kernels({ unit, lanes, dtype }: (typeof PRODUCTS)[number]): Kernel[] {
  const found = new Map<string, Kernel>();
  const matrixUnits = { lanes, units: [unit] };
  const split = dtype === "f32";
  const add = (size: number, more: Partial<GemmRequest>, rest = {}) => {
    const problem = gemmProblem({ m: size, n: size, k: size, ...rest });
    const request = {
      ...(split && { math: "f16x3" as const }),
      ...more,
      schedule: { policy: "matrix-small", ...more.schedule },
    };
    const plan = planGemm({ problem, dtype, limits, matrixUnits, ...request });
    for (const { kernel } of plan.passes) {
      assert.ok(kernel.workgroupBytes <= 49_152, `${kernel.name} takes ${kernel.workgroupBytes}`);
      found.set(kernel.name, kernel);
    }
  };
  for (const { name: policy } of matrixPolicies(unit, lanes, split)) {
    TRANSPOSES.forEach((transpose, i) => {
      // Of each a size that no vector divides, and one of eights.
      for (const size of i % 2 === 0 ? [33, 2064] : [64, 2049]) {
        add(size, { schedule: { policy } }, { transpose });
      }
    });
    // Sums that are stored on their way, and such as leave one by one.
    if (dtype === "f16") {
      for (const size of [2064, 2049]) {
        add(size, { schedule: { policy, flush: 512 }, outDtype: "f32" });
      }
    }
    add(8192, { schedule: { policy, splits: 2 } });
    add(8192, { schedule: { policy, balance: "none" } });
  }
  const tiles = (split ? SPLIT_TILES : TILES).filter((name) =>
    parseMatrixPolicy(name, unit, lanes, split)
  );
  for (const policy of tiles) {
    for (const transpose of TRANSPOSES) add(2049, { schedule: { policy } }, { transpose });
  }
  const epilogue = { alpha: 3, beta: -2, residual: true, bias: "row", activation: "relu" } as const;
  for (const sizes of ["constant", "uniform"] as const) {
    add(640, { sizes, schedule: { splits: 2 } }, epilogue);
    add(640, { sizes, schedule: { balance: "stream-k" }, device: softwareDevice(4) }, epilogue);
    for (const variant of [{ doubleBuffer: true }, { prefetch: false }]) {
      add(640, { sizes, schedule: { ...variant } }, epilogue);
      if (dtype === "f16") {
        add(640, { sizes, ...STORED, schedule: { ...variant, ...STORED.schedule } }, epilogue);
      }
    }
    if (dtype !== "f16") continue;
    add(640, { sizes, ...STORED, schedule: { splits: 2, ...STORED.schedule } }, epilogue);
    add(640, {
      sizes,
      device: softwareDevice(4),
      ...STORED,
      schedule: { balance: "stream-k", ...STORED.schedule },
    }, epilogue);
  }
  if (dtype === "f16") {
    const stored = [...found.keys()].filter((name) => /_stored\d+_/.test(name));
    assert.ok(stored.length > 10, stored.join());
  }
  return [...found.values()];
}

/** WinRS' kernels in f16, each by the unit alone, of sums in one piece and in parts. */
export function sliceKernels({ unit, lanes }: (typeof PRODUCTS)[number]): Kernel[] {
  const found = new Map<string, Kernel>();
  for (
    const omega of OMEGAS.filter(({ alpha, rows }) =>
      rows === undefined && (alpha === 4 || alpha === 8)
    )
  ) {
    for (const [batch, flush] of [[32, undefined], [3, 64]] as const) {
      const problem = convProblem({
        op: "bwd-filter",
        batch,
        inChannels: 72,
        outChannels: 200,
        inputSize: [30, 30],
        filterSize: [3, omega.n],
        paddingBegin: [1, 1],
      });
      for (const sizes of ["constant", "uniform"] as const) {
        const plan = planConv(
          request(problem, {
            algorithm: "winrs",
            dtype: "f16",
            layout: "nhwc",
            limits,
            matrixUnits: { lanes, units: [unit] },
            schedule: { halfTile: true, ...(flush === undefined ? {} : { flush }) },
            maxBoundRatio: Infinity,
            pair: omegaName(omega),
            sizes,
          }),
        );
        for (const { kernel } of plan.passes) found.set(kernel.name, kernel);
      }
    }
  }
  return [...found.values()];
}

/** Convolutions of f32 in halves, with every policy that fits: Winograd in separate passes wherever channels lie, and implicit GEMM. */
export function splitConvKernels({ unit, lanes }: (typeof PRODUCTS)[number]): Kernel[] {
  const found = new Map<string, Kernel>();
  const policies = [...matrixPolicies(unit, lanes, true).map(({ name }) => name), ...SPLIT_TILES]
    .filter((name) => parseMatrixPolicy(name, unit, lanes, true) ?? !isMatrixTile(name));
  const add = (
    sides: Partial<ConvProblemInit>,
    more: Partial<PlanRequest>,
  ) => {
    const problem = convProblem({
      ...{ batch: 5, inChannels: 100, outChannels: 72, inputSize: [30, 30], filterSize: [3, 3] },
      ...{ paddingBegin: [1, 1], ...sides },
    });
    const plan = planConv(request(problem, {
      ...{ math: "f16x3", limits, matrixUnits: { lanes, units: [unit] }, ...more },
    }));
    assert.match(plan.kernel, /_f16x3_/);
    for (const { kernel } of plan.passes) {
      assert.ok(kernel.workgroupBytes <= 49_152, `${kernel.name}: ${kernel.workgroupBytes}`);
      found.set(kernel.name, kernel);
    }
  };
  for (const [i, policy] of policies.entries()) {
    for (const [j, op] of OPERATIONS.entries()) {
      const layout = LAYOUTS[(i + j) % LAYOUTS.length]!;
      const sizes = i % 2 === 0 ? "constant" : "uniform";
      for (const [inChannels, splits] of [[100, 1], [700, 1], [700, 2]] as const) {
        const algorithm = "winograd2d-nonfused";
        add({ op, inChannels }, { algorithm, layout, schedule: { policy, splits }, sizes });
      }
      // Halves in turn are whole steps of the deepest tile.
      const whole = { op, batch: 29, inChannels: 704, outChannels: 128 };
      const lying = op === "bwd-filter" || layout === "chwn" ? "nhwc" : layout;
      for (const [stride, splits] of [[1, 2], [2, 1]] as const) {
        const choice = {
          algorithm: "implicit-gemm",
          layout: lying,
          schedule: { policy, splits },
          sizes,
        } as const;
        add({ ...whole, stride: [stride, stride] }, choice);
      }
    }
  }
  return [...found.values()];
}

/** A request for implicit GEMM of halves in nhwc on a unit. */
export function halfRequest(
  { unit, lanes }: { readonly unit: MatrixUnit; readonly lanes: number },
  problem: Parameters<typeof request>[0],
  more: Parameters<typeof request>[1],
) {
  return request(problem, {
    algorithm: "implicit-gemm",
    dtype: "f16",
    layout: "nhwc",
    filterLayout: "krsc",
    limits,
    matrixUnits: { lanes, units: [unit] },
    ...more,
  });
}

/** Rows of taps: operation, taps and their dilation, filter layout, channels, and padding behind the last axis. */
type Rows = readonly [Operation, number, number, FilterLayout, number, number, end?: number];

const HALF_ROWS: readonly Rows[] = [
  ["fwd", 3, 1, "krsc", 72, 200],
  ["bwd-data", 3, 2, "krsc", 72, 200],
  ["fwd", 2, 5, "crsk", 72, 200],
  // Filters of which four are loaded at once, and one.
  ["fwd", 3, 1, "crsk", 72, 204],
  ["bwd-data", 4, 1, "krsc", 76, 200],
  ["fwd", 3, 1, "kcrs", 16, 72],
  ["fwd", 5, 1, "krsc", 72, 200],
  ["bwd-data", 7, 1, "krsc", 72, 200],
  ["bwd-filter", 2, 1, "krsc", 72, 200],
  ["bwd-filter", 3, 2, "krsc", 72, 200],
  ["bwd-filter", 4, 1, "krsc", 72, 200],
  ["bwd-filter", 5, 1, "krsc", 72, 200],
  // Rows that follow each other.
  ["bwd-filter", 3, 1, "krsc", 72, 200, 1],
  ["bwd-filter", 2, 2, "krsc", 72, 200, 1],
];

const BYTE_ROWS: readonly Rows[] = [
  ["fwd", 3, 1, "krsc", 80, 200],
  ["fwd", 2, 5, "krsc", 16, 204],
  ["fwd", 5, 1, "krsc", 48, 72],
  ["fwd", 7, 1, "krsc", 80, 200],
];

/** Convolutions by rows of taps, with every policy that fits. */
export function rowKernels({ unit, lanes, dtype }: (typeof PRODUCTS)[number]): Kernel[] {
  const found = new Map<string, Kernel>();
  const bytes = dtype === "i8";
  for (
    const [op, taps, dilation, filterLayout, inChannels, outChannels, end = 0] of bytes
      ? BYTE_ROWS
      : HALF_ROWS
  ) {
    const problem = convProblem({
      op,
      batch: 5,
      inChannels,
      outChannels,
      inputSize: [40, 40],
      filterSize: [3, taps],
      paddingBegin: [1, 1],
      paddingEnd: [0, end],
      dilation: [1, dilation],
    });
    const rows = op === "bwd-filter" ? { ring: taps } : { row: taps };
    for (const [i, { name: policy }] of matrixPolicies(unit, lanes, false, rows).entries()) {
      const asked = halfRequest({ unit, lanes }, problem, {
        ...(bytes ? { dtype } : {}),
        schedule: {
          ...(bytes ? {} : { halfTile: true }),
          tapRows: true,
          policy,
          ...(end > 0 ? { balance: "none" as const } : {}),
        },
        filterLayout,
        sizes: i % 2 === 0 ? "constant" : "uniform",
      });
      // Rows of the largest tiles are more than there is room for.
      const product = implicitProduct(asked);
      if (isRefusal(product)) {
        assert.equal(product.kind, "limit", `${policy}: ${product.text}`);
        continue;
      }
      const plan = planConv(asked);
      assert.match(plan.kernel, new RegExp(`_2d_row${taps}`));
      if (end > 0 && i % 2 === 0) assert.match(plan.kernel, /jy\d/);
      for (const { kernel } of plan.passes) {
        assert.ok(kernel.workgroupBytes <= 49_152, `${kernel.name} takes ${kernel.workgroupBytes}`);
        found.set(kernel.name, kernel);
      }
    }
  }
  assert.ok(found.size > 25, `${found.size}`);
  return [...found.values()];
}

/** Backward-data with strides in f16, by classes of them, with every policy of the unit. */
export function classKernels({ unit, lanes }: (typeof PRODUCTS)[number]): Kernel[] {
  const found = new Map<string, Kernel>();
  const problem = parseDescriptor("mb5ic72ih30iw31oc40kh3kw4sh2sw2ph1pw1", "bwd-data");
  for (const [i, { name: policy }] of matrixPolicies(unit, lanes).entries()) {
    for (const outDtype of ["f16", "f32"] as const) {
      const plan = planConv(
        halfRequest({ unit, lanes }, problem, {
          schedule: { policy },
          outDtype,
          sizes: i % 2 === 0 ? "constant" : "uniform",
        }),
      );
      for (const { kernel } of plan.passes) found.set(kernel.name, kernel);
    }
  }
  const classes = [...found.keys()].filter((name) => name.includes("_classes"));
  assert.ok(classes.length > 10, classes.join());
  return [...found.values()];
}

/** Products and WinRS on matrix units of every shape that NVIDIA's GPUs have are valid to Dawn's compiler. */
import assert from "#assert";
import { softwareDevice } from "../src/algorithms/device/h200.ts";
import { planGemm } from "../src/algorithms/gemm/plan.ts";
import type { GemmRequest } from "../src/algorithms/gemm/request.ts";
import { implicitProduct } from "../src/algorithms/implicit_gemm/product.ts";
import { DEFAULT_LIMITS } from "../src/algorithms/plan.ts";
import { planConv, tryPlanConv } from "../src/algorithms/planner.ts";
import { isRefusal } from "../src/algorithms/refusal.ts";
import { omegaName, OMEGAS } from "../src/algorithms/winrs/omega.ts";
import { openValidator } from "../src/gpu/validate.ts";
import type { Kernel } from "../src/kernels/kernel.ts";
import { matrixPolicies } from "../src/kernels/matrix_policies.ts";
import { MATRIX_FEATURES, type MatrixUnit, unitShape } from "../src/kernels/matrix_units.ts";
import { convProblem } from "../src/problem/conv_problem.ts";
import { gemmProblem, TRANSPOSES } from "../src/problem/gemm_problem.ts";
import { request } from "./plan_request.ts";

/** WebGPU's on an H200. */
const limits = {
  ...DEFAULT_LIMITS,
  maxBufferSize: 2 ** 32 - 4,
  maxStorageBufferBindingSize: 2 ** 31 - 4,
  maxComputeWorkgroupStorageSize: 49_152,
  maxComputeInvocationsPerWorkgroup: 1024,
};

const unit = (types: "f16 f32" | "i8 i32", shape: string): MatrixUnit => {
  const [component, result] = types.split(" ") as [MatrixUnit["component"], MatrixUnit["result"]];
  const [m, n, k] = shape.split("x").map(Number) as [number, number, number];
  return { component, result, m, n, k };
};

/** Units of an H200 with the threads of their subgroups. */
const UNITS: readonly (readonly [MatrixUnit, number])[] = [
  [unit("f16 f32", "16x16x16"), 32],
  [unit("f16 f32", "16x8x16"), 32],
  [unit("f16 f32", "16x8x8"), 32],
  [unit("i8 i32", "16x16x32"), 32],
  [unit("i8 i32", "16x8x32"), 32],
];

/** Tiles by their sizes, of workgroups and subgroups. */
const TILES = ["128x128x32_64x32m", "256x128x32_64x64m", "128x192x32_64x48m", "64x32x32_16x32m"];

/** Results whose sums are stored on their way. */
const STORED = { outDtype: "f32", flush: 128 } as const;

/** Tiles of f32 in halves, whose steps are of high and of low ones. */
const SPLIT_TILES = ["128x128x32_64x32m", "128x64x32_32x32m", "64x64x64_32x16m"];

/** Units with what they multiply: what they take as it is, and f32 in halves. */
const PRODUCTS = UNITS.flatMap(([unit, lanes]) =>
  (unit.component === "f16" ? ["f16", "f32"] as const : ["i8"] as const).map((dtype) => ({
    unit,
    lanes,
    dtype,
  }))
);

function kernels({ unit, lanes, dtype }: (typeof PRODUCTS)[number]): Kernel[] {
  const found = new Map<string, Kernel>();
  const matrixUnits = { lanes, units: [unit] };
  const split = dtype === "f32";
  const add = (size: number, more: Partial<GemmRequest>, rest = {}) => {
    const problem = gemmProblem({ m: size, n: size, k: size, ...rest });
    const request = { policy: "matrix-small", ...(split && { math: "f16x3" as const }), ...more };
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
        add(size, { policy }, { transpose });
      }
    });
    // Sums that are stored on their way, and such as leave one by one.
    if (dtype === "f16") {
      for (const size of [2064, 2049]) add(size, { policy, outDtype: "f32", flush: 512 });
    }
    add(8192, { policy, splits: 2 });
    add(8192, { policy, balance: "none" });
  }
  for (const policy of split ? SPLIT_TILES : TILES) {
    for (const transpose of TRANSPOSES) add(2049, { policy }, { transpose });
  }
  const epilogue = { alpha: 3, beta: -2, residual: true, bias: "row", activation: "relu" } as const;
  for (const sizes of ["constant", "uniform"] as const) {
    add(640, { sizes, splits: 2 }, epilogue);
    add(640, { sizes, balance: "stream-k", device: softwareDevice(4) }, epilogue);
    for (const variant of [{ doubleBuffer: true }, { prefetch: false }, { vectorLoads: false }]) {
      add(640, { sizes, variant }, epilogue);
      if (dtype === "f16") add(640, { sizes, variant, ...STORED }, epilogue);
    }
    if (dtype !== "f16") continue;
    add(640, { sizes, splits: 2, ...STORED }, epilogue);
    add(640, { sizes, balance: "stream-k", device: softwareDevice(4), ...STORED }, epilogue);
  }
  if (dtype === "f16") {
    const stored = [...found.keys()].filter((name) => /_stored\d+_/.test(name));
    assert.ok(stored.length > 15, stored.join());
  }
  return [...found.values()];
}

/** WinRS' kernels in f16, each by the unit alone, of sums in one piece and in parts. */
function sliceKernels({ unit, lanes }: (typeof PRODUCTS)[number]): Kernel[] {
  const found = new Map<string, Kernel>();
  for (const omega of OMEGAS.filter(({ alpha }) => alpha === 4 || alpha === 8)) {
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
        const plan = planConv(request(problem, {
          algorithm: "winrs",
          dtype: "f16",
          layout: "nhwc",
          limits,
          matrixUnits: { lanes, units: [unit] },
          variant: { halfTile: true },
          maxBoundRatio: Infinity,
          pair: omegaName(omega),
          sizes,
          ...(flush === undefined ? {} : { flush }),
        }));
        for (const { kernel } of plan.passes) found.set(kernel.name, kernel);
      }
    }
  }
  return [...found.values()];
}

/** A request for implicit GEMM of halves in nhwc on a unit. */
function halfRequest(
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

/** Convolutions in f16 by rows of taps, with every policy that fits. */
function rowKernels({ unit, lanes }: (typeof PRODUCTS)[number]): Kernel[] {
  const found = new Map<string, Kernel>();
  for (
    const [op, taps, dilation] of [
      ["fwd", 3, 1],
      ["bwd-data", 3, 2],
      ["fwd", 2, 5],
      [
        "bwd-data",
        4,
        1,
      ],
      ["bwd-filter", 2, 1],
      ["bwd-filter", 3, 2],
      ["bwd-filter", 4, 1],
    ] as const
  ) {
    const problem = convProblem({
      op,
      batch: 5,
      inChannels: 72,
      outChannels: 200,
      inputSize: [40, 40],
      filterSize: [3, taps],
      paddingBegin: [1, 1],
      dilation: [1, dilation],
    });
    const rows = op === "bwd-filter" ? { ring: taps } : { row: taps };
    for (const [i, { name: policy }] of matrixPolicies(unit, lanes, false, rows).entries()) {
      const asked = halfRequest({ unit, lanes }, problem, {
        variant: { halfTile: true, tapRows: true },
        policy,
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
      for (const { kernel } of plan.passes) {
        assert.ok(kernel.workgroupBytes <= 49_152, `${kernel.name} takes ${kernel.workgroupBytes}`);
        found.set(kernel.name, kernel);
      }
    }
  }
  assert.ok(found.size > 25, `${found.size}`);
  return [...found.values()];
}

/** Bytes of what arrays of workgroup memory hold, and of what matrices do. */
const BYTES: Readonly<Record<string, number>> = {
  f16: 2,
  u32: 4,
  i8: 1,
  f32: 4,
  i32: 4,
  vec4f: 16,
  "vec4<i32>": 16,
  "vec4<f16>": 8,
  "vec4<u32>": 16,
  "vec2<u32>": 8,
};

/** Value of an index of whole numbers, as WGSL computes it. */
function valueOf(text: string, names: Readonly<Record<string, number>>): number {
  const words = text.replaceAll(/\b(\d+)u\b/g, "$1n").replaceAll(/\b[A-Za-z_]\w*/g, (name) => {
    if (name === "min") return name;
    assert.ok(name in names, `${name} of ${text}`);
    return `${names[name]}n`;
  });
  assert.match(words, /^[\dn\s()+*/%,-]+$|^min\(\d+n, \d+n\)$/);
  return Number(new Function("min", `return ${words}`)((a: bigint, b: bigint) => a < b ? a : b));
}

/** Matrices that a kernel's subgroups load and store, each by the last element of its array and the array's size. */
function matrixEnds({ name: kernel, wgsl, workgroupSize: [threads] }: Kernel, lanes: number) {
  const arrays = new Map(
    [...wgsl.matchAll(/var<workgroup> (\w+): array<(.+), (\d+)>;/g)].map(([, name, type, size]) =>
      [name!, { bytes: BYTES[type!]!, size: Number(size) }] as const
    ),
  );
  const places = [
    ...wgsl.matchAll(/^ {2}let (unit\w*|stage_first|sums_first|[ab]_first) = (.+);$/gm),
  ];
  // Where tiles of steps begin, which change places with each other.
  const rings = [...wgsl.matchAll(/^ {2}var (\w+_ring\d+) = (\d+)u;$/gm)]
    .map(([, name, at]) => [name!, Number(at)] as const);
  const load =
    /subgroupMatrixLoad<subgroup_matrix_(left|right)<(\w+), (\d+), (\d+)>, (\w+)>\(&(\w+), (.+), (\d+)u\);$/gm;
  const store = /subgroupMatrixStore<(\w+)>\(&(\w+), (.+), (sum\w+), (\d+)u\);$/gm;
  const result = /subgroup_matrix_result<(\w+), (\d+), (\d+)>/.exec(wgsl)!;
  const accesses = [
    ...[...wgsl.matchAll(load)].map(([, , component, columns, rows, order, name, at, stride]) => ({
      component: component!,
      lines: Number(order === "row_major" ? rows : columns),
      each: Number(order === "row_major" ? columns : rows),
      ...{ name: name!, at: at!, stride: Number(stride) },
    })),
    ...[...wgsl.matchAll(store)].map(([, order, name, at, , stride]) => ({
      component: result[1]!,
      lines: Number(result[order === "row_major" ? 3 : 2]),
      each: Number(result[order === "row_major" ? 2 : 3]),
      ...{ name: name!, at: at!, stride: Number(stride) },
    })),
  ];
  return accesses.flatMap(({ component, lines, each, name, at, stride }) => {
    const { bytes, size } = arrays.get(name)!;
    const line = Math.ceil(each * BYTES[component]! / bytes);
    assert.ok(stride >= line, `${kernel} ${name}: rows ${stride} apart, ${line} long`);
    return Array.from({ length: threads / lanes }, (_, subgroup) => subgroup).flatMap((subgroup) =>
      [0, 1].map((half) => {
        const names: Record<string, number> = { subgroup, half, fill: half };
        for (const [ring, at] of rings) {
          names[ring] = half === 0 ? at : Math.max(...rings.map(([, other]) => other));
        }
        for (const [, place, text] of places) names[place!] = valueOf(text!, names);
        return { name, end: valueOf(at, names) + (lines - 1) * stride + line, size };
      })
    );
  });
}

Deno.test("matrices that subgroups load and store lie within workgroup memory, whatever the subgroup", () => {
  for (const one of PRODUCTS) {
    const { lanes } = one;
    let largest = 0;
    const slices = one.dtype === "f16" ? [...sliceKernels(one), ...rowKernels(one)] : [];
    for (const kernel of [...kernels(one), ...slices]) {
      if (!kernel.features.includes(MATRIX_FEATURES[1]!)) continue;
      const ends = matrixEnds(kernel, lanes);
      const texts = kernel.wgsl.match(/subgroupMatrix(?:Load|Store)</g)!.length;
      assert.equal(ends.length, texts * 2 * kernel.workgroupSize[0] / lanes, kernel.name);
      for (const { name, end, size } of ends) {
        assert.ok(end <= size, `${kernel.name}: ${name} has ${size}, a matrix ends at ${end}`);
        largest = Math.max(largest, end / size);
      }
    }
    // Not far below either: skew is all that is left.
    assert.ok(largest > 0.98, `${largest}`);
  }
});

Deno.test("WinRS on matrix units of every shape fits workgroup memory, and is valid WGSL to dawn", async () => {
  using validator = await openValidator("dawn", { robust: false });
  for (const one of PRODUCTS.filter(({ dtype }) => dtype === "f16")) {
    const all = sliceKernels(one);
    const own = all.filter(({ name }) => name.includes("_mma"));
    assert.equal(own.length, 4 * 7, unitShape(one.unit));
    for (const kernel of all) {
      assert.ok(kernel.workgroupBytes <= 49_152, `${kernel.name} takes ${kernel.workgroupBytes}`);
      const messages = await validator.validate(kernel);
      assert.deepEqual(messages.filter(({ type }) => type === "error"), [], kernel.name);
    }
  }
});

Deno.test("products on matrix units of every shape are valid WGSL to dawn", async () => {
  using validator = await openValidator("dawn", { robust: false });
  for (const one of PRODUCTS) {
    const { lanes } = one;
    const all = [...kernels(one), ...one.dtype === "f16" ? rowKernels(one) : []];
    const own = all.filter(({ features }) => features.includes(MATRIX_FEATURES[1]!));
    assert.ok(own.length > 30, `${own.length} kernels`);
    for (const kernel of all) {
      const messages = await validator.validate(kernel);
      assert.deepEqual(messages.filter(({ type }) => type === "error"), [], kernel.name);
    }
    for (const { workgroupSize } of own) assert.equal(workgroupSize[0] % lanes, 0);
  }
});

Deno.test("rows of taps are refused for what cannot multiply them, and left aside where nobody asks for them", () => {
  const [unit, lanes] = UNITS[0]!;
  const problem = convProblem({
    op: "fwd",
    batch: 64,
    inChannels: 40,
    outChannels: 40,
    inputSize: [28, 28],
    filterSize: [3, 3],
    paddingBegin: [1, 1],
    paddingEnd: [1, 1],
  });
  const plan = (policy: string, tapRows: boolean) =>
    tryPlanConv(halfRequest({ unit, lanes }, problem, {
      variant: { halfTile: true, ...(tapRows && { tapRows }) },
      policy,
    }));
  const refused = {
    "64x64x48_8x8": /no matrix units, which rows of taps are multiplied on/,
    "matrix-ahead": /policy matrix-ahead has steps of 16, rows of 3 taps take multiples of 48/,
    "128x128x32_64x64m": /has steps of 32, rows of 3 taps take multiples of 48/,
  };
  for (const [policy, text] of Object.entries(refused)) {
    const asked = plan(policy, true);
    assert.ok(isRefusal(asked) && text.test(asked.text), JSON.stringify(asked));
    const free = plan(policy, false);
    assert.ok(!isRefusal(free) && !/_row3/.test(free.kernel), policy);
  }
  for (const policy of ["matrix-square", "128x128x48_64x64m"]) {
    const rows = plan(policy, true);
    assert.ok(!isRefusal(rows) && /_128x128x48_.*_row3_/.test(rows.kernel), policy);
  }
  const halved = { ...problem, stride: [2, 2], outputSize: [14, 14] };
  const strided = tryPlanConv(
    halfRequest({ unit, lanes }, halved, { policy: "matrix-large-deep" }),
  );
  assert.ok(isRefusal(strided) && /matrix-large-deep multiplies rows of taps/.test(strided.text));
  // Two matrices of each tap deep: of rows alone, and so by rows whether or not they are asked for.
  for (const policy of ["matrix-large-deep", "128x256x96_64x64m"]) {
    for (const tapRows of [true, false]) {
      const rows = plan(policy, tapRows);
      assert.ok(!isRefusal(rows) && /_128x256x96_.*_row3_/.test(rows.kernel), policy);
    }
  }
});

Deno.test("auto takes rows of taps two matrices deep for large tiles, and not where that pads channels", () => {
  const one = PRODUCTS.find(({ dtype, unit }) => dtype === "f16" && unit.m === 16)!;
  const tile = (inChannels: number) => {
    const plan = planConv(halfRequest(
      one,
      convProblem({
        op: "fwd",
        batch: 32,
        inChannels,
        outChannels: 128,
        inputSize: [112, 112],
        filterSize: [3, 3],
        paddingBegin: [1, 1],
        paddingEnd: [1, 1],
      }),
      {},
    ));
    return plan.kernel.match(/_(\d+x\d+x\d+)_mma.*(_row3|_tap)/)?.slice(1).join("");
  };
  assert.equal(tile(128), "128x256x96_row3");
  assert.equal(tile(64), "128x256x96_row3");
  assert.equal(tile(48), "128x256x48_row3");
});

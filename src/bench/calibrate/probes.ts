import { predictMs } from "../../algorithms/cost/auto.ts";
import { H200 } from "../../algorithms/device/h200.ts";
import {
  type DeviceModel,
  holdsResults,
  moveTime,
  passTime,
} from "../../algorithms/device/model.ts";
import type { AlgorithmName, DeviceLimits, Plan } from "../../algorithms/plan.ts";
import { tryPlanConv } from "../../algorithms/planner.ts";
import { isRefusal } from "../../algorithms/refusal.ts";
import type { PlanRequest } from "../../algorithms/request.ts";
import { omegaName, OMEGAS } from "../../algorithms/winrs/omega.ts";
import { configured } from "../../algorithms/winrs/plan.ts";
import type { Kernel } from "../../kernels/kernel.ts";
import { matrixPolicies } from "../../kernels/matrix_policies.ts";
import type { MatrixUnits } from "../../kernels/matrix_units.ts";
import { findPolicy } from "../../kernels/policy.ts";
import { busyKernel, COPY_THREADS, copyKernel } from "../../kernels/measuring.ts";
import type { ConvDType, Operation } from "../../problem/conv_problem.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { NO_EPILOGUE } from "../../problem/epilogue.ts";
import { filterLayoutFor, type Layout } from "../../tensor/layout.ts";

/** Rounds of a busy workgroup: one that is alone takes some 0.2 ms. */
const ROUNDS = 400;
/** Bytes that are copied: with their copies more than any cache holds; on a CPU less. */
const COPIED = 128 << 20;
const COPIED_SOFTWARE = 16 << 20;
/** What a copy moves on an H200, in TB/s. */
const H200_COPY = 4.3;

/** So many workgroups of {@linkcode busyKernel}. */
export function busyPlan(grid: number): Plan {
  return simplePlan(busyKernel(ROUNDS), 256, [grid, 1, 1]);
}

/** Bytes of {@linkcode copyPlan}. */
function copiedBytes({ software }: DeviceModel, limits: DeviceLimits): number {
  const most = Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize);
  return Math.min(software ? COPIED_SOFTWARE : COPIED, 2 ** Math.floor(Math.log2(most)));
}

/** A copy of so many bytes, a power of two. */
function copyPlan(bytes: number): Plan {
  const groups = bytes / 16 / COPY_THREADS;
  const across = Math.min(groups, 1 << 15);
  return simplePlan(copyKernel(), bytes, [across, Math.ceil(groups / across), 1]);
}

/** Milliseconds of a copy: it is to the model's stream of transforms as an H200's is. */
function copyMs(bytes: number, model: DeviceModel): number {
  const rate = model.rates.stream * H200_COPY / H200.rates.stream;
  return passTime(0, moveTime(2 * bytes, rate), model) / 1e3;
}

function simplePlan(kernel: Kernel, bytes: number, grid: Plan["passes"][number]["grid"]): Plan {
  return {
    kernel: kernel.name,
    algorithm: "none",
    buffers: [{ name: "data", role: "input", bytes }, { name: "result", role: "output", bytes }],
    passes: [{
      kernel,
      bindings: [{ buffer: 0, offset: 0, size: bytes }, { buffer: 1, offset: 0, size: bytes }],
      grid,
      multiplications: 0,
    }],
    workspaceBytes: 0,
    multiplications: 0,
    arithmetic: {},
    notes: [],
  };
}

/** What is timed for the sake of some figures. */
export interface Probe {
  readonly name: string;
  /** Figures that it is there for, by the beginnings of their paths. */
  readonly figures: readonly string[];
  readonly dtype: ConvDType;
  /** What runs; undefined where the device cannot. */
  readonly plan: Plan | undefined;
  /** Milliseconds that a model says of it. */
  predict(model: DeviceModel): number | undefined;
}

/** What probes are made for. */
export interface ProbedDevice {
  readonly limits: DeviceLimits;
  readonly matrixUnits?: MatrixUnits | undefined;
  /** What plans follow where nothing is pinned. */
  readonly model: DeviceModel;
}

/** What a probe pins. */
type Pins = Partial<Pick<PlanRequest, "policy" | "tile" | "pair" | "splits" | "flush" | "dtype">>;

/**
 * A problem's sizes on a device: `mb` without a number is a batch that makes many waves of workgroups, lest what the last of them
 * leaves idle is taken for a rate, and tensors that no cache holds; a CPU gets one image, half of the channels and half of the
 * images' sides.
 */
function sizesFor({ multiprocessors, software }: DeviceModel, sizes: string): string {
  const images = 2 ** Math.round(Math.log2(multiprocessors));
  const batch = software ? 1 : Math.min(256, Math.max(4, images));
  const sized = sizes.replace(/mb(?=ic)/, `mb${batch}`);
  if (!software) return sized;
  return sized.replace(/(ic|oc|g|ih)(\d+)/g, (_, name, digits) => {
    const count = Number(digits);
    return `${name}${count < 16 ? count : Math.ceil(count / 2)}`;
  });
}

/** Passes in a row that say what a dispatch takes. */
const CHAINED = 4;

type Row = readonly [
  figures: string,
  algorithm: AlgorithmName,
  op: Operation,
  /** Of both `*` in the figures is `along` with channels innermost, and `across`. */
  layout: Layout | "both",
  sizes: string,
  pins?: Pins,
];

const [SIDE, M128, M192, M256, THIN, DEEP] = [
  "mbic16ih56oc64kh3ph1",
  "mbic128ih28oc128kh3ph1",
  "mbic128ih28oc192kh3ph1",
  "mbic256ih28oc256kh3ph1",
  "mbic64ih56oc16kh3ph1",
  "g128mbic128ih56oc128kh3ph1",
];
const [F2, F4, F6] = ["F(2x2,3x3)", "F(4x4,3x3)", "F(6x6,3x3)"];

/**
 * Small problems of the program's own with all that a planner would choose pinned. Of few channels transforms take most of the time: in
 * a few threads, and of many tiles. `tiny` is taken where there are few results; with many, of few columns, moving them hides what it
 * does. Threads of `broad` share out rows of a filter that they load by fours, not those of single elements.
 */
const ROWS: readonly Row[] = [
  ["rates.gathered", "implicit-gemm", "fwd", "both", M128, { policy: "tall" }],
  ["rates.packed", "winograd2d-nonfused", "fwd", "both", M256, { policy: "tall", tile: F4 }],
  ["times.transform", "winograd2d-nonfused", "fwd", "nhwc", "mb1ic64ih12oc64kh3ph1", {
    policy: "tiny",
    tile: F6,
  }],
  ["shares.largeTransforms", "winograd2d-nonfused", "fwd", "nchw", "mbic32ih56oc32kh3ph1", {
    policy: "tiny",
    tile: F6,
  }],
  ["rates.filterStream", "winograd2d-nonfused", "fwd", "nchw", "mb1ic512ih8oc512kh3ph1", {
    policy: "small",
    tile: F2,
  }],
  ["shares.policies.tiny", "implicit-gemm", "fwd", "nchw", "mb1ic192ih20oc192kh3ph1", {
    policy: "tiny",
  }],
  ...["small", "wide", "large", "huge"].map((policy): Row => [
    `shares.policies.${policy}`,
    "implicit-gemm",
    "fwd",
    "nchw",
    M128,
    { policy },
  ]),
  ["shares.policies.broad", "implicit-gemm", "fwd", "nhwc", M192, { policy: "broad" }],
  ["shares.dealtUnevenly", "implicit-gemm", "fwd", "nchw", M192, { policy: "broad" }],
  ["shares.policies.flat", "implicit-gemm", "fwd", "nchw", THIN, { policy: "flat" }],
  ["shares.policies.narrow", "winograd2d-nonfused", "fwd", "nhwc", THIN, {
    policy: "narrow",
    tile: F4,
  }],
  ["shares.policies.short", "implicit-gemm", "fwd", "nchw", "mbic128ih56oc32kh3ph1", {
    policy: "short",
  }],
  ["rates.correlated.*", "implicit-gemm", "bwd-filter", "both", M256, { policy: "tall" }],
  ["shares.single", "implicit-gemm", "fwd", "nchw", "mbic16ih55oc128kh1", { policy: "wide" }],
  ["rates.dot4", "implicit-gemm", "fwd", "nhwc", M128, { dtype: "i8", policy: "wide" }],
  ["rates.depthwise.*", "depthwise", "fwd", "both", DEEP],
  ["rates.depthwise.* shares.depthwiseTaps", "depthwise", "fwd", "both", long(DEEP)],
  ["rates.depthwiseGradient.*", "depthwise", "bwd-filter", "both", DEEP],
  ["rates.few", "depthwise", "fwd", "both", "mbic64ih112oc4kh3ph1"],
  ["rates.few", "depthwise", "fwd", "both", "mbic1ih56oc32kh7ph3"],
  ["rates.fewGradient", "depthwise", "bwd-filter", "both", "mbic3ih112oc32kh3ph1"],
  ["rates.direct", "direct", "fwd", "nchw", "mbic32ih28oc32kh3ph1"],
  ...OMEGAS.map((omega): Row => {
    const [pair, { n }] = [omegaName(omega), omega];
    const sizes = `mbic64ih56oc64kh${n}ph${n >> 1}`;
    return [`rates.winrs.${pair}`, "winrs", "bwd-filter", "nhwc", sizes, { pair }];
  }),
  ["shares.winrsAcross.small", "winrs", "bwd-filter", "nchw", "mbic64ih56oc64kh3ph1", {
    pair: "a8n3r6",
  }],
  ["shares.winrsAcross.large", "winrs", "bwd-filter", "nchw", "mbic128ih28oc128kh5ph2", {
    pair: "a16n5r12",
  }],
];

/** What a CPU does not weigh, as it takes seconds to compile, or has an H200's shares of. */
const GPU_ALONE = /^(shares\.(policies\.(?!tiny)|largeTransforms|dealtUnevenly)|times\.transform)/;
const GPU_ALGORITHMS: readonly AlgorithmName[] = ["winograd1d", "winrs"];

/**
 * What a device is measured by: dispatches, memory, products, the main loop's policies, what runs one thread a result, WinRS'
 * kernels, fused Winograd's policies and what their results take to store, then every tile of matrix units for f16.
 */
export function calibrationProbes(device: ProbedDevice): Probe[] {
  const { limits, matrixUnits, model } = device;
  const bytes = copiedBytes(model, limits);
  const unit = matrixUnits?.units.find(({ component }) => component === "f16");
  const units = unit === undefined || matrixUnits === undefined
    ? []
    : matrixPolicies(unit, matrixUnits.lanes).map(({ name: policy }): Row => [
      `shares.policies.${policy}`,
      "implicit-gemm",
      "fwd",
      "nhwc",
      M256,
      { dtype: "f16", policy },
    ]);
  return [
    chained(probeOf(device, ["times.dispatch", "direct", "fwd", "nchw", "mb1ic1oc1ih4kh1"])),
    {
      name: `copy ${bytes}`,
      figures: ["rates.stream"],
      dtype: "f32",
      plan: copyPlan(bytes),
      predict: (one) => copyMs(bytes, one),
    },
    ...[...ROWS, ...sliceRows(model), ...units]
      .filter(([figures, algorithm]) =>
        !model.software || !GPU_ALONE.test(figures) && !GPU_ALGORITHMS.includes(algorithm)
      )
      .flatMap((row) => probesOf(device, row)),
  ];
}

/** Every policy of fused Winograd that is known, and what its results take to store. */
function sliceRows({ shares }: DeviceModel): Row[] {
  return ([["lines", "nhwc"], ["scattered", "nchw"]] as const).flatMap(([way, layout]) =>
    Object.entries(shares.sliced.policies[way]).flatMap(([tile, policies]) => {
      const names = Object.keys(policies);
      const row = (figures: string, sizes: string, policy: string): Row => {
        const algorithm = tile === F2 ? "winograd2d" : "winograd1d";
        return [figures, algorithm, "fwd", layout, sizes, { tile, policy, flush: 0 }];
      };
      return [
        ...names.map((policy) =>
          row(`rates.sliced shares.sliced.policies.${way}.${tile}.${policy}`, M128, policy)
        ),
        row(`rates.slicedStore.${way}`, SIDE, names.at(-1)!),
      ];
    })
  );
}

function probesOf(device: ProbedDevice, row: Row): Probe[] {
  const [figures, algorithm, op, layout, sizes, pins = {}] = row;
  if (layout !== "both") return [probeOf(device, row)];
  return ([["along", "nhwc"], ["across", "nchw"]] as const).map(([side, layout]) =>
    probeOf(device, [figures.replace("*", side), algorithm, op, layout, sizes, pins])
  );
}

function probeOf(
  { limits, matrixUnits, model }: ProbedDevice,
  [figures, algorithm, op, layout, sizes, { dtype = "f32", ...pins } = {}]: Row,
): Probe {
  const pinned: PlanRequest = {
    problem: parseDescriptor(sizesFor(model, sizes), op),
    dtype,
    layout: layout as Layout,
    filterLayout: filterLayoutFor(layout as Layout),
    epilogue: NO_EPILOGUE,
    algorithm,
    limits,
    ...(dtype === "f32" || matrixUnits === undefined ? {} : { matrixUnits }),
    ...pins,
    ...(figures.startsWith("shares.policies.") || pins.policy === undefined || isSliced(algorithm)
      ? {}
      : { policy: takenPolicy(model, pins.policy) }),
  };
  const splits = splitsOf({ ...pinned, device: model });
  const request = splits === undefined ? pinned : { ...pinned, splits };
  const plan = tryPlanConv({ ...request, device: model });
  return {
    name: [algorithm, op, layout, sizes, dtype, ...Object.values(pins)].join(" "),
    figures: figures.split(" "),
    dtype,
    plan: isRefusal(plan) ? undefined : plan,
    predict: (one) => {
      const predicted = predictMs({ ...request, device: one }, algorithm);
      return typeof predicted === "number" ? predicted : undefined;
    },
  };
}

function isSliced(algorithm: AlgorithmName): boolean {
  return algorithm === "winograd1d" || algorithm === "winograd2d";
}

/** The policy itself where nothing spills; what a CPU weighs beside `tiny`. */
function takenPolicy(model: DeviceModel, policy: string): string {
  if (policy === "tiny") return policy;
  return model.software ? "block" : holdsResults(model, findPolicy(policy)!) ? policy : "tiny";
}

/** As many splits as fill a device, or a kernel of WinRS would have segments; one of other products. */
function splitsOf(request: PlanRequest): number | undefined {
  const { algorithm, problem: { op }, device } = request;
  if (["depthwise", "direct"].includes(algorithm) || isSliced(algorithm as AlgorithmName)) {
    return undefined;
  }
  if (algorithm !== "winrs") {
    return op === "bwd-filter" ? Math.max(1, Math.round(device!.multiprocessors / 12)) : 1;
  }
  const configuration = configured(request);
  return isRefusal(configuration) ? undefined : configuration.segmentation.count;
}

/** Several times the same, each of which waits for the one before, as passes of real plans do. */
function chained(probe: Probe): Probe {
  const { plan } = probe;
  if (plan === undefined) return probe;
  return {
    ...probe,
    plan: { ...plan, passes: new Array(CHAINED).fill(plan.passes).flat() },
    predict: (one) => CHAINED * probe.predict(one)!,
  };
}

/** The same with filters of 7 x 7. */
function long(sizes: string): string {
  return sizes.replace("kh3ph1", "kh7ph3");
}

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
import { configured } from "../../algorithms/winrs/plan.ts";
import type { Kernel } from "../../kernels/kernel.ts";
import { matrixPolicies } from "../../kernels/matrix_policies.ts";
import type { MatrixUnits } from "../../kernels/matrix_units.ts";
import { TILE_POLICIES } from "../../kernels/policy.ts";
import { busyKernel, COPY_THREADS, copyKernel } from "../../kernels/measuring.ts";
import type { ConvDType, Operation } from "../../problem/conv_problem.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { NO_EPILOGUE } from "../../problem/epilogue.ts";
import { filterLayoutFor, type Layout } from "../../tensor/layout.ts";
import type { Schedule } from "../../algorithms/schedule.ts";
import { defined } from "../../defined.ts";

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

/** What all rates scale by: dispatches, memory, products. */
export const SIZE = ["waiting", "moving", "computing"] as const;

/** Rates that have a factor of their own beside it, each with what stands below it; `units` are shares of matrix units' policies. */
export const FAMILIES = [
  ...["packed", "correlated", "sliced", "slicedStore", "filterStream", "winrs", "depthwise"],
  ...["depthwiseGradient", "few", "fewGradient", "direct", "dot4", "units"],
];

/** What is timed for the sake of a family of figures. */
export interface Probe {
  readonly name: string;
  /** One of `FAMILIES` or `SIZE`. */
  readonly family: string;
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
type Pins =
  & Partial<Pick<PlanRequest, "tile" | "pair" | "dtype">>
  & Pick<Schedule, "policy" | "splits" | "flush">;

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
  family: string,
  algorithm: AlgorithmName,
  op: Operation,
  layout: Layout | "both",
  sizes: string,
  pins?: Pins,
];

const [M128, M256] = ["mbic128ih28oc128kh3ph1", "mbic256ih28oc256kh3ph1"];
const [F2, F4] = ["F(2x2,3x3)", "F(4x4,3x3)"];

/** Small problems of the program's own with all that a planner would choose pinned. */
const ROWS: readonly Row[] = [
  ["computing", "implicit-gemm", "fwd", "both", M128, { policy: "tall" }],
  ["packed", "winograd2d-nonfused", "fwd", "both", M256, { policy: "tall", tile: F4 }],
  ["correlated", "implicit-gemm", "bwd-filter", "both", M256, { policy: "tall" }],
  ["filterStream", "winograd2d-nonfused", "fwd", "nchw", "mb1ic512ih8oc512kh3ph1", {
    policy: "small",
    tile: F2,
  }],
  ...([["winograd2d", F2, "32x32x8_8x8"], ["winograd1d", "F(4,3)", "64x32x8_8x8"]] as const)
    .flatMap(([algorithm, tile, policy]): Row[] => [
      ["sliced", algorithm, "fwd", "both", M128, { tile, policy, flush: 0 }],
      ["slicedStore", algorithm, "fwd", "both", "mbic16ih56oc64kh3ph1", { tile, policy, flush: 0 }],
    ]),
  ["winrs", "winrs", "bwd-filter", "nhwc", "mbic64ih56oc64kh3ph1", { pair: "a8n3r6" }],
  ["winrs", "winrs", "bwd-filter", "nhwc", "mbic64ih56oc64kh3ph1", { pair: "a4n3r2" }],
  ["winrs", "winrs", "bwd-filter", "nhwc", "mbic64ih56oc64kh8ph4", { pair: "a16n8r9" }],
  ["depthwise", "depthwise", "fwd", "both", "g128mbic128ih56oc128kh3ph1"],
  ["depthwise", "depthwise", "fwd", "both", "g128mbic128ih56oc128kh7ph3"],
  ["depthwiseGradient", "depthwise", "bwd-filter", "both", "g128mbic128ih56oc128kh3ph1"],
  ["few", "depthwise", "fwd", "nchw", "mbic64ih112oc4kh3ph1"],
  ["few", "depthwise", "fwd", "both", "mbic1ih56oc32kh7ph3"],
  ["fewGradient", "depthwise", "bwd-filter", "both", "mbic3ih112oc32kh3ph1"],
  ["direct", "direct", "fwd", "nchw", "mbic32ih28oc32kh3ph1"],
  ["dot4", "implicit-gemm", "fwd", "nhwc", M128, { dtype: "i8", policy: "wide" }],
];

/** What `auto` leaves aside on a CPU, which takes seconds to compile it. */
const UNWEIGHED: readonly AlgorithmName[] = ["winograd1d", "winrs"];

/** What a device is measured by, or only some families of it. */
export function calibrationProbes(
  device: ProbedDevice,
  families: readonly string[] = [...SIZE, ...FAMILIES],
): Probe[] {
  const { limits, matrixUnits, model } = device;
  const bytes = copiedBytes(model, limits);
  const unit = matrixUnits?.units.find(({ component }) => component === "f16");
  const units = unit === undefined || matrixUnits === undefined
    ? []
    : matrixPolicies(unit, matrixUnits.lanes).map(({ name: policy }): Row => {
      return ["units", "implicit-gemm", "fwd", "nhwc", M256, { dtype: "f16", policy }];
    });
  const rows = [...ROWS, ...units].filter(([family, algorithm]) =>
    families.includes(family) && !(model.software && UNWEIGHED.includes(algorithm))
  );
  return [
    chained(probeOf(device, ["waiting", "direct", "fwd", "nchw", "mb1ic1oc1ih4kh1"])),
    {
      name: `copy ${bytes}`,
      family: "moving",
      dtype: "f32",
      plan: copyPlan(bytes),
      predict: (one) => copyMs(bytes, one),
    },
    ...rows.flatMap((row): Probe[] => {
      const [family, algorithm, op, layout, sizes, pins = {}] = row;
      return layout !== "both"
        ? [probeOf(device, row)]
        : (["nhwc", "nchw"] as const).map((one) =>
          probeOf(device, [family, algorithm, op, one, sizes, pins])
        );
    }),
  ];
}

function probeOf(
  { limits, matrixUnits, model }: ProbedDevice,
  [family, algorithm, op, layout, sizes, { dtype = "f32", ...pins } = {}]: Row,
): Probe {
  const { policy, splits: said, flush, ...others } = pins;
  const taken = policy === undefined ? undefined : takenPolicy(model, policy);
  const pinned: PlanRequest = {
    problem: parseDescriptor(sizesFor(model, sizes), op),
    dtype,
    layout: layout as Layout,
    filterLayout: filterLayoutFor(layout as Layout),
    epilogue: NO_EPILOGUE,
    algorithm,
    limits,
    ...(dtype === "f32" || matrixUnits === undefined ? {} : { matrixUnits }),
    ...others,
    schedule: defined({ policy: taken, splits: said, flush }),
  };
  const splits = splitsOf({ ...pinned, device: model });
  const request = splits === undefined ? pinned : {
    ...pinned,
    schedule: { ...pinned.schedule, splits },
  };
  const plan = tryPlanConv({ ...request, device: model });
  return {
    name: [algorithm, op, layout, sizes, dtype, ...Object.values(pins)].join(" "),
    family,
    dtype,
    plan: isRefusal(plan) ? undefined : plan,
    predict: (one) => {
      const predicted = predictMs({ ...request, device: one }, algorithm);
      return typeof predicted === "number" ? predicted : undefined;
    },
  };
}

/** A policy of the mainloop's threads as a CPU weighs it, or where nothing spills; others as they are. */
function takenPolicy(model: DeviceModel, name: string): string {
  const policy = TILE_POLICIES.find((one) => one.name === name);
  if (policy === undefined) return name;
  return model.software ? "block" : holdsResults(model, policy) ? name : "tiny";
}

/** As many splits as fill a device, or a kernel of WinRS would have segments; one of other products. */
function splitsOf(request: PlanRequest): number | undefined {
  const { algorithm, problem: { op }, device } = request;
  if (algorithm === "winrs") {
    const configuration = configured(request);
    return isRefusal(configuration) ? undefined : configuration.segmentation.count;
  }
  if (!["implicit-gemm", "winograd2d-nonfused"].includes(algorithm)) return undefined;
  return op === "bwd-filter" ? Math.max(1, Math.round(device!.multiprocessors / 12)) : 1;
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

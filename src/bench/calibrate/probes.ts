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
import { predictRequest } from "./fit.ts";

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
  /** The figures that are to be measured; all where absent. */
  readonly figures?: readonly string[];
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
/** Policies that are mostly empty but where results have few rows or columns, and products that have. */
const THIN = [
  ["sliver", "implicit-gemm", "nchw", "mbic64ih56oc4kh3ph1"],
  ["flat", "implicit-gemm", "nchw", "mbic64ih56oc16kh3ph1"],
  ["flat", "winograd2d-nonfused", "nchw", "mbic64ih56oc16kh3ph1"],
  // Rows are channels but for tiles with channels innermost.
  ["narrow", "winograd2d-nonfused", "nhwc", "mbic64ih56oc16kh3ph1"],
  ["short", "implicit-gemm", "nchw", "mbic128ih56oc32kh3ph1"],
  ["short", "winograd2d-nonfused", "nchw", "mbic128ih56oc32kh3ph1"],
  ["slim", "winograd2d-nonfused", "nhwc", "mbic128ih56oc32kh3ph1"],
] as const;
/** Kernels of WinRS that are measured where channels do not lie innermost. */
const WINRS_ACROSS = [
  ["small", "mbic64ih56oc64kh3ph1", "a8n3r6"],
  ["large", "mbic128ih28oc128kh5ph2", "a16n5r12"],
] as const;
/** What `auto` leaves aside on a CPU, which takes seconds to compile it. */
const UNWEIGHED: readonly AlgorithmName[] = ["winograd1d", "winrs"];
/** Policies of GPUs that are measured by products with many rows and columns. */
const SQUARE = ["small", "wide", "broad", "large", "huge"];

/**
 * What a device is measured by: small problems of the program's own with all that a planner would choose pinned, so that their
 * times say something of figures. Dispatches, memory, products, the main loop's policies, fused Winograd's
 * slices, WinRS' kernels, then what runs one thread a result.
 */
export function calibrationProbes(device: ProbedDevice): Probe[] {
  const { limits, matrixUnits, model, figures: wanted } = device;
  const probes: Probe[] = [];
  const isWanted = (figures: string) => wanted === undefined || wanted.includes(figures);
  const probeOf = (
    figures: string,
    algorithm: AlgorithmName,
    op: Operation,
    layout: Layout,
    sizes: string,
    { dtype = "f32", ...pins }: Pins = {},
  ): Probe => {
    const request: PlanRequest = {
      problem: parseDescriptor(sizesFor(model, sizes), op),
      dtype,
      layout,
      filterLayout: filterLayoutFor(layout),
      epilogue: NO_EPILOGUE,
      algorithm,
      limits,
      ...(dtype === "f32" || matrixUnits === undefined ? {} : { matrixUnits }),
      ...pins,
    };
    const splits = pins.splits ?? winrsSegments(request, model);
    const pinned = { ...request, ...(splits === undefined ? {} : { splits }) };
    const plan = tryPlanConv({ ...pinned, device: model });
    return {
      name: [algorithm, op, layout, sizes, dtype, ...Object.values(pins)].join(" "),
      figures: figures.split(" "),
      dtype,
      plan: isRefusal(plan) ? undefined : plan,
      predict: (one) => predictRequest(pinned, one),
    };
  };
  const add = (...what: Parameters<typeof probeOf>) => {
    if (!isWanted(what[0]) || model.software && UNWEIGHED.includes(what[1])) return;
    probes.push(probeOf(...what));
  };
  const whole = { splits: 1 };
  // What a CPU weighs beside `tiny`, and what spills no registers.
  const taken = (policy: string) =>
    model.software ? "block" : holdsResults(model, findPolicy(policy)!) ? policy : "tiny";

  probes.push(chained(probeOf("times.dispatch", "direct", "fwd", "nchw", "mb1ic1oc1ih4kh1")));
  const bytes = copiedBytes(model, limits);
  probes.push({
    name: `copy ${bytes}`,
    figures: ["rates.stream"],
    dtype: "f32",
    plan: copyPlan(bytes),
    predict: (one) => copyMs(bytes, one),
  });
  for (const layout of ["nhwc", "nchw"] as const) {
    add("rates.gathered", "implicit-gemm", "fwd", layout, "mbic128ih28oc128kh3ph1", {
      ...whole,
      policy: taken("tall"),
    });
    add("rates.packed", "winograd2d-nonfused", "fwd", layout, "mbic256ih28oc256kh3ph1", {
      ...whole,
      policy: taken("tall"),
      tile: "F(4x4,3x3)",
    });
  }
  // Of few channels transforms take most of the time: in a few threads, and of many tiles. On CPUs they keep an H200's shares.
  const transforms = [
    ["times.transform", "nhwc", "mb1ic64ih12oc64kh3ph1"],
    ["shares.transforms.large", "nchw", "mbic32ih56oc32kh3ph1"],
  ] as const;
  for (const [figure, layout, sizes] of model.software ? [] : transforms) {
    const pins = { ...whole, policy: "tiny", tile: "F(6x6,3x3)" };
    add(figure, "winograd2d-nonfused", "fwd", layout, sizes, pins);
  }
  add("rates.filterStream", "winograd2d-nonfused", "fwd", "nchw", "mb1ic512ih8oc512kh3ph1", {
    ...whole,
    policy: taken("small"),
    tile: "F(2x2,3x3)",
  });
  // It is taken where there are few results; with many, of few columns, moving them hides what it does.
  add("shares.policies.tiny", "implicit-gemm", "fwd", "nchw", "mb1ic192ih20oc192kh3ph1", {
    ...whole,
    policy: "tiny",
  });
  for (const policy of model.software ? [] : SQUARE) {
    const sizes = `mbic128ih28oc${policy === "broad" ? 192 : 128}kh3ph1`;
    const pins = { ...whole, policy };
    const figure = `shares.policies.${policy}`;
    if (policy !== "broad") {
      add(figure, "implicit-gemm", "fwd", "nchw", sizes, pins);
      continue;
    }
    // Its threads share out rows of a filter that they load by fours, not those of single elements.
    add(figure, "implicit-gemm", "fwd", "nhwc", sizes, pins);
    add("shares.dealtUnevenly", "implicit-gemm", "fwd", "nchw", sizes, pins);
  }
  for (const [policy, algorithm, layout, sizes] of model.software ? [] : THIN) {
    const tile = algorithm === "implicit-gemm" ? {} : { tile: "F(4x4,3x3)" };
    add(`shares.policies.${policy}`, algorithm, "fwd", layout, sizes, {
      ...whole,
      policy,
      ...tile,
    });
  }
  for (const [side, layout] of [["along", "nhwc"], ["across", "nchw"]] as const) {
    add(
      `rates.correlated.${side}`,
      "implicit-gemm",
      "bwd-filter",
      layout,
      "mbic256ih28oc256kh3ph1",
      { splits: Math.max(1, Math.round(model.multiprocessors / 12)), policy: taken("tall") },
    );
  }
  slices();
  add("shares.single", "implicit-gemm", "fwd", "nchw", "mbic16ih55oc128kh1", {
    ...whole,
    policy: taken("wide"),
  });
  add("shares.interleaved", "implicit-gemm", "bwd-data", "nchw", "mbic128ih56oc64kh1sh2", {
    ...whole,
    policy: taken("wide"),
  });
  for (const [side, layout] of [["along", "nhwc"], ["across", "nchw"]] as const) {
    written(`shares.windows.${side}`, "im2win", layout, ({ shares }) => shares.windows[side]);
    written(`shares.matrices.${side}`, "im2col", layout, ({ shares }) => shares.matrices[side]);
    const single = "g128mbic128ih56oc128kh3ph1";
    add(`rates.depthwise.${side}`, "depthwise", "fwd", layout, single);
    add(`rates.depthwise.${side} shares.depthwiseTaps`, "depthwise", "fwd", layout, long(single));
    add(`rates.depthwiseGradient.${side}`, "depthwise", "bwd-filter", layout, single);
    // With channels innermost what few results sum takes loads.
    const last = layout === "nhwc" ? "shares.fewSources" : "rates.few";
    add(last, "depthwise", "fwd", layout, "mbic64ih112oc4kh3ph1");
    add("rates.few", "depthwise", "fwd", layout, "mbic1ih56oc32kh7ph3");
    add("rates.fewGradient", "depthwise", "bwd-filter", layout, "mbic3ih112oc32kh3ph1");
  }
  add("rates.direct", "direct", "fwd", "nchw", "mbic32ih28oc32kh3ph1");
  for (const omega of OMEGAS) {
    const pair = omegaName(omega);
    const sizes = `mbic64ih56oc64kh${omega.n}ph${omega.n >> 1}`;
    add(`rates.winrs.${pair}`, "winrs", "bwd-filter", "nhwc", sizes, { pair });
  }
  for (const [alpha, sizes, pair] of WINRS_ACROSS) {
    add(`shares.winrsAcross.${alpha}`, "winrs", "bwd-filter", "nchw", sizes, { pair });
  }
  add("rates.dot4", "implicit-gemm", "fwd", "nhwc", "mbic128ih28oc128kh3ph1", {
    ...whole,
    dtype: "i8",
    policy: taken("wide"),
  });
  matrices();
  return probes;

  /** The pass alone that writes windows or matrices, at a share of the stream. */
  function written(
    figure: string,
    algorithm: AlgorithmName,
    layout: Layout,
    share: (model: DeviceModel) => number,
  ): void {
    if (!isWanted(figure)) return;
    const pins = { ...whole, policy: "tiny" };
    const probe = probeOf(figure, algorithm, "fwd", layout, "mbic32ih56oc32kh3ph1", pins);
    const transform = probe.plan?.passes.find(({ kernel }) => kernel.name.startsWith(algorithm));
    if (probe.plan === undefined || transform === undefined) return;
    const bytes = transform.bindings.reduce((sum, { size }) => sum + size, 0);
    probes.push({
      ...probe,
      plan: { ...probe.plan, passes: [transform] },
      predict: (one) => passTime(0, moveTime(bytes, share(one) * one.rates.stream), one) / 1e3,
    });
  }

  /** Every policy of fused Winograd that is known, and what its results take to store. */
  function slices(): void {
    for (const [way, layout] of [["lines", "nhwc"], ["scattered", "nchw"]] as const) {
      for (const [tile, policies] of Object.entries(model.shares.sliced.policies[way])) {
        const two = tile === "F(2x2,3x3)";
        const algorithm = two ? "winograd2d" : "winograd1d";
        for (const policy of Object.keys(policies)) {
          add(
            `rates.sliced shares.sliced.policies.${way}.${tile}.${policy}`,
            algorithm,
            "fwd",
            layout,
            "mbic128ih28oc128kh3ph1",
            { tile, policy, flush: 0 },
          );
        }
        const policy = Object.keys(policies).at(-1)!;
        const sizes = "mbic16ih56oc64kh3ph1";
        add(`rates.slicedStore.${way}`, algorithm, "fwd", layout, sizes, {
          tile,
          policy,
          flush: 0,
        });
      }
    }
  }

  /** Every tile of a matrix unit for f16. */
  function matrices(): void {
    const unit = matrixUnits?.units.find(({ component }) => component === "f16");
    if (unit === undefined || matrixUnits === undefined) return;
    for (const { name } of matrixPolicies(unit, matrixUnits.lanes)) {
      add(`shares.policies.${name}`, "implicit-gemm", "fwd", "nhwc", "mbic256ih28oc256kh3ph1", {
        ...whole,
        dtype: "f16",
        policy: name,
      });
    }
  }
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

/** As many segments as a kernel of WinRS would have by a model; undefined of other requests. */
function winrsSegments(request: PlanRequest, device: DeviceModel): number | undefined {
  if (request.algorithm !== "winrs") return undefined;
  const configuration = configured({ ...request, device });
  return isRefusal(configuration) ? undefined : configuration.segmentation.count;
}

/** The same with filters of 7 x 7. */
function long(sizes: string): string {
  return sizes.replace("kh3ph1", "kh7ph3");
}

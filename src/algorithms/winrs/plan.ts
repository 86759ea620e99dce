import { UnsupportedError } from "../../errors.ts";
import { NO_STEPS } from "../../kernels/epilogue.ts";
import { moduleBuilder, type SizeMode, splitTrait } from "../../kernels/module.ts";
import {
  type CorrelationAxis,
  correlationBatches,
  correlationBatchText,
  correlationLoader,
  type CorrelationShape,
  correlationStore,
} from "../../kernels/slices/correlation.ts";
import { sliceLoopKernel, sliceWorkgroups } from "../../kernels/slices/loop.ts";
import { tileTransforms } from "../../kernels/slices/patch.ts";
import {
  parseSlicePolicy,
  type SlicePolicy,
  slicePolicyName,
  sliceThreads,
} from "../../kernels/slices/policy.ts";
import { tensorShape } from "../../problem/conv_problem.ts";
import { stridesInLayout } from "../../tensor/layout.ts";
import { amplification } from "../../winograd/amplification.ts";
import { identity } from "../../winograd/matrix.ts";
import { winogradTransform } from "../../winograd/transform.ts";
import { pass, reducePass } from "../passes.ts";
import type { Pass, Plan } from "../plan.ts";
import type { PlanRequest } from "../request.ts";
import { problemBuffers, resultElements } from "../tensors.ts";
import { slicePolicyFits } from "../winograd_fused/policies.ts";
import { reduceAxes } from "./axes.ts";
import { type CacheBlock, dataElements, DEFAULT_SEGMENT_PARAMETERS } from "./baseline.ts";
import { type Configuration, configure } from "./configure.ts";
import { DIRECT, type Omega, omegaName } from "./omega.ts";
import { parsePair } from "./pair.ts";

/** Tiles of a workgroup for each α in the order of preference; the first that fits the device is taken. */
const POLICIES: Readonly<Record<number, readonly SlicePolicy[]>> = {
  2: ["128x64x8_8x8", "64x64x8_8x8", "32x32x8_4x4"].map(parseSlicePolicy),
  4: ["64x64x8_8x16", "64x64x8_8x8", "32x32x8_8x8", "32x32x8_4x4"].map(parseSlicePolicy),
  8: ["64x64x8_8x16", "64x32x8_8x8", "32x32x4_8x8", "16x32x4_4x4"].map(parseSlicePolicy),
  16: ["64x32x8_8x16", "64x32x8_8x8", "32x32x8_8x8", "32x32x4_8x8", "16x16x4_4x4", "16x16x2_4x4"]
    .map(
      parseSlicePolicy,
    ),
};

/** Multiplications of a tile: Ω2(1,1) is the direct product. */
function slicesOf({ n, r }: Omega): number {
  return n + r - 1;
}

/** The policy of a kernel on a device. */
function policyOf(request: PlanRequest, omega: Omega, padded: boolean): SlicePolicy {
  const fits = (policy: SlicePolicy) =>
    slicePolicyFits(policy, slicesOf(omega), padded, request.limits);
  if (request.policy !== undefined) {
    const forced = parseSlicePolicy(request.policy);
    if (fits(forced)) return forced;
  }
  const policy = POLICIES[omega.alpha]!.find(fits);
  if (policy === undefined) {
    throw new UnsupportedError(
      `Cannot plan: no policy of ${slicesOf(omega)} slices fits the device`,
    );
  }
  return policy;
}

/** Workgroups of a policy that a multiprocessor holds: by threads, of 128 registers each. */
function cacheBlock(policy: SlicePolicy, slices: number): CacheBlock {
  const registers = sliceThreads(policy) * slices *
    (policy.threadRows * policy.threadColumns > 64 ? 256 : 128);
  return {
    outChannels: policy.rows,
    inChannels: policy.columns,
    perMultiprocessor: Math.max(1, Math.floor(65536 / registers)),
  };
}

/** Why WinRS cannot do a problem, or undefined. */
export function winrsReason({ problem }: PlanRequest): string | undefined {
  return problem.op === "bwd-filter" ? undefined : "it computes bwd-filter";
}

/** Pair, segments and blocks for a request. */
export function winrsConfiguration(request: PlanRequest): Configuration {
  const { problem, limits } = request;
  const padded = request.layout !== "nhwc";
  const axes = reduceAxes(problem);
  const strided = problem.stride[axes.widthAxis] !== 1 || problem.dilation[axes.widthAxis] !== 1;
  const pair = request.pair ?? (strided ? omegaName(DIRECT) : undefined);
  const inFlight = request.workgroupsInFlight;
  const room = Math.min(
    limits.maxBufferSize,
    limits.maxStorageBufferBindingSize,
    request.maxWorkspaceBytes ?? Infinity,
  );
  const parameters = {
    ...DEFAULT_SEGMENT_PARAMETERS,
    workspaceShare: Math.min(
      DEFAULT_SEGMENT_PARAMETERS.workspaceShare,
      room / (4 * Math.max(1, dataElements(problem))),
    ),
    ...(inFlight === undefined
      ? {}
      : { workgroupsInFlight: Math.max(1, Math.round(inFlight / 2)) }),
  };
  return configure(problem, {
    block: (omega) => cacheBlock(policyOf(request, omega, padded), slicesOf(omega)),
    ...(pair === undefined ? {} : { pair: parsePair(pair, axes.filterWidth, axes.outputWidth) }),
    ...(request.splits === undefined ? {} : { segments: request.splits }),
    parameters,
  });
}

/**
 * Plans WinRS: one kernel, or a pair of them, computes the buckets of all segments, operands transformed on their way
 * in and results on their way out; then a compensated sum of the buckets.
 */
export function planWinrs(request: PlanRequest, mode: SizeMode): Plan {
  const { problem, limits, layout } = request;
  const { buffers, tensor } = problemBuffers(request);
  const elements = resultElements(problem);
  const configuration = winrsConfiguration(request);
  const { axes, pair, segmentation } = configuration;
  const padded = layout !== "nhwc";
  const [inputStrides, gradientStrides, filterStrides] = (["input", "output", "filter"] as const)
    .map((which) =>
      stridesInLayout(
        tensorShape(problem, which),
        which === "filter" ? request.filterLayout : layout,
      )
    ) as [number[], number[], number[]];
  const axis = (d: number): CorrelationAxis => ({
    size: problem.inputSize[d]!,
    places: problem.outputSize[d]!,
    taps: problem.filterSize[d]!,
    stride: problem.stride[d]!,
    dilation: problem.dilation[d]!,
    padding: problem.paddingBegin[d]!,
    inputStride: inputStrides[2 + d]!,
    gradientStride: gradientStrides[2 + d]!,
    filterStride: filterStrides[2 + d]!,
  });
  const count = segmentation.count;
  const workspace = count > 1
    ? buffers.add("buckets", "workspace", (count - 1) * elements)
    : undefined;
  const passes: Pass[] = [];
  const notes: string[] = [];
  let multiplications = 0;
  let main = "";
  const shares = [
    {
      omega: pair.first,
      tiles: pair.k0,
      firstColumn: 0,
      segmentColumns: segmentation.firstColumns,
      firstBucket: 0,
    },
    ...(pair.second === undefined ? [] : [{
      omega: pair.second,
      tiles: pair.k1,
      firstColumn: pair.k0 * pair.first.r,
      segmentColumns: segmentation.columns - segmentation.firstColumns,
      firstBucket: segmentation.shared ? 0 : segmentation.firstColumns,
    }]),
  ];
  for (const [index, share] of shares.entries()) planShare(share, index > 0 && segmentation.shared);
  if (workspace !== undefined) {
    passes.push(
      reducePass(
        {
          elements,
          splits: count - 1,
          rows: 1,
          rowStride: elements,
          columns: elements,
          columnStride: 1,
        },
        mode,
        NO_STEPS,
        buffers,
        { partials: workspace, result: tensor.filter },
        limits,
        "f32",
        true,
      ),
    );
  }
  notes.push(
    `Z = ${count} segments in ${segmentation.rows} rows (${segmentation.rowStarts.join(", ")}) x ` +
      `${segmentation.columns} columns (${
        segmentation.columnStarts.join(", ")
      }), Z^ = ${configuration.baseline}`,
    `predicted ${configuration.predictedMs.toFixed(3)} ms`,
  );
  return {
    kernel: main,
    algorithm: "winrs",
    buffers: buffers.list,
    passes: elements === 0 ? [] : passes,
    workspaceBytes: buffers.workspaceBytes(),
    multiplications,
    amplification: Math.max(
      ...shares.map(({ omega }) =>
        omega === DIRECT ? 1 : amplification(winogradTransform(omega.n, omega.r))
      ),
    ),
    notes,
  };

  function planShare(
    { omega, tiles, ...place }: {
      omega: Omega;
      tiles: number;
      firstColumn: number;
      segmentColumns: number;
      firstBucket: number;
    },
    add: boolean,
  ): void {
    const { groups } = problem;
    const shape: CorrelationShape = {
      batch: problem.batch,
      groups,
      outChannels: problem.outChannels / groups,
      inChannels: problem.inChannels / groups,
      inputBatchStride: inputStrides[0]!,
      inputChannelStride: inputStrides[1]!,
      gradientBatchStride: gradientStrides[0]!,
      gradientChannelStride: gradientStrides[1]!,
      filterOutStride: filterStrides[0]!,
      filterInStride: filterStrides[1]!,
      outer: axes.outerAxes.map(axis),
      width: axis(axes.widthAxis),
      n: omega.n,
      r: omega.r,
      tiles,
      ...place,
      segmentRows: segmentation.rows,
      bucketColumns: segmentation.shared ? segmentation.firstColumns : segmentation.columns,
      imagesFirst: layout !== "nchw",
      channelsInner: layout === "nhwc",
    };
    const transform = winogradTransform(omega.n, omega.r);
    // The gradient is F(n,r)'s filter, X its input.
    const { input, filter, output } = tileTransforms([transform], identity(1));
    const slices = slicesOf(omega);
    const policy = policyOf(request, omega, padded);
    const threads = sliceThreads(policy) * slices;
    const module = moduleBuilder(mode);
    const inputAccess = module.tensor("input", "read", 1, buffers.split(tensor.input));
    const gradientAccess = module.tensor("output", "read", 1, buffers.split(tensor.output));
    const vector = shape.filterInStride === 1 && shape.inChannels % 4 === 0 && elements % 4 === 0
      ? 4
      : 1;
    const result = module.tensor("result", "write", vector, buffers.split(tensor.filter));
    const buckets = workspace === undefined
      ? undefined
      : module.tensor("buckets", "write", vector, buffers.split(workspace));
    const at = { depth: policy.depth, threads };
    const a = correlationLoader(module, gradientAccess, "gradient", shape, filter, {
      ...at,
      side: "a",
      extent: policy.rows,
      offset: 0,
    });
    const b = correlationLoader(module, inputAccess, "input", shape, input, {
      ...at,
      side: "b",
      extent: policy.columns,
      offset: policy.rows / 4,
    });
    const loop = {
      slices,
      padded,
      rows: shape.outChannels,
      columns: shape.inChannels,
      batches: correlationBatches(shape),
      firstStep: "0u",
      endStep: `(depth_end + ${policy.depth - 1}u) / ${policy.depth}u`,
      batchText: correlationBatchText(module, shape),
    };
    const kernel = sliceLoopKernel(
      `winrs_f32_${omegaName(omega)}`,
      `${layout}_${request.filterLayout}_${shape.outer.length}o_o${vector}${
        count > 1 ? "_buckets" : ""
      }${add ? "_add" : ""}${
        splitTrait(
          buffers.split(tensor.input),
          buffers.split(tensor.output),
          buffers.split(tensor.filter),
          ...(workspace === undefined ? [] : [buffers.split(workspace)]),
        )
      }`,
      mode,
      module,
      loop,
      policy,
      a,
      b,
      output,
      correlationStore(module, result, buckets, shape, elements, add),
      0,
    );
    const workgroups = sliceWorkgroups(loop, policy);
    const products = workgroups / (segmentation.rows * shape.segmentColumns) * policy.rows *
      policy.columns * slices * problem.batch * tiles * axes.outputRows;
    multiplications += products;
    passes.push(
      pass(
        kernel,
        buffers,
        { input: tensor.input, output: tensor.output, result: tensor.filter, buckets: workspace },
        workgroups,
        limits,
        products,
      ),
    );
    main ||= kernel.kernel.name.replace(/\.[0-9a-f]{8}$/, "");
    notes.push(
      `${omegaName(omega)}: ${tiles} tiles of ${omega.r} columns of each row, ` +
        `policy ${slicePolicyName(policy)}, ${
          workgroups / (segmentation.rows * shape.segmentColumns)
        } blocks a segment, ${workgroups} workgroups of ${threads} threads`,
    );
  }
}

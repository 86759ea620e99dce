import { sumScalar } from "../../elements/scalar.ts";
import { loadedTensor } from "../../kernels/loader.ts";
import type { PipelineCut } from "../../kernels/schedule/pipeline.ts";
import { fullVariant } from "../../kernels/variant.ts";
import { moduleBuilder } from "../../kernels/module.ts";
import type { SizedKernel } from "../../kernels/sized_kernel.ts";
import {
  correlationBatches,
  correlationBatchText,
  type CorrelationShape,
  type GradientAxis,
} from "../../kernels/slices/correlation.ts";
import {
  correlationLoader,
  correlationStore,
  unitCorrelationLoader,
} from "../../kernels/slices/correlation_loader.ts";
import { sliceLoopKernel } from "../../kernels/slices/loop.ts";
import { tileTransforms } from "../../kernels/slices/patch.ts";
import {
  type SlicePolicy,
  slicePolicyName,
  workgroupThreads,
} from "../../kernels/slices/policy.ts";
import { sliceTile } from "../../kernels/slices/tile.ts";
import { unitSliceKernel, unitSliceName } from "../../kernels/slices/unit_loop.ts";
import type { ConvProblem } from "../../problem/conv_problem.ts";
import { identity } from "../../winograd/matrix.ts";
import { slicesTransform, tileTransform } from "../../winograd/transform.ts";
import { groupOf, spatialAxes, stridesOf } from "../geometry.ts";
import type { PlanRequest } from "../request.ts";
import { type ProblemBuffers, resultElements } from "../tensors.ts";
import {
  loadVector,
  operandsAcross,
  policyOf,
  type SliceSet,
  sliceSetsOf,
  unitPolicyOf,
} from "./baseline.ts";
import { type Configuration, longestPart } from "./configure.ts";
import { kernelRows, type Omega, omegaName, threadSets } from "./omega.ts";
import { longestSum, rowHeights } from "./segments.ts";

/** One kernel's share of a pair: its tiles of each row, and their segments. */
export interface Share {
  readonly omega: Omega;
  /** Rows of ∇Y, or tiles of them, and products of its longest sum. */
  readonly rows: number;
  readonly longest: number;
  readonly tiles: number;
  readonly firstColumn: number;
  readonly segmentColumns: number;
  readonly firstBucket: number;
  /** It runs after another kernel on the same buckets. */
  readonly adds: boolean;
}

/** The shares of a configuration's kernels. */
export function sharesOf(
  { batch }: ConvProblem,
  { axes, pair, segmentation }: Configuration,
): Share[] {
  const { firstColumns, columns, shared } = segmentation;
  const { first, second, k0, k1 } = pair;
  const share = (omega: Omega, place: Omit<Share, "omega" | "rows" | "longest">): Share => {
    const rows = kernelRows(axes, omega);
    const { tiles, segmentColumns } = place;
    const longest = longestSum({ size: rows, tiles, batch }, segmentation, segmentColumns);
    return { omega, rows, longest, ...place };
  };
  const one = share(first, {
    tiles: k0,
    firstColumn: 0,
    segmentColumns: firstColumns,
    firstBucket: 0,
    adds: false,
  });
  if (second === undefined) return [one];
  const two = share(second, {
    tiles: k1,
    firstColumn: k0 * first.r,
    segmentColumns: columns - firstColumns,
    firstBucket: shared ? 0 : firstColumns,
    adds: shared,
  });
  return [one, two];
}

/** A kernel of a share, and how it is started. */
export interface ShareKernel {
  readonly kernel: SizedKernel;
  /** Its policy's name. */
  readonly tile: string;
  readonly workgroups: number;
  /** Workgroups of a segment. */
  readonly blocks: number;
  readonly threads: number;
  /** Flush interval in products; 0 for no flush. */
  readonly flush: number;
  readonly multiplications: number;
}

/** The buffer of bucket 0, which is the result's where its type is that of sums, and that of further buckets. */
interface BucketPlaces {
  readonly result: number;
  readonly buckets: number | undefined;
}

/** A share's kernels: one for each set of its slices, which add to the same buckets. */
export function shareKernels(
  request: PlanRequest,
  segmented: Configuration,
  share: Share,
  tensors: ProblemBuffers,
  places: BucketPlaces,
): ShareKernel[] {
  return sliceSetsOf(request, share.omega).map((set, index, sets) => {
    const adds = share.adds || index > 0;
    // How its name tells it from the others.
    const trait = sets.length === 1 ? [] : [`set${index}`];
    return shareKernel(request, segmented, { ...share, adds }, set, trait, tensors, places);
  });
}

/**
 * Where software-pipelined loops have their back edge: of 16 slices, and of 8 whose sums are not stored in parts, channels innermost,
 * and of nested kernels in the other layouts. Others lose up to 30 % on an H200.
 */
const CUT: PipelineCut = { rows: 2, early: true };

/** The same of nested kernels of channels innermost: 0.99 to 1.025 times as fast on an H200. */
const NESTED_CUT: PipelineCut = { ...CUT, rows: 3 };

function shareKernel(
  request: PlanRequest,
  configuration: Configuration,
  share: Share,
  set: SliceSet,
  setTrait: readonly string[],
  { buffers, tensor, elements: types }: ProblemBuffers,
  places: BucketPlaces,
): ShareKernel {
  const { problem, layout } = request;
  const { omega, adds, longest, rows, tiles } = share;
  const elements = resultElements(problem);
  const shape = correlationShape(request, configuration, share);
  // The gradient is F(n,r)'s filter, X its input.
  const half = types.tile === "f16";
  const transform = ({ n, r }: { n: number; r: number }) =>
    tileTransform(n, r, half ? "f16" : "f32");
  const transforms = tileTransforms(
    [
      ...(omega.rows ? [slicesTransform(transform(omega.rows), set.rows)] : []),
      slicesTransform(transform(omega), set.columns),
    ],
    identity(1),
    threadSets(omega) > 1,
  );
  const slices = set.rows.length * set.columns.length;
  const units = unitPolicyOf(request, omega);
  const policy = units ?? policyOf(request, omega);
  const round = units?.written ?? 1;
  // Products of a part of a sum.
  const every = request.schedule?.flush ??
    Math.ceil(longest / Math.ceil(longest / longestPart(omega)));
  const partial = every < longest ? round * Math.ceil(every / (round * policy.depth)) : 0;
  const module = moduleBuilder(buffers.mode);
  const wide = units === undefined ? loadVector(request, omega) : 8;
  const value = { storage: types.storage, tile: sumScalar(types.storage) };
  const access = (name: "input" | "output") =>
    loadedTensor(module, name, wide, buffers.split(tensor[name]), value);
  const [inputAccess, gradientAccess] = [access("input"), access("output")];
  const whole = shape.strides.filter.in === 1 && shape.inChannels % 4 === 0 && elements % 4 === 0;
  const vector = whole ? 4 : 1;
  const written = (name: "result" | "buckets", buffer: number) =>
    module.tensor(name, "write", vector, buffers.split(buffer));
  const result = written("result", places.result);
  const buckets = places.buckets === undefined ? undefined : written("buckets", places.buckets);
  const { rotatedLoop } = fullVariant(request.schedule);
  const loop = {
    slices,
    rows: shape.outChannels,
    columns: shape.inChannels,
    batches: correlationBatches(shape),
    anyBatches: true,
    steps: Math.ceil(longest / policy.depth),
    firstStep: "0u",
    endStep: `(depth_end + ${policy.depth - 1}u) / ${policy.depth}u`,
    batchText: correlationBatchText(module, shape),
    partial,
  };
  const traits = [
    layout,
    request.filterLayout,
    `${shape.outer.length}o`,
    `o${vector}`,
    ...(buckets === undefined ? [] : ["buckets"]),
    ...(adds ? ["add"] : []),
    ...(half ? ["half_tile"] : []),
    ...setTrait,
    ...(wide === 4 ? ["wide"] : []),
  ];
  const splits = buffers.splitTrait(tensor.input, tensor.output, places.result, places.buckets);
  const name = [`winrs_${types.storage}_${omegaName(omega)}`, traits.join("_") + splits] as const;
  const adding = adds ? "always" : partial > 0 ? "again" : "never";
  const early = units !== undefined;
  const store = correlationStore(module, result, buckets, shape, elements, adding, early);
  const kernel = units === undefined ? threadKernel(policyOf(request, omega)) : unitSliceKernel(
    ...name,
    module,
    loop,
    units,
    unitCorrelationLoader(
      module,
      [
        { which: "gradient", tensor: gradientAccess, transform: transforms.filter },
        { which: "input", tensor: inputAccess, transform: transforms.input },
      ],
      shape,
      units,
    ),
    transforms.output,
    store,
  );
  const { workgroups } = kernel;
  const blocks = workgroups / (configuration.segmentation.rows * shape.segments.columns);
  return {
    kernel,
    tile: units === undefined ? slicePolicyName(policyOf(request, omega)) : unitSliceName(units),
    workgroups,
    blocks,
    threads: kernel.kernel.workgroupSize[0],
    flush: partial * policy.depth,
    multiplications: blocks * policy.rows * policy.columns * slices * problem.batch * tiles * rows,
  };

  function threadKernel(policy: SlicePolicy): SizedKernel {
    const across = operandsAcross(request);
    const nested = omega.rows !== undefined;
    const inner = layout === "nhwc";
    // Loops of 4 slices have 0.92 of the speed with it on an H200, nested ones no more.
    const parted = inner && types.tile === "f32" && slices >= 8 && !nested;
    const operands = { slices, across, scalar: types.tile, parted };
    const pipelines = nested || inner && (slices === 16 || slices === 8 && partial === 0);
    const pipelineCut = !pipelines ? undefined : nested && inner ? NESTED_CUT : CUT;
    const at = {
      tile: sliceTile(policy, operands),
      depth: policy.depth,
      threads: workgroupThreads(policy, slices),
      scalar: types.tile,
    };
    const a = correlationLoader(module, gradientAccess, "gradient", shape, transforms.filter, {
      ...at,
      side: "a",
      extent: policy.rows,
    });
    const b = correlationLoader(module, inputAccess, "input", shape, transforms.input, {
      ...at,
      side: "b",
      extent: policy.columns,
    });
    return sliceLoopKernel(
      ...name,
      module,
      { ...loop, ...operands, rotatedLoop, pipelineCut },
      policy,
      a,
      b,
      transforms.output,
      store,
    );
  }
}

/** A share as the kernel's generator takes it. */
function correlationShape(
  request: PlanRequest,
  { axes, segmentation }: Configuration,
  { omega, rows, tiles, firstColumn, segmentColumns, firstBucket }: Share,
): CorrelationShape {
  const { problem, layout } = request;
  const { inputs, outputs } = groupOf(request);
  const input = stridesOf(request, "input") as [number, number];
  const gradient = stridesOf(request, "output") as [number, number];
  const filter = stridesOf(request, "filter") as [number, number];
  const across = spatialAxes(problem, "forward", input);
  const axis = (d: number): GradientAxis => ({
    ...across[d]!,
    gradientStride: gradient[2 + d]!,
    filterStride: filter[2 + d]!,
  });
  return {
    batch: problem.batch,
    groups: problem.groups,
    outChannels: outputs,
    inChannels: inputs,
    strides: {
      input: { batch: input[0], channel: input[1] },
      gradient: { batch: gradient[0], channel: gradient[1] },
      filter: { out: filter[0], in: filter[1] },
    },
    outer: axes.outerAxes.map(axis),
    width: axis(axes.widthAxis),
    tile: omega,
    segments: {
      tiles,
      firstColumn,
      columns: segmentColumns,
      rows: segmentation.rows,
      heights: rowHeights(rows, segmentation),
      firstBucket,
      bucketColumns: segmentation.shared ? segmentation.firstColumns : segmentation.columns,
    },
    imagesFirst: layout !== "nchw",
    channelsInner: layout === "nhwc",
  };
}

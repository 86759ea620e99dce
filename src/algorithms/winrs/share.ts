import {
  moduleBuilder,
  type SizedKernel,
  type SizeMode,
  splitTrait,
} from "../../kernels/module.ts";
import {
  correlationBatches,
  correlationBatchText,
  type CorrelationShape,
  type GradientAxis,
} from "../../kernels/slices/correlation.ts";
import { loadedTensor } from "../../kernels/loader.ts";
import type { Rotation } from "../../kernels/loop/thread_products.ts";
import {
  correlationLoader,
  unitCorrelationLoader,
} from "../../kernels/slices/correlation_loader.ts";
import { correlationStore } from "../../kernels/slices/correlation_store.ts";
import { sliceLoopKernel } from "../../kernels/slices/loop.ts";
import { tileTransforms } from "../../kernels/slices/patch.ts";
import {
  type SlicePolicy,
  slicePolicyName,
  workgroupThreads,
} from "../../kernels/slices/policy.ts";
import { sliceTile } from "../../kernels/slices/tile.ts";
import { unitSliceKernel, unitSliceName } from "../../kernels/slices/unit_loop.ts";
import { fullVariant } from "../../kernels/main_loop_variant.ts";
import { sumScalar } from "../../elements/scalar.ts";
import { tensorShape } from "../../problem/conv_problem.ts";
import { stridesInLayout } from "../../tensor/layout.ts";
import { identity } from "../../winograd/matrix.ts";
import { slicesTransform, tileTransform } from "../../winograd/transform.ts";
import type { PlanRequest } from "../request.ts";
import { type BufferList, type problemBuffers, resultElements } from "../tensors.ts";
import { type Configuration, longestPart } from "./configure.ts";
import { kernelRows } from "./axes.ts";
import { type Omega, omegaName, threadSets } from "./omega.ts";
import { longestSum, rowHeights } from "./segments.ts";
import {
  loadVector,
  operandsAcross,
  policyOf,
  type SliceSet,
  sliceSetsOf,
  unitPolicyOf,
} from "./policies.ts";

/** The tiles of each row that one kernel of a pair takes, and the segments that they lie in. */
export interface Share {
  readonly omega: Omega;
  readonly tiles: number;
  readonly firstColumn: number;
  readonly segmentColumns: number;
  readonly firstBucket: number;
  /** It runs after another kernel on the same buckets. */
  readonly adds: boolean;
}

/** What the kernels of a configuration do. */
export function sharesOf({ pair, segmentation }: Configuration): Share[] {
  const { firstColumns, columns, shared } = segmentation;
  const first: Share = {
    omega: pair.first,
    tiles: pair.k0,
    firstColumn: 0,
    segmentColumns: firstColumns,
    firstBucket: 0,
    adds: false,
  };
  if (pair.second === undefined) return [first];
  return [first, {
    omega: pair.second,
    tiles: pair.k1,
    firstColumn: pair.k0 * pair.first.r,
    segmentColumns: columns - firstColumns,
    firstBucket: shared ? 0 : firstColumns,
    adds: shared,
  }];
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
  /** Products summed before the sums go to the bucket; 0 where all are summed first. */
  readonly flush: number;
  readonly multiplications: number;
}

/** Products of a part for sums of `length`; 0 for all of them. */
function flushEvery({ flush }: PlanRequest, omega: Omega, length: number): number {
  const every = flush ?? Math.ceil(length / Math.ceil(length / longestPart(omega)));
  return every < length ? every : 0;
}

/** Buffers of a problem, as kernels of shares take them. */
type ShareBuffers = Pick<ReturnType<typeof problemBuffers>, "buffers" | "tensor" | "elements">;

/**
 * Makes a share's kernels: one, or one of each set of its slices, each of which adds to the buckets of those before it.
 *
 * @param target The buffer of bucket 0: the result's where that is what sums are in.
 * @param workspace The buffer of buckets 1 and on, where there are any.
 * @throws {UnsupportedError} if no policy fits the device.
 */
export function shareKernels(
  request: PlanRequest,
  mode: SizeMode,
  configuration: Configuration,
  share: Share,
  operands: ShareBuffers,
  target: number,
  workspace: number | undefined,
): ShareKernel[] {
  return sliceSetsOf(request, share.omega).map((set, index, sets) =>
    shareKernel(
      request,
      mode,
      configuration,
      { ...share, adds: share.adds || index > 0 },
      set,
      // How its name tells it from the others.
      sets.length === 1 ? [] : [`set${index}`],
      operands,
      target,
      workspace,
    )
  );
}

/**
 * Where a loop of 16 slices ends where it is rotated, and one of 8 whose sums are not stored in parts, of channels innermost, and of
 * nested kernels in the other layouts: others lose up to 30 % on an H200.
 */
const ROTATION: Rotation = { rows: 2, early: true };

/** The same of nested kernels of channels innermost: 0.99 to 1.025 times as fast on an H200. */
const NESTED_ROTATION: Rotation = { ...ROTATION, rows: 3 };

function shareKernel(
  request: PlanRequest,
  mode: SizeMode,
  configuration: Configuration,
  { adds, omega, ...place }: Share,
  set: SliceSet,
  setTrait: readonly string[],
  { buffers, tensor, elements: types }: ShareBuffers,
  target: number,
  workspace: number | undefined,
): ShareKernel {
  const { problem, layout } = request;
  const { axes, segmentation } = configuration;
  const elements = resultElements(problem);
  const shape = correlationShape(request, configuration, { adds, omega, ...place });
  // The gradient is F(n,r)'s filter, X its input.
  const half = types.tile === "f16";
  const [columns, ...rows] = [omega, ...(omega.rows === undefined ? [] : [omega.rows])]
    .map(({ n, r }) => tileTransform(n, r, half ? "f16" : "f32"));
  const transforms = tileTransforms(
    [
      ...rows.map((one) => slicesTransform(one, set.rows)),
      slicesTransform(columns!, set.columns),
    ],
    identity(1),
    threadSets(omega) > 1,
  );
  const slices = set.rows.length * set.columns.length;
  const units = unitPolicyOf(request, omega);
  const policy = units ?? policyOf(request, omega);
  const { tiles, segmentColumns } = place;
  const size = kernelRows(axes, omega);
  const length = longestSum({ size, tiles, batch: problem.batch }, segmentation, segmentColumns);
  const round = units?.written ?? 1;
  const partial = round * Math.ceil(flushEvery(request, omega, length) / (round * policy.depth));
  const module = moduleBuilder(mode);
  const splits = splitsOf(buffers, [tensor.input, tensor.output, target, workspace]);
  const wide = units === undefined ? loadVector(request, omega) : 8;
  const access = (name: "input" | "output") =>
    loadedTensor(module, name, wide, buffers.split(tensor[name]), {
      storage: types.storage,
      tile: sumScalar(types.storage),
    });
  const [inputAccess, gradientAccess] = [access("input"), access("output")];
  const vector = shape.filterInStride === 1 && shape.inChannels % 4 === 0 && elements % 4 === 0
    ? 4
    : 1;
  const result = module.tensor("result", "write", vector, buffers.split(target));
  const buckets = workspace === undefined
    ? undefined
    : module.tensor("buckets", "write", vector, buffers.split(workspace));
  const { rotatedLoop } = fullVariant(request.variant);
  const loop = {
    slices,
    rows: shape.outChannels,
    columns: shape.inChannels,
    batches: correlationBatches(shape),
    anyBatches: true,
    steps: Math.ceil(length / policy.depth),
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
    ...(workspace === undefined ? [] : ["buckets"]),
    ...(adds ? ["add"] : []),
    ...(half ? ["half_tile"] : []),
    ...setTrait,
    ...(wide === 4 ? ["wide"] : []),
  ];
  const adding = adds ? "always" : partial > 0 ? "again" : "never";
  const name = [`winrs_${types.storage}_${omegaName(omega)}`, traits.join("_") + splits] as const;
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
  const blocks = workgroups / (segmentation.rows * shape.segmentColumns);
  return {
    kernel,
    tile: units === undefined ? slicePolicyName(policyOf(request, omega)) : unitSliceName(units),
    workgroups,
    blocks,
    threads: kernel.kernel.workgroupSize[0],
    flush: partial * policy.depth,
    multiplications: blocks * policy.rows * policy.columns * slices * problem.batch *
      place.tiles * kernelRows(axes, omega),
  };

  function threadKernel(policy: SlicePolicy): SizedKernel {
    const across = operandsAcross(request);
    const nested = omega.rows !== undefined;
    const inner = layout === "nhwc";
    // Loops of 4 slices have 0.92 of the speed with it on an H200, nested ones no more.
    const parted = inner && types.tile === "f32" && slices >= 8 && !nested;
    const operands = { slices, across, scalar: types.tile, parted };
    const rotates = nested || inner && (slices === 16 || slices === 8 && partial === 0);
    const rotation = !rotates ? undefined : nested && inner ? NESTED_ROTATION : ROTATION;
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
      { ...loop, ...operands, rotatedLoop, rotation },
      policy,
      a,
      b,
      transforms.output,
      store,
    );
  }
}

function splitsOf(buffers: BufferList, places: readonly (number | undefined)[]): string {
  return splitTrait(
    ...places.flatMap((place) => place === undefined ? [] : [buffers.split(place)]),
  );
}

/** What the kernel's generator takes of a share. */
function correlationShape(
  { problem, layout, filterLayout }: PlanRequest,
  { axes, segmentation }: Configuration,
  { omega, adds: _, ...place }: Share,
): CorrelationShape {
  const { groups } = problem;
  const [input, gradient, filter] = (["input", "output", "filter"] as const).map((which) =>
    stridesInLayout(tensorShape(problem, which), which === "filter" ? filterLayout : layout)
  ) as [number[], number[], number[]];
  const axis = (d: number): GradientAxis => ({
    size: problem.inputSize[d]!,
    places: problem.outputSize[d]!,
    taps: problem.filterSize[d]!,
    stride: problem.stride[d]!,
    dilation: problem.dilation[d]!,
    padding: problem.paddingBegin[d]!,
    sourceStride: input[2 + d]!,
    gradientStride: gradient[2 + d]!,
    filterStride: filter[2 + d]!,
  });
  return {
    batch: problem.batch,
    groups,
    outChannels: problem.outChannels / groups,
    inChannels: problem.inChannels / groups,
    inputBatchStride: input[0]!,
    inputChannelStride: input[1]!,
    gradientBatchStride: gradient[0]!,
    gradientChannelStride: gradient[1]!,
    filterOutStride: filter[0]!,
    filterInStride: filter[1]!,
    outer: axes.outerAxes.map(axis),
    width: axis(axes.widthAxis),
    n: omega.n,
    r: omega.r,
    tiledRows: omega.rows,
    ...place,
    segmentRows: segmentation.rows,
    segmentHeights: rowHeights(kernelRows(axes, omega), segmentation),
    bucketColumns: segmentation.shared ? segmentation.firstColumns : segmentation.columns,
    imagesFirst: layout !== "nchw",
    channelsInner: layout === "nhwc",
  };
}

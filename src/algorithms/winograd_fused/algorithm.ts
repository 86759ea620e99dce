import { elementsTrait, sumOf } from "../../elements/elements.ts";
import { epilogueTrait } from "../../kernels/epilogue.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import type { PipelineCut } from "../../kernels/schedule/pipeline.ts";
import { fullVariant } from "../../kernels/variant.ts";
import { type ModuleBuilder, moduleBuilder, type SizeMode } from "../../kernels/module.ts";
import {
  filterDepth,
  filterLoader,
  filterTransformKernel,
} from "../../kernels/slices/filter_transform.ts";
import type { SliceGeometry } from "../../kernels/slices/geometry.ts";
import { imageLoader, imageStore } from "../../kernels/slices/image.ts";
import {
  sliceBlocks,
  sliceLoopKernel,
  type SplitBlocks,
  splitStore,
  sumPartsKernel,
} from "../../kernels/slices/loop.ts";
import { tileTransforms } from "../../kernels/slices/patch.ts";
import { slicePolicyName, workgroupThreads } from "../../kernels/slices/policy.ts";
import { sliceTile } from "../../kernels/slices/tile.ts";
import { FLOAT_DTYPES, operandTensors, resultTensor } from "../../problem/conv_problem.ts";
import type { PlanArithmetic } from "../../problem/plan_arithmetic.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { identity } from "../../winograd/matrix.ts";
import { winogradTransform } from "../../winograd/transform.ts";
import type { Algorithm } from "../algorithm.ts";
import { convEpilogue, pass, refuseBindings } from "../passes.ts";
import type { Plan } from "../plan.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { type ProblemBuffers, problemBuffers, resultElements } from "../tensors.ts";
import {
  chainSteps,
  filterShape,
  loadVector,
  runTile,
  sliceGeometry,
  type TileRun,
  unsupportedReason,
} from "./geometry.ts";
import { imageAcross } from "./policies.ts";
import {
  fusedCandidates,
  type FusedGeometry,
  fusedGeometry,
  type RunCut,
  runsAmplification,
} from "./price.ts";

/**
 * Workgroups of up to so many threads keep their vector loads before barriers: compilers would else move them so late that a workgroup
 * without neighbours waits for them.
 */
const FEW_THREADS = 128;

/**
 * Where software-pipelined loops of channels innermost have their back edge: of 16 slices along two axes, and of 6 along one whose sums are of a whole depth.
 * Other slices and layouts lose up to 30 % on an H200.
 */
const TWO_AXES: PipelineCut = { rows: 4, early: false };
const ONE_AXIS: PipelineCut = { rows: 4, early: true };

/** Plans fused Winograd along the last one (`winograd1d`) or two (`winograd2d`) axes, forward or backward-data. */
function planFused(
  { request, axes, cuts, splits }: FusedGeometry,
  mode: SizeMode,
): Planned<Plan> {
  const tensors = problemBuffers(request, mode);
  const { buffers, elements } = tensors;
  // Kernels share the buffer: each one's parts are summed before the next one stores its own.
  const most = Math.max(...cuts.map(({ parts }) => parts));
  const partial = most === 0
    ? undefined
    : buffers.workspace("partial results", most, sumOf(elements));
  const made = cuts.map((cut) => runPasses(request, tensors, cut, partial));
  // The first kernel has the largest tiles.
  const [{ kernel, arithmetic }] = made as [typeof made[number]];
  const plan = buffers.plan({
    kernel,
    algorithm: `winograd${axes}d`,
    passes: resultElements(request.problem) === 0 ? [] : made.flatMap(({ passes }) => passes),
    multiplications: made.reduce((sum, { products }) => sum + products, 0),
    amplification: runsAmplification(cuts.map(({ runs }) => runs)),
    arithmetic,
    schedule: { ...request.schedule, policy: slicePolicyName(cuts[0]!.policy), splits },
    notes: made.flatMap(({ notes }) => notes),
  });
  // Full blocks beside split ones need bindings for both results.
  const unbound = splits > 1 && request.schedule?.splits === undefined && !isRefusal(plan) &&
    refuseBindings(plan, request.limits) !== undefined;
  if (!unbound) return plan;
  const whole = fusedGeometry({ ...request, schedule: { ...request.schedule, splits: 1 } }, axes);
  return isRefusal(whole) ? whole : planFused(whole, mode);
}

/** The passes of one kernel: its filter transform, the fused loop, and the sums of what splits leave. */
function runPasses(
  request: PlanRequest,
  tensors: ProblemBuffers,
  { runs, product: sliced, policy, split }: RunCut,
  partial: number | undefined,
) {
  const { problem, layout } = request;
  const { buffers, tensor, ends, elements } = tensors;
  const { mode } = buffers;
  const axes = runs.length;
  const [sourceName] = operandTensors(problem.op);
  const source = tensor[sourceName];
  const result = tensor[resultTensor(problem.op)];
  const scalar = sumOf(elements);
  const transforms = runs.map(({ n, r }) => winogradTransform(n, r));
  const { input, filter, output } = tileTransforms(transforms, identity(1));
  const geometry = sliceGeometry(request, runs);
  const { slices, tiles, results } = sliced;
  const hasWhole = split === undefined || split.first > 0;
  const { steps: depthSteps, longest, chain, chains } = chainSteps(
    request,
    hasWhole ? { ...sliced, splits: 1 } : sliced,
    policy.depth,
  );
  const stored = chains === "stored";
  const filterSide = layout === "nhwc" ? "columns" : "rows";
  const vector = storeVector(geometry, problem.groups, filterSide);
  const spread = filterSide === "rows" && vector === 1;
  const [copied, patches] = filterSide === "rows" ? ["a", "b"] as const : ["b", "a"] as const;
  const operands = { slices, across: imageAcross(request), scalar, copied };
  const tile = sliceTile(policy, operands);
  const threads = workgroupThreads(policy, slices);
  const { depth } = policy;
  const at = (side: "a" | "b", spread: boolean) => {
    const extent = side === "a" ? policy.rows : policy.columns;
    return { side, extent, depth, threads, tile, spread, scalar };
  };

  const tileName = `n${runs.map(({ n }) => n).join("x")}r${runs.map(({ r }) => r).join("x")}`;
  const shape = filterShape(request, runs, policy[filterSide], depth);
  const transformed = buffers.workspace(
    `filter transformed by ${runTile(runs)}`,
    shape.groups * slices * filterDepth(shape) * shape.paddedPlaces,
    scalar,
  );
  const filters = { filter: tensor.filter, transformed };
  const filterKernel = filterTransformKernel(
    buffers.module(filters),
    tileName,
    shape,
    filter,
    elements.storage,
  );
  const module = moduleBuilder(mode);
  const filterAccess = module.tensor("transformed", "read", 4, buffers.split(transformed));
  const wide = loadVector(request, slices, policy);
  const order = wide === 4 && threads <= FEW_THREADS ? "ordered" : "read";
  const image = module.tensor(sourceName, order, wide, buffers.split(source), elements.storage);
  const filterLoads = filterLoader(module, filterAccess, {
    slices,
    places: shape.paddedPlaces,
    depth: filterDepth(shape),
  }, at(copied, false));
  const imageLoads = imageLoader(module, image, geometry, input, at(patches, spread));
  const [a, b] = filterSide === "rows" ? [filterLoads, imageLoads] : [imageLoads, filterLoads];
  // A reduction of split-K sums the parts of a block and has the epilogue.
  const parts = split && partial !== undefined ? { split, results, buffer: partial } : undefined;
  const resultStore = (module: ModuleBuilder, again: boolean) => {
    const to = module.tensor("result", "write", vector, buffers.split(result), elements.result);
    const targets = module.size("image_targets", geometry.targets);
    const row = (row: string) => `group * ${targets} + ${row}`;
    const steps = convEpilogue(request, filterSide)(module, vector, row);
    const columns = spread ? policy.columns : undefined;
    return {
      trait: epilogueTrait(steps),
      store: imageStore(module, to, geometry, filterSide, steps, again, columns),
    };
  };
  const whole = hasWhole ? resultStore(module, stored) : undefined;
  const shared = parts &&
    splitStore(
      module.tensor("parts", "write", 4, buffers.split(parts.buffer), scalar),
      parts,
      policy,
      stored,
    );
  const { rotatedLoop } = fullVariant(request.schedule);
  const loop = {
    ...operands,
    rotatedLoop,
    pipelineCut: layout !== "nhwc"
      ? undefined
      : axes === 2 && slices === 16
      ? TWO_AXES
      : axes === 1 && slices === 6 && chains === "whole" && hasWhole
      ? ONE_AXIS
      : undefined,
    rows: filterSide === "rows" ? geometry.targets : tiles,
    columns: filterSide === "rows" ? tiles : geometry.targets,
    batches: problem.groups,
    split,
    steps: longest,
    sameSteps: split === undefined,
    batchText: "  let group = batch;",
    firstStep: "0u",
    endStep: module.size("steps", depthSteps),
    partial: stored ? chain : 0,
  };
  const traits = `winograd${axes}d_${problem.op.replace("-", "_")}_${
    elementsTrait(elements)
  }_a${slices}${tileName}`;
  const places = `${layout}_${geometry.outer.length}o_${
    geometry.tiled.map(({ chunks }) => chunks).join("x")
  }_o${vector}${axes === 1 && reachesBeyond(runs, geometry) ? "_beyond" : ""}`;
  const kernel = sliceLoopKernel(
    traits,
    `${places}${whole?.trait ?? ""}${wide === 4 ? "_wide" : ""}${
      split === undefined ? "" : hasWhole ? "_tail" : "_split"
    }${buffers.splitTrait(transformed, source, hasWhole ? result : undefined)}`,
    module,
    loop,
    policy,
    a,
    b,
    output,
    whole?.store ?? shared!,
    whole && shared,
  );
  const { workgroups } = kernel;
  const products = sliceBlocks(loop, policy) * policy.rows * policy.columns * slices *
    depthSteps * depth;
  const bound = { transformed, [sourceName]: source, result, ...ends, parts: partial };
  const passes = [
    ...(filterKernel.workgroups > 0 ? [pass(filterKernel, buffers, filters)] : []),
    pass(kernel, buffers, bound, products),
  ];
  if (parts) {
    const module = moduleBuilder(mode);
    const from = module.tensor("parts", "read", 4, buffers.split(parts.buffer), scalar);
    const { trait, store } = resultStore(module, false);
    const name = `${traits}_parts_${policy.rows}x${policy.columns}_` +
      `${places}${trait}${buffers.splitTrait(result)}`;
    const sum = sumPartsKernel(name, module, loop, parts, policy, from, store);
    const bound = { parts: parts.buffer, result, ...ends };
    passes.push(pass(sum, buffers, bound));
  }
  const outer = problem.filterSize.slice(axes).map(() => ({ n: 1, r: 1 }));
  const arithmetic: PlanArithmetic = {
    tiles: [{ axes: [...outer, ...runs.map(({ n, r }) => ({ n, r }))] }],
    ...(chains === "whole" && hasWhole ? {} : { chain: chain * depth }),
    ...(hasWhole ? {} : { segment: longest * depth }),
    // Each split and each flush is transformed by itself.
    ...(stored || !hasWhole ? { fold: "results" } : {}),
  };
  const notes = [
    runsNote(runs, geometry),
    `policy ${slicePolicyName(policy)}: ${workgroups} workgroups of ${threads} threads` +
    (split === undefined ? "" : `, ${sharersNote(split)}`) +
    (chains === "whole" ? "" : `, sums are stored every ${chain * depth} products`),
  ];
  return { kernel: canonicalName(kernel.kernel), passes, products, arithmetic, notes };
}

/** `3 of which share the depth of a block`. */
function sharersNote({ first, count, splits }: SplitBlocks): string {
  const blocks = first > 0 ? `each of the last ${count} blocks` : "a block";
  return `${splits} of which share the depth of ${blocks}`;
}

/** Whether the last tile has places that are no results. */
function reachesBeyond(runs: readonly TileRun[], { tiled }: SliceGeometry): boolean {
  return runs.some(({ first, n, count }, d) => first + n * count > tiled[d]!.places);
}

/** `F(6,3): 9 tiles of a row of 56, 8 products in place of 18`. */
function runsNote(runs: readonly TileRun[], { tiled }: SliceGeometry): string {
  const [n, r] = [runs.map((run) => run.n), runs.map((run) => run.r)];
  const counts = runs.map(({ count }) => count);
  const products = elementCount(runs.map((run) => run.n + run.r - 1));
  const pieces = elementCount(tiled.map(({ chunks }) => chunks));
  const row = counts[0] === 1 ? "tile of a row" : "tiles of a row";
  return `${runTile(runs)}: ${counts.join(" x ")} ${
    counts.length > 1 ? "tiles of an image" : row
  } of ${tiled.map(({ places }) => places).join(" x ")}, ${products} products in place of ${
    elementCount(n) * elementCount(r)
  }${pieces > 1 ? `, the filter in ${pieces} pieces` : ""}`;
}

/** Whether four neighbouring columns of a result lie together and aligned. */
function storeVector(geometry: SliceGeometry, groups: number, channels: "rows" | "columns"): 1 | 4 {
  const { batchInner, batch, targets, targetChannelStride, targetBatchStride, outer, tiled } =
    geometry;
  const strides = [...outer, ...tiled].map(({ targetStride }) => targetStride);
  const whole = (...values: number[]) => values.every((value) => value % 4 === 0);
  if (channels === "columns") {
    return targetChannelStride === 1 && whole(targets, targetBatchStride, ...strides) ? 4 : 1;
  }
  const groupStride = groups > 1 ? targets * targetChannelStride : 0;
  return batchInner && targetBatchStride === 1 &&
      whole(batch, targetChannelStride, groupStride, ...strides)
    ? 4
    : 1;
}

function winogradFused(axes: 1 | 2): Algorithm<FusedGeometry> {
  return {
    name: `winograd${axes}d`,
    options: ["policy", "splits", "flush", "rotatedLoop", "tile"],
    dtypes: FLOAT_DTYPES,
    takesParts: true,
    refuse: (request) => unsupportedReason(request, axes),
    candidates: (request) => fusedCandidates(request, axes),
    geometry: (request) => fusedGeometry(request, axes),
    price: ({ time }) => time,
    plan: planFused,
  };
}

/** Winograd in one kernel along the last two axes. */
export const winograd2d = winogradFused(2);

/** The same along the last one. */
export const winograd1d = winogradFused(1);

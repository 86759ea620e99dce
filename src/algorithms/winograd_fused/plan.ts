import { elementsTrait, sumOf } from "../../elements/elements.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { activationStep, biasStep, epilogueTrait } from "../../kernels/epilogue.ts";
import {
  type ModuleBuilder,
  moduleBuilder,
  type SizeMode,
  splitTrait,
  WHOLE,
} from "../../kernels/module.ts";
import { filterDepth, filterTransformKernel } from "../../kernels/slices/filter_transform.ts";
import { filterLoader } from "../../kernels/slices/filter_loader.ts";
import type { SliceGeometry } from "../../kernels/slices/geometry.ts";
import { imageLoader } from "../../kernels/slices/image_loader.ts";
import { imageStore } from "../../kernels/slices/image_store.ts";
import { sliceBlocks, sliceLoopKernel, type SplitBlocks } from "../../kernels/slices/loop.ts";
import { splitStore, sumPartsKernel } from "../../kernels/slices/split_blocks.ts";
import { tileTransforms } from "../../kernels/slices/patch.ts";
import { slicePolicyName, workgroupThreads } from "../../kernels/slices/policy.ts";
import { sliceTile } from "../../kernels/slices/tile.ts";
import type { Rotation } from "../../kernels/loop/thread_products.ts";
import { fullVariant } from "../../kernels/main_loop_variant.ts";
import { resultTensor } from "../../problem/conv_problem.ts";
import type { PlanArithmetic } from "../../problem/plan_arithmetic.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { amplification, amplification2d } from "../../winograd/amplification.ts";
import { identity } from "../../winograd/matrix.ts";
import { formatTile, parseTile } from "../../winograd/tile.ts";
import { winogradTransform } from "../../winograd/transform.ts";
import { pass, refuseBindings } from "../passes.ts";
import type { Pass, Plan } from "../plan.ts";
import { isRefusal, type Planned, refusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { problemBuffers, resultElements } from "../tensors.ts";
import { filterShape, runTile, sliceGeometry, type TileRun } from "./geometry.ts";
import { cutRun, type RunCut } from "./cut_run.ts";
import { imageAcross } from "./policies.ts";
import { fusedCut } from "./price.ts";
import { chainSteps, loadVector } from "./product.ts";

/**
 * Threads of a workgroup up to which loads of vectors are kept from passing barriers: a compiler else makes them so late that a
 * workgroup which runs alone waits for them.
 */
const FEW_THREADS = 128;

/**
 * Where rotated loops of channels innermost end: of 16 slices along two axes, and of 6 along one whose sums are of a whole depth.
 * Other slices and layouts lose up to 30 % on an H200.
 */
const TWO_AXES: Rotation = { rows: 4, early: false };
const ONE_AXIS: Rotation = { rows: 4, early: true };

/** Plans fused Winograd along the last one (`winograd1d`) or two (`winograd2d`) axes, forward or backward-data. */
export function planWinogradFused(axes: 1 | 2): (
  request: PlanRequest,
  mode: SizeMode,
) => Planned<Plan> {
  return (request, mode) => planFused(request, mode, axes);
}

function planFused(request: PlanRequest, mode: SizeMode, axes: 1 | 2): Planned<Plan> {
  const { problem, limits, layout } = request;
  const tile = request.tile === undefined ? undefined : parseTile(request.tile);
  if (tile !== undefined && tile.n.length !== axes) {
    const given = tile.n.length === 1 ? "1 axis" : `${tile.n.length} axes`;
    return refusal(
      "problem",
      `tile ${formatTile(tile)} has ${given}, winograd${axes}d tiles ${axes}`,
    );
  }
  const { buffers, tensor, bias, elements } = problemBuffers(request);
  const source = problem.op === "fwd" ? tensor.input : tensor.output;
  const result = tensor[resultTensor(problem.op)];
  const sourceName = problem.op === "fwd" ? "input" : "output";
  const passes: Pass[] = [];
  const notes: string[] = [];
  const { runs: kernels, splits } = fusedCut(request, axes);
  let multiplications = 0;
  let enlarged = 1;
  let main = "";
  let arithmetic: PlanArithmetic = {};
  const cuts: RunCut[] = [];
  for (const runs of kernels) {
    const cut = cutRun(request, runs, splits);
    if (isRefusal(cut)) return cut;
    cuts.push(cut);
  }
  // Each kernel's are summed before the next one's are stored.
  const most = Math.max(...cuts.map(({ parts }) => parts));
  const partial = most === 0
    ? undefined
    : buffers.add("partial results", "workspace", most, sumOf(elements));
  for (const cut of cuts) {
    const kernel = planRun(cut);
    main ||= kernel;
  }
  const plan = buffers.plan({
    kernel: main,
    algorithm: axes === 1 ? "winograd1d" : "winograd2d",
    passes: resultElements(problem) === 0 ? [] : passes,
    multiplications,
    amplification: enlarged,
    arithmetic,
    notes,
  });
  // Whole blocks beside split ones bind both their results.
  const unbound = splits > 1 && request.splits === undefined && !isRefusal(plan) &&
    refuseBindings(plan, limits) !== undefined;
  return unbound ? planFused({ ...request, splits: 1 }, mode, axes) : plan;

  /** The passes of one kernel: its filter transform, then the fused loop. */
  function planRun({ runs, product: sliced, policy, split }: RunCut): string {
    const transforms = runs.map(({ n, r }) => winogradTransform(n, r));
    const { input, filter, output } = tileTransforms(transforms, identity(1));
    enlarged = Math.max(
      enlarged,
      transforms.length === 1
        ? amplification(transforms[0]!)
        : amplification2d(transforms[0]!, transforms[1]!),
    );
    const across = imageAcross(request);
    const geometry = sliceGeometry(request, runs);
    const { slices, tiles, results } = sliced;
    const hasWhole = split === undefined || split.first > 0;
    const { steps: depthSteps, longest, chain, chains } = chainSteps(
      request,
      hasWhole ? { ...sliced, splits: 1 } : sliced,
      policy.depth,
    );
    // The first kernel has the largest tiles.
    if (main === "") {
      const outer = problem.filterSize.slice(axes).map(() => ({ n: 1, r: 1 }));
      arithmetic = {
        tiles: [{ axes: [...outer, ...runs.map(({ n, r }) => ({ n, r }))] }],
        ...(chains === "whole" && hasWhole ? {} : { chain: chain * policy.depth }),
        ...(hasWhole ? {} : { segment: longest * policy.depth }),
        // Each split is transformed by itself, and so are parts that are stored.
        ...(chains === "stored" || !hasWhole && chains === "whole" ? { fold: "results" } : {}),
      };
    }
    const filterSide = layout === "nhwc" ? "columns" : "rows";
    const tileName = `n${runs.map(({ n }) => n).join("x")}r${runs.map(({ r }) => r).join("x")}`;
    const shape = filterShape(request, runs, policy[filterSide], policy.depth);
    const transformed = buffers.add(
      `filter transformed by ${runTile(runs)}`,
      "workspace",
      shape.groups * slices * filterDepth(shape) * shape.paddedPlaces,
      sumOf(elements),
    );
    const filterKernel = filterTransformKernel(tileName, shape, filter, mode, {
      filter: buffers.split(tensor.filter),
      transformed: buffers.split(transformed),
    }, elements.storage);
    const module = moduleBuilder(mode);
    const threads = workgroupThreads(policy, slices);
    const vector = storeVector(geometry, problem.groups, filterSide);
    const spread = filterSide === "rows" && vector === 1;
    const [copied, patches] = filterSide === "rows" ? ["a", "b"] as const : ["b", "a"] as const;
    const operands = { slices, across, scalar: sumOf(elements), copied };
    const tile = sliceTile(policy, operands);
    const at = (operand: "filter" | "image") => {
      const side = operand === "filter" ? copied : patches;
      return {
        side,
        extent: side === "a" ? policy.rows : policy.columns,
        depth: policy.depth,
        threads,
        tile,
        spread: operand === "image" && spread,
        scalar: sumOf(elements),
      };
    };
    const filterAccess = module.tensor("transformed", "read", 4, buffers.split(transformed));
    const wide = loadVector(request, slices, policy);
    const image = module.tensor(
      sourceName,
      wide === 4 && threads <= FEW_THREADS ? "ordered" : "read",
      wide,
      buffers.split(source),
      elements.storage,
    );
    const loaders = {
      filter: filterLoader(module, filterAccess, {
        slices,
        places: shape.paddedPlaces,
        depth: filterDepth(shape),
      }, at("filter")),
      image: imageLoader(module, image, geometry, input, at("image")),
    };
    const { epilogue } = request;
    // Splits' sums of a block meet in a pass of their own, which has the epilogue.
    const parts = split && { split, results };
    const resultStore = (module: ModuleBuilder, again: boolean) => {
      const to = module.tensor("result", "write", vector, buffers.split(result), elements.result);
      const targets = module.size("image_targets", geometry.targets);
      const row = (row: string) => `group * ${targets} + ${row}`;
      const steps = [
        ...(epilogue.bias ? [biasStep(module, filterSide, WHOLE, row, elements.result)] : []),
        ...(epilogue.activation === "none" ? [] : [activationStep(epilogue.activation)]),
      ];
      const columns = spread ? policy.columns : undefined;
      return {
        trait: epilogueTrait(steps),
        store: imageStore(module, to, geometry, filterSide, steps, again, columns),
      };
    };
    const whole = hasWhole ? resultStore(module, chains === "stored") : undefined;
    const shared = parts && partial !== undefined
      ? splitStore(
        module.tensor("parts", "write", 4, buffers.split(partial), sumOf(elements)),
        parts,
        policy,
        chains === "stored",
      )
      : undefined;
    const { outputLayout, rotatedLoop } = fullVariant(request.variant);
    const loop = {
      ...operands,
      outputLayout,
      rotatedLoop,
      rotation: layout !== "nhwc"
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
      partial: chains === "stored" ? chain : 0,
    };
    const [a, b] = filterSide === "rows"
      ? [loaders.filter, loaders.image]
      : [loaders.image, loaders.filter];
    const traits = `winograd${axes}d_${problem.op.replace("-", "_")}_${
      elementsTrait(elements)
    }_a${slices}${tileName}`;
    const places = `${layout}_${geometry.outer.length}o_${
      geometry.tiled.map(({ chunks }) => chunks).join("x")
    }_o${vector}${axes === 1 && reachesBeyond(runs, geometry) ? "_beyond" : ""}`;
    const splitsOf = (...all: readonly (number | undefined)[]) =>
      splitTrait(...all.filter((one) => one !== undefined).map((one) => buffers.split(one)));
    const kernel = sliceLoopKernel(
      traits,
      `${places}${whole?.trait ?? ""}${wide === 4 ? "_wide" : ""}${
        split === undefined ? "" : hasWhole ? "_tail" : "_split"
      }${splitsOf(transformed, source, hasWhole ? result : undefined)}`,
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
      depthSteps * policy.depth;
    multiplications += products;
    if (filterKernel.workgroups > 0) {
      passes.push(pass(filterKernel, buffers, { filter: tensor.filter, transformed }, limits));
    }
    const bound = { transformed, [sourceName]: source, result, bias, parts: partial };
    passes.push(pass(kernel, buffers, bound, limits, products));
    if (parts && partial !== undefined) {
      const module = moduleBuilder(mode);
      const from = module.tensor("parts", "read", 4, buffers.split(partial), sumOf(elements));
      const { trait, store } = resultStore(module, false);
      const name = `${traits}_parts_${policy.rows}x${policy.columns}_` +
        `${places}${trait}${splitsOf(result)}`;
      const sum = sumPartsKernel(name, module, loop, parts, policy, from, store);
      passes.push(pass(sum, buffers, { parts: partial, result, bias }, limits));
    }
    notes.push(
      runsNote(runs, geometry),
      `policy ${slicePolicyName(policy)}: ${workgroups} workgroups of ${threads} threads` +
        (split === undefined ? "" : `, ${sharersNote(split)}`) +
        (chains === "whole" ? "" : `, sums are stored every ${chain * policy.depth} products`),
    );
    return canonicalName(kernel.kernel);
  }
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

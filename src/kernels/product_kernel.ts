import type { PipelineCut } from "./schedule/pipeline.ts";
import { scalarFeature, sumScalar } from "../elements/scalar.ts";
import { type Statement, text } from "./ir/tree.ts";
import { tapRingOf, type TileAccess, type TileLoader } from "./loader.ts";
import { dealtLoader } from "./loop/dealt_loader.ts";
import {
  eitherOutput,
  type MainloopSchedule,
  mainloopText,
  type StepProducts,
  type TripCount,
} from "./loop/mainloop.ts";
import { matrixOutput, matrixPlaces, matrixProducts } from "./loop/matrix_products.ts";
import { matrixMemory, type MatrixTilePolicy } from "./loop/matrix_tile.ts";
import {
  F16_CHAIN,
  type InnerProduct,
  innerProduct,
  isWorthPipelining,
  type ProductOrder,
  type SumName,
  threadProducts,
} from "./loop/thread_products.ts";
import {
  type FilledTile,
  fragmentPlaces,
  type ThreadGrid,
  threadPlace,
  tileBytes,
  workgroupTile,
} from "./loop/threads.ts";
import {
  bufferCount,
  type FullKernelVariant,
  fullVariant,
  type KernelVariant,
  variantTrait,
} from "./variant.ts";
import { stagedAlong } from "./matrix_policies.ts";
import { matrixFeatures, type UnitChain, unitDepth, unitScalar } from "./matrix_units.ts";
import type { ModuleBuilder, SizeMode } from "./module.ts";
import { loopIterations, type SizedKernel, sizedKernel } from "./sized_kernel.ts";
import type { OutputStore } from "./output.ts";
import { policyThreads, policyTile, type TilePolicy } from "./policy.ts";
import {
  countedSteps,
  type ProductShape,
  type UnitSchedule,
  unitSchedule,
  workgroupText,
} from "./tile_scheduler.ts";

/** Whether subgroups multiply on matrix units. */
function isMatrixPolicy(policy: TilePolicy): policy is TilePolicy & MatrixTilePolicy {
  return policy.matrix !== undefined;
}

/** What of the kernel depends on what multiplies: threads by themselves, or subgroups. */
interface LoopBody {
  /** Enters the name behind the tile. */
  readonly trait: string;
  /** Whose results the tile's are. */
  readonly summary: string;
  readonly tiles: readonly [FilledTile, FilledTile];
  readonly buffers: MainloopSchedule["buffers"];
  readonly places: string;
  readonly products: StepProducts;
  output(store: OutputStore): readonly Statement[];
}

/**
 * Every thread multiplies a tile of its own.
 *
 * @param last Products of the last step where it is a text of its own.
 * @param cut Where the back edge lies, where the loop is software-pipelined.
 */
function threadBody(
  { policy, loaders: [a, b], sums = {}, threads: { order = "rows" } = {} }: ProductKernel,
  last: number | undefined,
  variant: FullKernelVariant,
  cut: PipelineCut | undefined,
): LoopBody {
  const { inner = innerProduct("f32"), threadChain: chain } = sums;
  const sumIndex: SumName = (row, fragment) => `${row}_${fragment}`;
  const grid: ThreadGrid = {
    rows: policy.rows / policy.threadRows,
    columns: policy.columns / policy.threadColumns,
    warp: policy.warp,
    paired: true,
  };
  const [rowFragments, columnFragments] = [policy.threadRows / 4, policy.threadColumns / 4];
  const buffers = bufferCount(variant);
  const tiles = [
    workgroupTile("a", policy.rows, policy.depth, a.access, buffers),
    workgroupTile("b", policy.columns, policy.depth, b.access, buffers),
  ] as const;
  return {
    trait: "",
    summary: `${policy.threadRows} x ${policy.threadColumns} a thread`,
    tiles,
    buffers,
    places: `${threadPlace(grid, "t", "t")}\n${
      fragmentPlaces(grid, rowFragments, columnFragments)
    }`,
    products: threadProducts({
      tiles: [tiles],
      depth: policy.depth,
      unroll: variant.unroll,
      order,
      cut,
      last,
      inner,
      threadTile: policy,
      accumulate: {
        into: "registers",
        every: inner.sum === "f16"
          ? Math.max(1, Math.floor(F16_CHAIN / policy.depth))
          : chain === undefined
          ? 0
          : Math.max(1, Math.floor(chain / policy.depth)),
      },
      sumIndex,
    }),
    output: (store) => [
      text(store.text({
        fragmentRows: rowFragments,
        fragmentColumns: columnFragments,
        sum: sumScalar(inner.sum),
        row: (i) => `first_row + ay${i} * 4u`,
        column: (j) => `first_column + bx${j} * 4u`,
      })),
    ],
  };
}

/** Every subgroup multiplies on matrix units. */
function matrixBody(
  policy: TilePolicy & MatrixTilePolicy,
  [a, b]: ProductKernel["loaders"],
  last: number | undefined,
  { flush, unrollFactor }: Pick<UnitSchedule, "flush" | "unrollFactor">,
  variant: FullKernelVariant,
): LoopBody {
  const { unit, matrices } = policy.matrix;
  const moved = flush !== undefined && unrollFactor === undefined;
  const memory = matrixMemory(policy, [a.access, b.access], variant, moved);
  return {
    trait: flush === undefined
      ? ""
      : `_${flush.totals === "result" ? "stored" : "flush"}${flush.interval}`,
    summary: `${matrices[0]} x ${matrices[1]} matrices of ${unit.m} x ${unit.n} a subgroup`,
    tiles: memory.tiles,
    buffers: memory.buffers,
    places: matrixPlaces(policy, memory),
    products: matrixProducts({ policy, memory, last, flush }),
    output: (store) => matrixOutput(policy, memory, store, flush),
  };
}

/** How the sums of a product are made; f32 in one chain where nothing is said. */
export interface SumOptions {
  /** How threads multiply and add. */
  readonly inner?: InnerProduct;
  /** How far matrix units add up at once. */
  readonly chain?: UnitChain | undefined;
  /** Products that threads add up in f32 before their sums move to second ones. */
  readonly threadChain?: number | undefined;
}

/** How threads go over a step's products, where no matrix units do. */
export interface ThreadOptions {
  /** Of a loop that is not software-pipelined; row by row where absent. */
  readonly order?: ProductOrder;
  /** Share of a step's rows before the back edge of one that is; a little less than half where absent. */
  readonly pipelinedShare?: number | undefined;
}

/** A tiled product's kernel, the hierarchy of CUTLASS: tiles of workgroups, then of threads or subgroups. */
export interface ProductKernel {
  /** Canonical name up to the tile, e.g. `implicit_gemm_fwd_f32`. */
  readonly traits: string;
  /** And behind it. */
  readonly suffix: string;
  readonly shape: ProductShape;
  readonly policy: TilePolicy;
  readonly loaders: readonly [TileLoader, TileLoader];
  readonly output: OutputStore;
  /** Bytes of workgroup memory within which sums of matrix units may be staged along results. */
  readonly workgroupBytes: number;
  /** Stream-K: where sums of split tiles go; those of whole ones go to `output`. */
  readonly partials?: OutputStore | undefined;
  /** Optimisations that are not as tuned. */
  readonly variant?: KernelVariant | undefined;
  readonly sums?: SumOptions;
  readonly threads?: ThreadOptions;
}

/** Workgroups of the loop. */
export function productWorkgroups(
  shape: Omit<ProductShape, "depth">,
  policy: TilePolicy,
): number {
  if (shape.split !== undefined) return shape.split.first + shape.split.count * shape.splits;
  const tiles = Math.ceil(shape.rows / policy.rows) * Math.ceil(shape.columns / policy.columns) *
    shape.batches;
  return tiles * shape.splits;
}

/** What of a loader decides what its tile takes; a vector of one where none is said. */
type LoaderSides =
  & Pick<TileAccess, "along">
  & Partial<Pick<TileAccess, "vectorAlong" | "value" | "vector" | "sharedTaps">>;

/**
 * Bytes of workgroup memory of the mainloop with these loaders.
 *
 * @param moved Whether sums of matrix units are flushed in a loop that is not unrolled, which may take less.
 */
export function productBytes(
  policy: TilePolicy,
  a: LoaderSides,
  b: LoaderSides,
  variant: KernelVariant = {},
  moved = false,
): number {
  if (isMatrixPolicy(policy)) {
    const sides = [{ vector: 1 as const, ...a }, { vector: 1 as const, ...b }] as const;
    return matrixMemory(policy, sides, fullVariant(variant), moved).bytes;
  }
  const tiles = bufferCount(variant);
  return tileBytes(policy.rows, policy.depth, a, tiles) +
    tileBytes(policy.columns, policy.depth, b, tiles);
}

/** Share of products with padding from which on the last step is peeled. */
const WORTH_PEELING = 0.03;

/** Depth of the last step, where it is peeled; the text must know the depth. */
function peeledDepth(
  { depth, splits, uneven }: Pick<ProductShape, "depth" | "splits" | "uneven">,
  policy: TilePolicy,
  mode: SizeMode,
  variant?: KernelVariant,
): number | undefined {
  const { unroll, peel } = fullVariant(variant);
  if (mode === "uniform" || !unroll || !peel || splits > 1 || depth === 0 || uneven) {
    return undefined;
  }
  const steps = Math.ceil(depth / policy.depth);
  // Matrix units take whole matrices.
  const whole = policy.matrix === undefined ? 1 : unitDepth(policy.matrix.unit);
  const last = Math.ceil((depth - (steps - 1) * policy.depth) / whole) * whole;
  const skipped = policy.depth - last;
  return skipped >= WORTH_PEELING * steps * policy.depth ? last : undefined;
}

/** Steps of a full tile whose text knows its sizes; of a peeled last step only what is multiplied. */
export function multipliedSteps(
  depth: number,
  policy: TilePolicy,
  variant?: KernelVariant,
): number {
  const last = peeledDepth({ depth, splits: 1 }, policy, "constant", variant);
  const steps = Math.ceil(depth / policy.depth);
  return last === undefined ? steps : steps - 1 + last / policy.depth;
}

/** Multiplications of the loop, padding included. */
export function productMultiplications(
  shape: ProductShape,
  policy: TilePolicy,
  mode: SizeMode,
  variant?: KernelVariant,
): number {
  const results = productWorkgroups({ ...shape, splits: 1 }, policy) * policy.rows *
    policy.columns;
  const share = shape.uneven?.share ?? 1;
  const last = peeledDepth(shape, policy, mode, variant);
  const steps = Math.ceil(shape.depth / policy.depth);
  return last === undefined
    ? Math.round(results * steps * policy.depth * share)
    : results * ((steps - 1) * policy.depth + last);
}

/** The kernel of a tiled product. All that a convolution algorithm adds is in the two loaders and the output store. */
export function productKernel(module: ModuleBuilder, product: ProductKernel): SizedKernel {
  const { traits, suffix, shape, loaders: [a, b], output, workgroupBytes, partials } = product;
  const { mode } = module;
  const variant = fullVariant(product.variant);
  const staged = stagedAlong(product.policy, output.side);
  const roomy = productBytes(staged, a.access, b.access, variant) <= workgroupBytes;
  const policy = roomy ? staged : product.policy;
  const threads = policyThreads(policy);
  const steps = Math.ceil(shape.depth / policy.depth);
  const last = peeledDepth(shape, policy, mode, variant);
  const { splits } = shape;
  const row = tapRingOf(b.access)?.row?.steps;
  const streamed = shape.split !== undefined;
  const schedule = unitSchedule(policy, product.sums?.chain, { steps, splits, streamed, row });
  const { flush, longest } = schedule;
  const unrollFactor = mode === "constant" && !shape.uneven && last === undefined
    ? schedule.unrollFactor
    : undefined;
  if (!isMatrixPolicy(policy) && (a.access.sharedTaps ?? b.access.sharedTaps) !== undefined) {
    throw new Error(`Cannot multiply rows of taps by threads: ${policy.name} has no matrix units`);
  }
  if (row !== undefined && unrollFactor !== row) {
    throw new Error(`Cannot go over rows of ${row} steps by ${unrollFactor ?? "single steps"}`);
  }
  const body = isMatrixPolicy(policy)
    ? matrixBody(policy, product.loaders, last, { flush, unrollFactor }, variant)
    : threadBody({ ...product, policy }, last, variant, pipelineCut());
  const name = `${traits}_${policyTile(policy)}${body.trait}_${suffix}${
    variantTrait(product.variant)
  }`;
  const count = productWorkgroups(shape, policy);
  const workgroups = module.size("workgroups", count);
  const shared = shape.splits === 1 ? undefined : unrollFactor;
  const workgroup = workgroupText(module, shape, policy, variant.raster, shared);
  const loaders = [
    dealtLoader(a, "a", body.tiles[0], policy.rows, policy.depth, threads),
    dealtLoader(b, "b", body.tiles[1], policy.columns, policy.depth, threads),
  ] as const;
  const wgsl = mainloopText({
    name,
    summary: `${policy.rows} x ${policy.columns} results a workgroup, ${body.summary}, ` +
      `${policy.depth} deep steps.`,
    declarations: [output.declarations, ...(partials === undefined ? [] : [partials.declarations])],
    threads,
    workgroups,
    workgroup,
    places: body.places,
    schedule: {
      // The switches of passes.
      ...variant,
      buffers: body.buffers,
      tripCount: tripCount(),
      steps,
    },
    loaders,
    products: body.products,
    output: partials === undefined
      ? body.output(output)
      : eitherOutput("whole", body.output(output), body.output(partials)),
  }, module);
  const feature = isMatrixPolicy(policy) && scalarFeature(unitScalar(policy.matrix.unit));
  return sizedKernel(module, name, wgsl, {
    workgroups: count,
    threads,
    bytes: productBytes(policy, a.access, b.access, variant, flush && unrollFactor === undefined),
    iterations: loopIterations(longest, stepIterations(policy, product.variant)) +
      output.iterations * policy.threadRows * policy.threadColumns,
    features: [
      ...(feature ? [feature] : []),
      ...(policy.matrix ? matrixFeatures(policy.matrix.unit) : []),
    ],
  });

  function tripCount(): TripCount {
    if (unrollFactor !== undefined) return { form: "unrolled", factor: unrollFactor };
    if (flush === undefined) return countedSteps(module, shape, policy) ?? { form: "range" };
    // The text knows the steps of parts that come out even.
    const whole = mode === "constant" && last === undefined && splits === 1 && !shape.uneven &&
      steps % flush.interval === 0;
    return whole ? { form: "counted", steps: `${flush.interval}u` } : { form: "range" };
  }

  /** Where the back edge lies, where the loop may be software-pipelined. */
  function pipelineCut(): PipelineCut | undefined {
    const { rotatedLoop, prefetch } = variant;
    const { pipelinedShare = 7 / 16 } = product.threads ?? {};
    const pressed = [a, b].some(({ highRegisterPressure }) => highRegisterPressure);
    const worth = isWorthPipelining(mode, longest);
    return rotatedLoop && prefetch && bufferCount(variant) === 1 && !pressed && worth
      ? { rows: Math.floor(pipelinedShare * policy.depth), early: false }
      : undefined;
  }
}

/** Iterations of loops inside one step: none, where the tile's depth is unrolled. */
export function stepIterations({ depth }: TilePolicy, variant?: KernelVariant): number {
  return fullVariant(variant).unroll ? 0 : loopIterations(depth);
}

import { deviceOf } from "../device/h200.ts";
import { type DeviceModel, deviceText } from "../device/model.ts";
import { longestLoops, MOST_ITERATIONS, pass, reducePass } from "../passes.ts";
import type { Pass, Plan } from "../plan.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import { isSoftware, type PlanRequest } from "../request.ts";
import { flatRow, operandBytes, problemBuffers, resultElements } from "../tensors.ts";
import { blockOf, dataElements, refusePolicies, sliceSetsOf } from "./baseline.ts";
import { type Configuration, configure, type Figures } from "./configure.ts";
import { enlarged, isHalf, kernelRates, remembered } from "./half.ts";
import {
  admissible,
  DIRECT,
  isAdmissible,
  isStrided,
  kernelRows,
  omegaName,
  reduceAxes,
  slicesAtOnce,
} from "./omega.ts";
import { EXACT_PAIR, kernelsOf, parsePair, unfitKernel } from "./pair.ts";
import { partStarts, rowHeights, type Segmentation } from "./segments.ts";
import { type Share, type ShareKernel, shareKernels, sharesOf } from "./share.ts";
import { elementsOf, sumOf } from "../../elements/elements.ts";
import { type Scalar, scalarBytes } from "../../elements/scalar.ts";
import { NO_STEPS } from "../../kernels/epilogue.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import type { SizeMode } from "../../kernels/module.ts";
import type { ConvProblem } from "../../problem/conv_problem.ts";
import type { PlanArithmetic } from "../../problem/plan_arithmetic.ts";
import { defined } from "../../defined.ts";

export function winrsReason(request: PlanRequest): string | undefined {
  const { problem, pair } = request;
  if (problem.op !== "bwd-filter") return "it computes bwd-filter";
  const { filterWidth, outputRows, outputWidth, tiledRows, widthAxis } = reduceAxes(problem);
  if (Math.min(filterWidth, outputRows, outputWidth) < 1) return "there is nothing to sum";
  if (pair === undefined) return undefined;
  const kernels = kernelsOf(pair, filterWidth);
  const wrong = kernels.find((omega) => !isAdmissible(omega, filterWidth, tiledRows));
  if (wrong !== undefined) return unfitKernel(wrong, filterWidth, tiledRows);
  const [first, second] = kernels;
  if (second?.rows !== undefined && first!.rows === undefined) {
    return `${omegaName(second)} goes along rows, which the first of its pair does not`;
  }
  if (first?.rows !== undefined && isHalf(request)) {
    return `${omegaName(first)} goes along rows, which is in f32 tiles alone`;
  }
  const others = pair !== EXACT_PAIR && kernels.some((omega) => omega !== DIRECT);
  return others && isStrided(problem, widthAxis)
    ? `its width has a stride or dilation, of which only ${omegaName(DIRECT)} is capable`
    : undefined;
}

/** Z_max: workspace as a multiple of the elements of X, ∇Y and ∇W. */
const WORKSPACE_SHARE = 0.5;

/** What {@linkcode configure} goes by for a request that WinRS supports; refused if no policy fits the device. */
export function figuresOf(request: PlanRequest): Planned<Figures> {
  const { problem, limits, layout, schedule: { splits } = {} } = request;
  const device = deviceOf(request);
  const axes = reduceAxes(problem);
  const { filterWidth, outputWidth, tiledRows } = axes;
  const direct = isStrided(problem, axes.widthAxis) &&
    (request.pair === undefined || request.pair === EXACT_PAIR);
  const pair = direct ? omegaName(DIRECT) : request.pair;
  const kernels = pair === undefined
    ? admissible(filterWidth, tiledRows)
    : kernelsOf(pair, filterWidth);
  const refused = refusePolicies(request, kernels);
  if (refused !== undefined) return refused;
  const room = Math.min(
    limits.maxBufferSize,
    limits.maxStorageBufferBindingSize,
    // What has no room for bucket 0 is refused when it is planned.
    Math.max(0, (request.maxWorkspaceBytes ?? Infinity) - targetBytes(request)),
  );
  const { slicedStore } = device.rates;
  const { winrsAcross, winrsImages, winrsParts } = device.shares;
  const { large, small } = layout === "chwn" ? winrsImages : winrsAcross;
  const throughput = kernelRates(request);
  // Measured of threads that multiply f32.
  const [parts, setLaunches] = isHalf(request) ? [1, 1] : [winrsParts, SET_LAUNCHES];
  return {
    device,
    workspaceShare: Math.min(WORKSPACE_SHARE, room / (4 * Math.max(1, dataElements(problem)))),
    throughput,
    block: remembered((omega) => blockOf(request, device, omega)),
    sets: remembered((omega) => sliceSetsOf(request, omega).length),
    pair: pair === undefined
      ? undefined
      : parsePair(pair, filterWidth, outputWidth, throughput, tiledRows),
    segments: splits,
    parts,
    setLaunches,
    storeRate: layout === "nhwc" ? slicedStore.lines : slicedStore.scattered,
    across(omega, wide) {
      if (layout === "nhwc") return 1;
      const share = slicesAtOnce(omega) === MANY_SLICES ? large : small;
      // In nchw tiles that lie in a row share its lines.
      return layout === "nchw" ? 1 + (share - 1) / wide : share;
    },
  };
}

/** Bytes of bucket 0 where it is not the result itself. */
export function targetBytes(request: PlanRequest): number {
  const { result, ...elements } = elementsOf(request);
  const sum = sumOf(elements);
  return result === sum ? 0 : scalarBytes(sum) * resultElements(request.problem);
}

/**
 * As many launches as a kernel of one set of slices takes beside its steps: on an H200 problems of 0.1 to 0.7 ms took some 20 us longer
 * for each than kernels of all slices let expect.
 */
const SET_LAUNCHES = 8;

/** Slices of kernels that lose more than others where channels do not lie innermost. */
const MANY_SLICES = 16;

/** What {@linkcode configure} chooses for a request, its time by the layout: what is priced is what is planned. */
export function configured(request: PlanRequest): Planned<Configuration> {
  const figures = figuresOf(request);
  return isRefusal(figures) ? figures : configure(request.problem, figures);
}

/** A request and what is configured for it. */
export interface WinrsGeometry {
  readonly request: PlanRequest;
  readonly configuration: Configuration;
}

export function winrsGeometry(request: PlanRequest): Planned<WinrsGeometry> {
  const configuration = configured(request);
  return isRefusal(configuration) ? configuration : { request, configuration };
}

/** {@linkcode planConfiguration}, on software devices with as many segments as keep loops short, unless their number is said. */
export function planWinrs(
  { request, configuration }: WinrsGeometry,
  mode: SizeMode,
): Planned<Plan> {
  const plan = planConfiguration(request, mode, configuration);
  if (isRefusal(plan)) return plan;
  const longest = longestLoops(plan);
  if (
    !isSoftware(request) || request.schedule?.splits !== undefined || longest <= MOST_ITERATIONS
  ) {
    return plan;
  }
  // Segments are whole rows and tiles, so that half as long again leaves room for uneven ones.
  const splits = Math.ceil(1.5 * configuration.segmentation.count * longest / MOST_ITERATIONS);
  const shorter = winrsGeometry({ ...request, schedule: { ...request.schedule, splits } });
  return isRefusal(shorter) ? shorter : planWinrs(shorter, mode);
}

/**
 * Plans WinRS: the kernels of one share or of a pair compute the buckets of all segments, operands transformed on their way
 * in and results on their way out; then a compensated sum of the buckets, and a pass that rounds it where results are f16.
 *
 * @param configuration Pair and segments, of kernels with policies that fit the device.
 */
export function planConfiguration(
  request: PlanRequest,
  mode: SizeMode,
  configuration: Configuration,
): Planned<Plan> {
  const { problem } = request;
  const device = deviceOf(request);
  const tensors = problemBuffers(request, mode);
  const { buffers, tensor, elements: types } = tensors;
  const elements = resultElements(problem);
  const { count } = configuration.segmentation;
  const sum = sumOf(types);
  // Buckets are summed in what their sums are in.
  const result = types.result === sum
    ? tensor.filter
    : buffers.workspace("sums of buckets", elements, sum);
  const buckets = count > 1 ? buffers.workspace("buckets", (count - 1) * elements, sum) : undefined;
  const places = { result, buckets };
  const shares = sharesOf(problem, configuration);
  const made = shares.map((share) => shareKernels(request, configuration, share, tensors, places));
  const kernels = made.flat();
  const bound = { input: tensor.input, output: tensor.output, ...places };
  const passes: Pass[] = kernels.map(({ kernel, multiplications }) =>
    pass(kernel, buffers, bound, multiplications)
  );
  const reduce = (partials: number, splits: number, result: number, of: Scalar, onto: boolean) =>
    reducePass(flatRow(elements, splits), NO_STEPS, buffers, { partials, result }, of, onto);
  if (buckets !== undefined) passes.push(reduce(buckets, count - 1, result, sum, true));
  if (result !== tensor.filter) passes.push(reduce(result, 1, tensor.filter, types.result, false));
  const workspaceBytes = buffers.workspaceBytes();
  return buffers.plan({
    kernel: canonicalName(kernels[0]!.kernel.kernel),
    algorithm: "winrs",
    passes: elements === 0 ? [] : passes,
    predictedMs: configuration.predictedMs,
    predictedDevice: device.name,
    multiplications: kernels.reduce((sum, { multiplications }) => sum + multiplications, 0),
    amplification: Math.max(...shares.map(({ omega }) => enlarged(request, omega))),
    arithmetic: {
      ...winrsArithmetic(problem, configuration, shares, kernels),
      ...(isHalf(request) ? { transformed: "f16" } : {}),
    },
    // Segments of a kind follow from no number of them.
    ...defined({ schedule: request.schedule }),
    notes: [
      ...describeConfiguration(
        problem,
        configuration,
        workspaceBytes,
        operandBytes(request),
        device,
      ),
      ...shares.map((share, i) => describeShare(share, made[i]!)),
    ],
  });
}

/** Chains go to the segment's bucket as results; buckets are added up one to the next. */
function winrsArithmetic(
  { filterSize, outputSize }: ConvProblem,
  { axes: { widthAxis, outerAxes } }: Configuration,
  shares: readonly Share[],
  kernels: readonly ShareKernel[],
): PlanArithmetic {
  const [{ longest }] = shares as [Share];
  return {
    fold: "results",
    chain: Math.max(...kernels.map(({ flush }) => flush === 0 ? longest : flush)),
    segment: longest,
    tiles: shares.map(({ omega: { n, r, rows }, firstColumn, tiles }) => ({
      axes: filterSize.map((_, axis) =>
        axis === widthAxis
          ? { n, r }
          : axis === outerAxes.at(-1) && rows !== undefined
          ? rows
          : { n: 1, r: 1 }
      ),
      columns: {
        axis: widthAxis,
        first: firstColumn,
        count: Math.max(0, Math.min(tiles * r, outputSize[widthAxis]! - firstColumn)),
      },
    })),
  };
}

/**
 * Segments with a picture of them, workspace and time, a line each.
 *
 * @param elementBytes Of the operands.
 * @param device The one whose model predicts the time.
 */
function describeConfiguration(
  problem: ConvProblem,
  { pair, segmentation, baseline, axes, predictedMs }: Configuration,
  workspaceBytes: number,
  elementBytes: number,
  device: DeviceModel,
): string[] {
  const { rows, columns, count, shared, firstColumns } = segmentation;
  // A nested kernel's segments are of whole tiles of rows.
  const size = kernelRows(axes, pair.first);
  const rowStarts = partStarts(size, rows, rowHeights(size, segmentation));
  const buckets = shared && columns > firstColumns
    ? `, ${count} buckets, which the second kernel adds to`
    : `, ${count === 1 ? "1 bucket" : `${count} buckets`}`;
  const share = workspaceBytes / (elementBytes * Math.max(1, dataElements(problem)));
  return [
    `segments of the gradient (${axes.outputRows} x ${axes.outputWidth}): ${
      lengths(rowStarts, "row")
    }${pair.first.rows === undefined ? "" : " tiles"} x ${
      lengths(segmentation.columnStarts, "column")
    }, Z = ${rows * columns} (Z^ = ${baseline})` +
    buckets,
    ...segmentPicture({ ...segmentation, rowStarts }),
    `workspace ${(workspaceBytes / 1e6).toFixed(1)} MB, ${share.toFixed(3)} of the data`,
    `predicted ${predictedMs.toFixed(3)} ms on ${deviceText(device)}`,
  ];
}

/** Tiles, policy and blocks of a share's kernels, which differ by their slices alone. */
function describeShare({ omega, tiles }: Share, kernels: readonly ShareKernel[]): string {
  const { tile, blocks, workgroups, threads, flush } = kernels[0]!;
  return `${omegaName(omega)}: ${plural(tiles, "tile")} of ${plural(omega.r, "column")} of each ${
    omega.rows === undefined ? "row" : `${omega.rows.r} rows`
  }, ` +
    `policy ${tile}, ${plural(blocks, "block")} a segment, ` +
    (kernels.length === 1 ? "" : `${kernels.length} times `) +
    `${plural(workgroups, "workgroup")} of ${threads} threads` +
    (flush === 0 ? "" : `, sums stored every ${flush} products`);
}

/** `88 rows of 2 or 3`: parts, and how long they are. */
function lengths(starts: readonly number[], what: string): string {
  const sizes = starts.slice(1).map((end, i) => end - starts[i]!);
  const distinct = [...new Set(sizes)].sort((a, b) => a - b);
  const shown = distinct.length < 3
    ? distinct.join(" or ")
    : sizes.length <= 6
    ? sizes.join(", ")
    : `${distinct[0]} to ${distinct.at(-1)}`;
  return `${plural(sizes.length, what)} of ${shown}`;
}

function plural(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** More rows or columns than these are drawn as two and an ellipsis. */
const DRAWN = 4;

/**
 * The grid of segments, each with its number, which is its bucket's where the kernels have buckets of their own;
 * `a` and `b` above the columns say which kernel of the pair takes them.
 */
export function segmentPicture(
  { rows, columns, firstColumns, rowStarts, columnStarts }: Segmentation,
): string[] {
  if (rows * columns === 1) return [];
  const shownRows = drawn(rows);
  const shownColumns = drawn(columns);
  const cell = (text: string) => text.padStart(5);
  const head = shownColumns.map((column) =>
    cell(
      column < 0
        ? "..."
        : `${columnStarts[column + 1]! - columnStarts[column]!}${
          column < firstColumns ? "a" : "b"
        }`,
    )
  );
  const line = (row: number) =>
    row < 0 ? [cell("..."), ...shownColumns.map(() => cell("..."))] : [
      cell(`${rowStarts[row + 1]! - rowStarts[row]!}`),
      ...shownColumns.map((column) => cell(column < 0 ? "..." : `${row * columns + column}`)),
    ];
  return [[cell(""), ...head], ...shownRows.map(line)].map((cells) => cells.join(" "));
}

/** Indices up to `count`; of many the first two, -1 for what is left out, and the last. */
function drawn(count: number): number[] {
  return count <= DRAWN ? Array.from({ length: count }, (_, i) => i) : [0, 1, -1, count - 1];
}

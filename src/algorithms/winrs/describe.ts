import type { ConvProblem } from "../../problem/conv_problem.ts";
import { type DeviceModel, deviceText } from "../device/model.ts";
import { dataElements } from "./baseline.ts";
import type { Configuration } from "./configure.ts";
import { kernelRows, omegaName } from "./omega.ts";
import { partStarts, rowHeights, type Segmentation } from "./segments.ts";
import type { Share, ShareKernel } from "./share.ts";

/**
 * Segments with a picture of them, workspace and time, a line each.
 *
 * @param elementBytes Of the operands.
 * @param device The one whose model predicts the time.
 */
export function describeConfiguration(
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
export function describeShare({ omega, tiles }: Share, kernels: readonly ShareKernel[]): string {
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

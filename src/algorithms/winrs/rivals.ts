import { isRefusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { mostSegments, workgroupsInFlight } from "./baseline.ts";
import { type Configuration, rivalPairs } from "./configure.ts";
import { kernelRates } from "./half.ts";
import { configured, figuresOf, winrsReason } from "./plan.ts";

/** Choices of WinRS that are worth measuring, as a request says them. */
export interface WinrsRival {
  /** Kernels; the planner's choice where absent. */
  readonly pair?: string;
  /** Ẑ, as `--segments` takes it; the planner's choice where absent. */
  readonly segments?: number;
}

/** Of pairs predicted up to this much slower than the fastest other segments are worth measuring. */
const SEGMENT_SLACK = 1.15;

/**
 * Every pair worth measuring with the model's segments. Of those that the model has within 15 % of the fastest also half
 * and twice as many, and as many as fill whole waves of workgroups, where these cut the gradient otherwise and their buckets
 * fit in the workspace. None where WinRS cannot do the problem.
 */
export function winrsRivals(request: PlanRequest): WinrsRival[] {
  if (winrsReason(request) !== undefined) return [];
  const pairs = rivalPairs(request.problem, kernelRates(request));
  const choices: WinrsRival[] = pairs.length === 0 ? [{}] : pairs
    .filter((pair) => winrsReason({ ...request, pair }) === undefined)
    .map((pair) => ({ pair }));
  const rivals = choices.flatMap((choice) => {
    const configuration = configured({ ...request, ...choice });
    return isRefusal(configuration) ? [] : [{ choice, configuration }];
  });
  const fastest = Math.min(...rivals.map(({ configuration }) => configuration.predictedMs));
  return rivals.flatMap(({ choice, configuration }) => [
    ...(choice.pair === undefined ? [] : [choice]),
    ...(configuration.predictedMs <= fastest * SEGMENT_SLACK
      ? rivalSegments({ ...request, ...choice }, configuration)
        .map((segments) => ({ ...choice, segments }))
      : []),
  ]);
}

/** Numbers of segments worth measuring beside the one that is configured. */
function rivalSegments(request: PlanRequest, configuration: Configuration): number[] {
  const figures = figuresOf(request);
  if (isRefusal(figures)) return [];
  const { block, device, workspaceShare } = figures;
  const { pair, blocks, segmentation } = configuration;
  const count = segmentation.rows * segmentation.firstColumns;
  const most = mostSegments(request.problem, workspaceShare);
  const inFlight = workgroupsInFlight(block(pair.first), device);
  const waves = Math.max(1, Math.round(count * blocks / inFlight));
  const numbers = [Math.floor(count / 2), 2 * count, Math.floor(waves * inFlight / blocks)];
  const met = new Set([gridOf(configuration)]);
  return numbers.filter((splits) => {
    if (splits < 1) return false;
    const forced = configured({ ...request, splits });
    if (isRefusal(forced) || forced.segmentation.count > most || met.has(gridOf(forced))) {
      return false;
    }
    met.add(gridOf(forced));
    return true;
  });
}

/** Rows and columns of segments: what tells two segmentations for the same pair apart. */
function gridOf({ segmentation }: Configuration): string {
  const { rows, last, columns, firstColumns, shared } = segmentation;
  return [rows, last, columns, firstColumns, shared].join();
}

import type { MatrixParts } from "./loop/matrix_products.ts";
import type { UnitChain } from "./matrix_units.ts";
import type { TilePolicy } from "./policy.ts";
import { fullRounds, roundSteps, stepsPerSplit } from "./tile_scheduler.ts";

/** How workgroups on matrix units go over their steps. */
export interface UnitSchedule {
  /** Steps of the longest one. */
  readonly longest: number;
  /** Steps of a round, of which all workgroups, and all parts of their sums, have whole ones; undefined where they do not go by rounds. */
  readonly rounds: number | undefined;
  /** The parts in which they sum; undefined for one. */
  readonly parts: MatrixParts | undefined;
}

/** What of a policy decides how its steps are gone over. */
type UnitPolicy = Pick<TilePolicy, "depth" | "matrix">;

/** Most steps of a part. */
function mostPartSteps({ depth }: UnitPolicy, { length }: UnitChain): number {
  return Math.max(1, Math.floor(length / depth));
}

/** The parts in which matrix units sum so many steps; undefined for one. */
function unitParts(
  policy: UnitPolicy,
  chain: UnitChain | undefined,
  steps: number,
  rounds: number | undefined,
): MatrixParts | undefined {
  const { matrix } = policy;
  if (chain === undefined || matrix === undefined) return undefined;
  const { totals } = chain;
  const most = mostPartSteps(policy, chain);
  if (most >= steps) return undefined;
  const whole = totals === "result" || rounds !== undefined;
  return { steps: whole ? partSteps(steps, most, rounds) : most, totals };
}

/** Steps of a part, `most` at most: parts of about equal length, of whole rounds. */
function partSteps(steps: number, most: number, rounds = 1): number {
  const [all, each] = [Math.ceil(steps / rounds), Math.floor(most / rounds)];
  return rounds * Math.ceil(all / Math.ceil(all / each));
}

/** Steps of a tile, and who goes over them. */
export interface TileSteps {
  readonly steps: number;
  /** Workgroups that share them; 1 where absent. */
  readonly splits?: number;
  /** Whether some workgroups have all of the steps. */
  readonly streamed?: boolean;
  /** Steps of a row, of which every workgroup has whole ones, in no longer parts than {@linkcode fitsPart}; any where absent. */
  readonly row?: number | undefined;
}

/** Whether the parts in which a policy sums may be of so many steps. */
export function fitsPart(policy: UnitPolicy, chain: UnitChain | undefined, steps: number): boolean {
  return chain === undefined || steps <= mostPartSteps(policy, chain);
}

/** How workgroups go over a tile's steps. */
export function unitSchedule(
  policy: UnitPolicy,
  chain: UnitChain | undefined,
  { steps, splits = 1, streamed = false, row }: TileSteps,
): UnitSchedule {
  const schedule = (rounds?: number): UnitSchedule => {
    const longest = streamed ? steps : stepsPerSplit(steps, splits, rounds);
    return { longest, rounds, parts: unitParts(policy, chain, longest, rounds) };
  };
  if (row !== undefined) return schedule(row);
  const single = schedule();
  const { parts } = single;
  if (parts === undefined) {
    const shared = splits === 1 ? single : schedule(roundSteps(steps, splits, policy, streamed));
    // Rounds are not to make parts of what needs none.
    return shared.parts === undefined ? shared : single;
  }
  // Sums that move to registers leave none for the matrices of a step ahead.
  return schedule(
    parts.totals === "result"
      ? roundSteps(steps, splits, policy, true, mostPartSteps(policy, chain!))
      : undefined,
  );
}

/**
 * Steps of a product whose operands may be padded with zeros: where its sums are stored on their way whole rounds, of a loop over
 * anything else compilers make a sixth of its speed.
 */
export function paddedSteps(
  policy: UnitPolicy,
  chain: UnitChain | undefined,
  steps: number,
): number {
  const { parts, rounds } = unitSchedule(policy, chain, { steps });
  if (parts?.totals !== "result" || rounds !== undefined) return steps;
  return fullRounds(steps, mostPartSteps(policy, chain!));
}

/** Records of many runs, case by case: what changed when. */
import { CASE_COLUMNS, recordCeilings } from "./case_columns.ts";
import { caseKey } from "./case_key.ts";
import type { Ceilings } from "./charts/roofline.ts";
import { accuracyChange, type Checked, haveSameData, isWrong } from "./comparison.ts";
import { verdictWord } from "./record.ts";
import type { ReadCase, ReadEnvironment } from "./record_schema.ts";
import {
  speedChange,
  type SpeedRule,
  type Timed,
  unlikeConditions,
  usableTime,
} from "./speed_change.ts";
import { geometricMean } from "./stats.ts";

/** A run: the records below one environment, or below those with the same tags. */
export interface HistoryRun {
  /** Its commit, or else its other tags, its date or its file. */
  readonly label: string;
  /** ISO 8601; empty where no record says it. */
  readonly date: string;
  /** What it ran on and with, by what each is. */
  readonly traits: Readonly<Record<string, string>>;
}

/** A case in a run. */
export interface HistoryPoint extends Timed, Checked {
  /** Place of the run in the history. */
  readonly run: number;
  /** Of the device's peak; `null` where that is not known. */
  readonly peak: number | null;
}

/** Where a case became slower, faster, wrong or right again. */
export interface HistoryChange {
  readonly kind: "SLOWER" | "FASTER" | "WRONG" | "RIGHT";
  /** What it is compared with: where the level before it began. */
  readonly before: HistoryPoint;
  readonly after: HistoryPoint;
  /** Of a speed: the time before over the time after, and the rank test's probability. */
  readonly speedup?: number;
  readonly p?: number | null;
  /** Of a result: what happened. */
  readonly reason?: string;
  /** Whether the case's last run is still so. */
  readonly stands: boolean;
}

/** A case on a device, over all its runs. */
export interface HistoryCase {
  /** The latest. */
  readonly record: ReadCase;
  /** In the order of runs. */
  readonly points: readonly HistoryPoint[];
  readonly changes: readonly HistoryChange[];
  /** Single runs that were slower or faster, of which the next one was not. */
  readonly passing: number;
}

export interface History {
  readonly runs: readonly HistoryRun[];
  readonly cases: readonly HistoryCase[];
}

/** Gathers records of runs, of which it keeps no more than a history needs. */
interface HistoryCollector {
  /** Takes the records of a file in their order. */
  add(records: Iterable<ReadEnvironment | ReadCase>, file: string): void;
  /** The history of what was taken. */
  end(rule: SpeedRule): History;
}

interface OpenRun extends HistoryRun {
  readonly order: number;
  readonly points: Map<string, Omit<HistoryPoint, "run">>;
}

/**
 * Begins a history.
 *
 * @param given Of the device, in the place of what is known of it.
 */
export function collectHistory(given: Ceilings = {}): HistoryCollector {
  const runs = new Map<string, OpenRun>();
  const latest = new Map<string, { readonly run: OpenRun; readonly record: ReadCase }>();
  const open = (key: string, run: () => HistoryRun): OpenRun => {
    const known = runs.get(key);
    if (known !== undefined) return known;
    const made = { ...run(), order: runs.size, points: new Map() };
    runs.set(key, made);
    return made;
  };
  return {
    add(records, file) {
      let run: OpenRun | undefined;
      for (const record of records) {
        if (record.kind === "environment") {
          const { tags = {} } = record;
          const named = Object.keys(tags).length > 0;
          const key = named ? JSON.stringify(Object.entries(tags).sort()) : String(runs.size);
          run = open(key, () => environmentRun(record, file));
          continue;
        }
        run ??= open(`file ${file}`, () => ({ label: file, date: "", traits: {} }));
        const key = JSON.stringify([caseKey(record), record.device]);
        run.points.set(key, pointOf(record, given));
        const known = latest.get(key);
        if (known === undefined || !isBefore(run, known.run)) latest.set(key, { run, record });
      }
    },
    end(rule) {
      const ordered = [...runs.values()].filter(({ points }) => points.size > 0)
        .sort((a, b) => isBefore(a, b) ? -1 : 1);
      const points = new Map<string, HistoryPoint[]>();
      ordered.forEach((own, run) => {
        for (const [key, point] of own.points) {
          const all = points.get(key) ?? [];
          all.push({ ...point, run });
          points.set(key, all);
        }
      });
      const cases = [...points].map(([key, own]) => ({
        record: latest.get(key)!.record,
        points: own,
        ...changesOf(own, rule),
      }));
      return {
        runs: ordered.map(({ label, date, traits }) => ({ label, date, traits })),
        cases,
      };
    },
  };
}

/** Runs without a date come first, by the order of their files. */
function isBefore(a: OpenRun, b: OpenRun): boolean {
  return a.date === b.date ? a.order < b.order : a.date < b.date;
}

function environmentRun(environment: ReadEnvironment, file: string): HistoryRun {
  const { tags = {}, adapter, backend, driver, program, version, deno } = environment;
  const parsed = Date.parse(environment.date);
  const date = Number.isNaN(parsed) ? "" : new Date(parsed).toISOString();
  const named = Object.entries(tags).map(([name, value]) => `${name}=${value}`).join(", ");
  return {
    label: tags.commit || named || date.slice(0, 19).replace("T", " ") || file,
    date,
    traits: { device: adapter, driver, backend, version: `${program} ${version}`.trim(), deno },
  };
}

function pointOf(record: ReadCase, given: Ceilings): Omit<HistoryPoint, "run"> {
  const { time_ms: time, verdict, cache, message, accuracy, fill, seed, loss_scale } = record;
  return {
    verdict,
    cache,
    message,
    fill,
    seed,
    loss_scale,
    time_ms: time && { median: time.median, samples: time.samples, clock: time.clock },
    accuracy: accuracy && {
      rel_l2: accuracy.rel_l2,
      rel_l2_limit: accuracy.rel_l2_limit,
      max_bound_ratio: accuracy.max_bound_ratio,
      bound_limit: accuracy.bound_limit,
      checked: accuracy.checked,
    },
    peak: CASE_COLUMNS.peak.order(record, { ...recordCeilings(record), ...given }) as number | null,
  };
}

/**
 * What changed from run to run. A case's level begins with a run; each later run is compared with that one as
 * {@linkcode speedChange} does, so that many small steps add up. A run that is slower or faster by more than the
 * threshold begins a new level, unless the next one is not: that was noise.
 */
function changesOf(
  points: readonly HistoryPoint[],
  rule: SpeedRule,
): Pick<HistoryCase, "changes" | "passing"> {
  const speeds: HistoryChange[] = [];
  let passing = 0;
  const timed = points.filter((point) => usableTime(point) !== null);
  let level = timed[0];
  timed.forEach((point, place) => {
    if (level === undefined || point === level) return;
    if (unlikeConditions(level, point) !== undefined) {
      level = point;
      return;
    }
    const shift = shiftOf(level, point, rule);
    if (shift === undefined) return;
    const next = timed[place + 1];
    if (next !== undefined && shiftOf(level, next, rule)?.verdict !== shift.verdict) {
      passing++;
      return;
    }
    const { verdict: kind, speedup, p } = shift;
    const stands = shiftOf(level, timed.at(-1)!, rule)?.verdict === kind;
    speeds.push({ kind, before: level, after: point, speedup, p, stands });
    level = point;
  });
  const results = resultChanges(points);
  return {
    passing,
    changes: [...speeds, ...results].sort((a, b) => a.after.run - b.after.run),
  };
}

/** Where results became wrong, or less exact than is allowed, and where they became right again. */
function resultChanges(points: readonly HistoryPoint[]): HistoryChange[] {
  const found: Omit<HistoryChange, "stands">[] = [];
  let level = points[0];
  for (const point of points) {
    if (level === undefined || point === level) continue;
    const { verdict, reason = "" } = accuracyChange(level, point);
    const wasWrong = level.verdict !== "pass" &&
      (isWrong(level) || found.at(-1)?.kind === "WRONG");
    if (verdict === "regression") {
      found.push({ kind: "WRONG", before: level, after: point, reason });
      level = point;
    } else if (wasWrong && point.verdict === "pass") {
      const reason = `${verdictWord(level.verdict)} became pass`;
      found.push({ kind: "RIGHT", before: level, after: point, reason });
      level = point;
    } else if (!haveSameData(level, point)) level = point;
  }
  return found.map((change, place) => ({ ...change, stands: place === found.length - 1 }));
}

/** A difference beyond the threshold that the tests see too. */
function shiftOf(level: Timed, point: Timed, rule: SpeedRule) {
  const ratio = level.time_ms!.median / point.time_ms!.median;
  // Most runs are like the one before; the tests take longer than this.
  if (Math.max(ratio, 1 / ratio) - 1 <= rule.threshold) return undefined;
  const { verdict, speedup, p } = speedChange(level, point, rule);
  return (verdict === "SLOWER" || verdict === "FASTER") && speedup !== null
    ? { verdict, speedup, p }
    : undefined;
}

/**
 * The speed of each run on a device over that of cases' first runs: the geometric mean of the cases that it has. Runs that
 * timed none are left out.
 */
export function relativeSpeeds(
  cases: readonly HistoryCase[],
): { readonly run: number; readonly speed: number }[] {
  const ratios = new Map<number, number[]>();
  for (const { points } of cases) {
    const timed = points.filter((point) => usableTime(point) !== null);
    for (const { run, time_ms } of timed) {
      const own = ratios.get(run) ?? [];
      own.push(timed[0]!.time_ms!.median / time_ms!.median);
      ratios.set(run, own);
    }
  }
  return [...ratios].map(([run, own]) => ({ run, speed: geometricMean(own)! }))
    .sort((a, b) => a.run - b.run);
}

/** A run in which something changed. */
interface ChangedRun {
  readonly run: number;
  readonly counts: Readonly<Record<HistoryChange["kind"], number>>;
  /** What it ran with that the run before it on the same device did not: `driver 550 -> 560`. */
  readonly differences: readonly string[];
}

/** The runs in which cases changed, in their order. */
export function changedRuns({ runs, cases }: History): ChangedRun[] {
  const byRun = Map.groupBy(
    cases.flatMap(({ changes }) => changes),
    ({ after }) => after.run,
  );
  return [...byRun].sort(([a], [b]) => a - b).map(([run, changes]) => {
    const counts = { SLOWER: 0, FASTER: 0, WRONG: 0, RIGHT: 0 };
    for (const { kind } of changes) counts[kind]++;
    const { traits } = runs[run]!;
    const before = runs.findLast((one, place) =>
      place < run && one.traits.device === traits.device
    );
    const differences = Object.entries(traits).flatMap(([name, value]) => {
      const was = before?.traits[name];
      return was === undefined || was === value ? [] : [`${name} ${was} -> ${value}`];
    });
    return { run, counts, differences };
  });
}

import { softwareDevice } from "../../algorithms/device/software.ts";
import { gpuModel } from "../../algorithms/device/known.ts";
import type { DeviceModel } from "../../algorithms/device/model.ts";
import { scaledBy, scaledModel } from "../../algorithms/device/scale.ts";
import { UnsupportedError } from "../../errors.ts";
import type { PlanTime, TimedPlan } from "../../run/time_plans.ts";
import {
  busyPlan,
  calibrationProbes,
  FAMILIES,
  type Probe,
  type ProbedDevice,
  SIZE,
} from "./probes.ts";

/** What a device is measured with. */
export interface Measuring {
  readonly limits: ProbedDevice["limits"];
  readonly matrixUnits?: ProbedDevice["matrixUnits"];
  /** Where it computes on the CPU: how many workgroups run side by side. */
  readonly workgroupsInFlight?: number | undefined;
  /** Times plans; those of the same call in turn. Names are for people and tests. */
  time(plans: readonly (TimedPlan & { readonly name: string })[]): Promise<PlanTime[]>;
}

/** Most workgroups that are tried. */
const MOST = 4096;
/** Workgroups that wait for others, or share with them, take twice as long as one; this is in between. */
const LONGER = 1.5;
/** Grids between two that are timed together. */
const PARTS = 8;

/**
 * How many workgroups run side by side as fast as one alone: a grid of more takes a second wave. Looked for between powers of
 * two, then by ever closer grids.
 *
 * @throws {UnsupportedError} where one workgroup cannot be timed.
 */
export async function countMultiprocessors({ time }: Pick<Measuring, "time">): Promise<number> {
  // One alone goes with all: clocks may rise.
  const firstLonger = async (others: readonly number[]) => {
    const grids = [1, ...others];
    const times = await time(grids.map((grid) => {
      return { name: `busy ${grid}`, plan: busyPlan(grid), dtype: "f32" as const };
    }));
    const taken = times.map((one, place) => {
      if (typeof one !== "string" && isTime(one.median)) return one.min;
      const what = typeof one === "string" ? one : `it took ${one.median} ms`;
      throw new UnsupportedError(
        `Cannot calibrate: ${grids[place]} workgroups cannot be timed: ${what}`,
      );
    });
    return others.find((_, place) => taken[place + 1]! > LONGER * taken[0]!);
  };
  // Grids beyond the end take long on small devices.
  let [least, most] = [1, 0];
  for (let next = 2; most === 0; next *= 8) {
    if (next > MOST) return MOST;
    most = await firstLonger([next, 2 * next, 4 * next].filter((grid) => grid <= MOST)) ?? 0;
    least = most / 2;
  }
  while (most - least > 1) {
    const parts = Math.min(PARTS, most - least);
    const between: number[] = [];
    for (let i = 1; i < parts; i++) between.push(least + Math.round(i * (most - least) / parts));
    most = await firstLonger(between) ?? most;
    least = Math.max(least, ...between.filter((grid) => grid < most));
  }
  return least;
}

function isTime(ms: number): boolean {
  return ms > 0 && Number.isFinite(ms);
}

/** A probe and what it took. */
interface MeasuredProbe extends Probe {
  readonly ms: number;
}

/** What a calibration found. */
export interface Calibrated {
  readonly model: DeviceModel;
  /** Families of figures that were measured; within one figures keep their ratio to each other, as all others do. */
  readonly measured: readonly string[];
  /** Milliseconds of each measurement that was used, by its name. */
  readonly times: Readonly<Record<string, number>>;
  /** What a reader should know: measurements that failed or did not settle. One sentence each. */
  readonly notes: readonly string[];
}

/** Samples that spread further than this did not settle. */
const SETTLED = 0.1;
/** A GPU of which more than this share of the measurements did not settle does something else, too. */
const BUSY = 0.25;

/**
 * Measures a device's model by small problems of the program's own: first how many workgroups run side by side, then all
 * rates together, then families of them. Single figures keep their ratios: fitted one by one on an H100 they chose worse (90 % within 5 %
 * of the best of 277 recorded cases) than an H200's did (94 %).
 *
 * @throws {UnsupportedError} where so little of it ran that nothing can be said, or nothing that figures scale by, or a GPU is busy.
 */
export async function calibrate(name: string, measuring: Measuring): Promise<Calibrated> {
  const { limits, matrixUnits, workgroupsInFlight } = measuring;
  const known = workgroupsInFlight === undefined
    ? gpuModel(name)
    : softwareDevice(workgroupsInFlight, name);
  const multiprocessors = known.software
    ? known.multiprocessors
    : await countMultiprocessors(measuring);
  const start = { ...withoutGuess(known), name: `${name}, calibrated`, multiprocessors };
  const probes = calibrationProbes({ limits, matrixUnits, model: start });
  const { cases, unsettled, notes } = await measureProbes(probes, start, measuring);
  // What else runs on a CPU is in the least times least.
  if (!known.software && unsettled > BUSY * cases.length) {
    throw new UnsupportedError(
      `Cannot calibrate: the GPU is busy, ${unsettled} of ${cases.length} measurements did not settle; ` +
        "close what else runs on it, and try again",
    );
  }
  if (cases.length < probes.length / 3) {
    throw unusable(`${cases.length} of ${probes.length} measurements`, notes);
  }
  const measured = [...new Set(cases.map(({ family }) => family))].sort();
  const times = Object.fromEntries(cases.map(({ name, ms }) => [name, ms]));
  return { model: fitted(sized(start, cases, notes), cases), measured, times, notes };
}

function withoutGuess({ guessed: _, ...model }: DeviceModel): DeviceModel {
  return model;
}

/**
 * The model of a GPU of which the size alone is measured, in a fraction of a second: its multiprocessors, and what it waits, computes
 * and moves.
 *
 * @param known All else, and its name.
 * @throws {UnsupportedError} where one of these cannot be timed.
 */
export async function measureSize(
  known: DeviceModel,
  measuring: Pick<Measuring, "limits" | "time">,
): Promise<DeviceModel> {
  const counted = await countMultiprocessors(measuring);
  // Without an end a clock is too coarse to tell.
  const multiprocessors = counted === MOST ? known.multiprocessors : counted;
  const start = { ...withoutGuess(known), multiprocessors };
  const probes = calibrationProbes({ limits: measuring.limits, model: start }, SIZE);
  const { cases, notes } = await measureProbes(probes, start, measuring);
  return sized(start, cases, notes);
}

/** Seconds that a GPU takes to compile and run the smallest product. */
export async function compileSeconds(
  model: DeviceModel,
  { limits, time }: Pick<Measuring, "limits" | "time">,
): Promise<number> {
  const start = performance.now();
  const small = { limits, model: { ...model, threadResults: 16 } };
  await measureProbes(calibrationProbes(small, ["computing"]).slice(-1), model, { time });
  return (performance.now() - start) / 1e3;
}

/** Times what of the probes can be planned; those that did not settle a second time. */
async function measureProbes(
  probes: readonly Probe[],
  start: DeviceModel,
  { time }: Pick<Measuring, "time">,
): Promise<{ cases: MeasuredProbe[]; unsettled: number; notes: string[] }> {
  const notes: string[] = [];
  const cases: MeasuredProbe[] = [];
  let unsettled = 0;
  let rest = probes.flatMap((probe) => {
    const { plan } = probe;
    return plan === undefined || probe.predict(start) === undefined ? [] : [{ ...probe, plan }];
  });
  for (let last = false; rest.length > 0; last = true) {
    const times = await time(rest);
    const again: typeof rest = [];
    for (const [index, one] of rest.entries()) {
      const taken = times[index]!;
      const note = (text: string) => notes.push(`${one.name}: ${text}`);
      if (typeof taken === "string") {
        note(taken);
      } else if (!isTime(taken.median)) {
        note(`took ${taken.median} ms, which is no time`);
      } else if (taken.mad > SETTLED * taken.median && !last) {
        again.push(one);
      } else {
        if (taken.mad > SETTLED * taken.median) {
          unsettled++;
          const spread = Math.round(100 * taken.mad / taken.median);
          note(`did not settle, its samples spread by ${spread} %`);
        }
        // What else runs on a CPU only ever makes it slower.
        cases.push({ ...one, ms: start.software ? taken.min : taken.median });
      }
    }
    rest = again;
  }
  return { cases, unsettled, notes };
}

const SIZE_OF = { waiting: "dispatches", moving: "memory", computing: "products" };

/** A model with all rates scaled by common factors, as measurements say. */
function sized(
  start: DeviceModel,
  cases: readonly MeasuredProbe[],
  notes: readonly string[],
): DeviceModel {
  return SIZE.reduce((model, what) => {
    const own = cases.filter(({ family }) => family === what);
    if (own.length > 0) return changed((factor) => scaledModel(model, { [what]: factor }), own);
    throw unusable(`no measurement of ${SIZE_OF[what]}`, notes);
  }, start);
}

/** The model whose families of figures, by common factors, explain what their probes took. */
function fitted(start: DeviceModel, cases: readonly MeasuredProbe[]): DeviceModel {
  return FAMILIES.reduce(
    (model, name) =>
      changed(
        (factor) => withFactor(model, name, factor),
        cases.filter(({ family }) => family === name),
      ),
    start,
  );
}

function withFactor(model: DeviceModel, family: string, factor: number): DeviceModel {
  const { rates, shares } = model;
  const scaled = (figures: object, isOwn: (name: string) => boolean) =>
    scaledBy(Object.fromEntries(Object.entries(figures).filter(([name]) => isOwn(name))), factor);
  if (family === "units") {
    const units = scaled(shares.policies, (name) => name.startsWith("matrix-"));
    return { ...model, shares: { ...shares, policies: { ...shares.policies, ...units } } };
  }
  const own = family === "winrs" ? ["winrs", "winrsOverall"] : [family];
  return { ...model, rates: { ...rates, ...scaled(rates, (name) => own.includes(name)) } };
}

/**
 * What differs by less, as a logarithm, stays as it was: the model errs by more anyway, and calibrations of one device are to agree. From
 * twice as much on figures follow measurements wholly.
 */
const KEPT = 0.06;
/** The same of times that a change brings nearer to those that were measured. */
const NOISE = 0.02;
/** Steps of the search for a factor, as logarithms: at first from far away. */
const STEPS = [...new Array(6).fill(1.4), 0.7, 0.7, 0.35, 0.35, 0.17, 0.08, 0.04, 0.02, 0.01];

/** The model by the factor that explains best what some probes took. */
function changed(
  scaled: (factor: number) => DeviceModel,
  cases: readonly MeasuredProbe[],
): DeviceModel {
  if (cases.length === 0) return scaled(1);
  const loss = (change: number) => {
    const model = scaled(Math.exp(change));
    return cases.reduce((sum, one) => sum + Math.abs(Math.log(one.predict(model)! / one.ms)), 0);
  };
  const before = loss(0);
  let best = { change: 0, loss: before };
  for (const step of STEPS) {
    for (const change of [best.change + step, best.change - step]) {
      const lost = loss(change);
      if (lost < best.loss) best = { change, loss: lost };
    }
  }
  const size = Math.abs(best.change);
  const isNoise = before - best.loss < NOISE * cases.length;
  const kept = isNoise ? 0 : Math.max(0, Math.min(size, 2 * (size - KEPT)));
  return scaled(kept === 0 ? 1 : Math.exp(Math.sign(best.change) * kept));
}

/** That too little of a calibration can be used, with the first note of why. */
function unusable(what: string, [note]: readonly string[]): UnsupportedError {
  return new UnsupportedError(
    `Cannot calibrate: ${what} can be used${note === undefined ? "" : `; ${note}`}`,
  );
}

import { H200, softwareDevice } from "../../algorithms/device/h200.ts";
import { gpuModel } from "../../algorithms/device/known.ts";
import type { DeviceModel } from "../../algorithms/device/model.ts";
import { UnsupportedError } from "../../errors.ts";
import type { PlanTime, TimedPlan } from "../../run/time_plans.ts";
import { figure, type FigurePath, figurePaths, fitFigures, withFigure } from "./fit.ts";
import { busyPlan, calibrationProbes, type Probe, type ProbedDevice } from "./probes.ts";

/** What a device is measured with. */
export interface Measuring {
  readonly limits: ProbedDevice["limits"];
  readonly matrixUnits?: ProbedDevice["matrixUnits"];
  /** Where it computes on the CPU: how many workgroups run side by side. */
  readonly workgroupsInFlight?: number | undefined;
  /** The model that is kept of the device: figures that come out much alike stay as they are. */
  readonly kept?: DeviceModel | undefined;
  /** Times plans; those of the same call in turn. Names are for people and tests. */
  time(plans: readonly (TimedPlan & { readonly name: string })[]): Promise<PlanTime[]>;
}

/** Most workgroups that are tried. */
const MOST = 4096;
/** Workgroups that wait for others, or share with them, take twice as long as one; this is in between. */
const LONGER = 1.5;
/** Grids that are timed together. */
const WORKGROUPS_TOGETHER = 8;
const POWERS_TOGETHER = 3;

/**
 * How many workgroups run side by side as fast as one alone: a grid of more takes a second wave. Looked for between powers of
 * two, then by ever closer grids.
 *
 * @throws {UnsupportedError} where one workgroup cannot be timed.
 */
export async function countMultiprocessors({ time }: Pick<Measuring, "time">): Promise<number> {
  const known = new Map<number, number>();
  // One alone goes with all: clocks may rise.
  const measure = async (others: readonly number[]) => {
    const grids = [1, ...others];
    const plans = grids.map((grid) => {
      return { name: `busy ${grid}`, plan: busyPlan(grid), dtype: "f32" as const };
    });
    const times = await time(plans);
    grids.forEach((grid, place) => {
      const taken = times[place]!;
      if (typeof taken === "string" || !(taken.median > 0 && Number.isFinite(taken.median))) {
        const what = typeof taken === "string" ? taken : `it took ${taken.median} ms`;
        throw new UnsupportedError(`Cannot calibrate: ${grid} workgroups cannot be timed: ${what}`);
      }
      known.set(grid, taken.min);
    });
  };
  const isLonger = (grid: number) => known.get(grid)! > LONGER * known.get(1)!;
  let end: number | undefined;
  // Grids beyond the end take long on small devices.
  for (let next = 2; end === undefined; next *= 2 ** POWERS_TOGETHER) {
    if (next > MOST) return MOST;
    const powers = Array.from({ length: POWERS_TOGETHER }, (_, i) => next * 2 ** i)
      .filter((grid) => grid <= MOST);
    await measure(powers);
    end = powers.find(isLonger);
  }
  let [least, most] = [end / 2, end];
  while (most - least > 1) {
    const parts = Math.min(WORKGROUPS_TOGETHER, most - least);
    const between = Array.from(
      { length: parts - 1 },
      (_, i) => least + Math.round((i + 1) * (most - least) / parts),
    );
    await measure(between);
    const longer = between.find(isLonger) ?? most;
    least = Math.max(least, ...between.filter((grid) => grid < longer));
    most = longer;
  }
  return least;
}

/** A probe and what it took. */
interface MeasuredProbe extends Probe {
  readonly ms: number;
}

/** What a calibration found. */
export interface Calibrated {
  readonly model: DeviceModel;
  /** Figures that follow from their own measurements, by their paths; all others keep their ratio to those of their family. */
  readonly measured: readonly string[];
  /** Milliseconds of each measurement that was used, by its name. */
  readonly times: Readonly<Record<string, number>>;
  /** What a reader should know: measurements that failed or did not settle. One sentence each. */
  readonly notes: readonly string[];
}

/** A figure stays at its family's ratio unless its own measurements are further off than the model errs anyway. */
const KEPT = 0.06;
/** The same of what many measurements say together. */
const SAME = 0.03;
/**
 * From so many times as far off on it follows them wholly, in between the nearer the further: with a jump, measurements that
 * differ by 0.2 % gave figures that differ by 6 %.
 */
const WHOLLY = 2;
/** A figure of a calibration before is kept where it is so near: one that leaves its ratio or not differs by KEPT. */
const NEAR = 0.08;
/** Samples that spread further than this did not settle. */
const SETTLED = 0.1;
/** A GPU of which more than this share of the measurements did not settle does something else, too. */
const BUSY = 0.25;

/** Figures that scale together where nothing else is known, and what they are measured by: what waits, computes and moves. */
const TOGETHER: readonly { readonly figures: readonly string[]; readonly by: readonly string[] }[] =
  [
    { figures: ["times"], by: ["times.dispatch"] },
    {
      figures: [
        ..."packed gathered correlated sliced dot4 planned direct depthwise few".split(" "),
        ..."fewGradient depthwiseGradient winrs winrsOverall".split(" "),
      ].map((name) => `rates.${name}`),
      by: [
        "rates.gathered",
        ..."small wide broad large huge".split(" ").map((name) => `shares.policies.${name}`),
      ],
    },
    {
      figures: ["rates.stream", "rates.filterStream", "rates.slicedStore", "rates.winrsBuckets"],
      by: ["rates.stream"],
    },
  ];
/** Figures of one kind, that are more alike than others. */
const FAMILIES = [
  ["rates.packed", "rates.gathered", "rates.correlated", "rates.planned"],
  ["rates.dot4"],
  ["rates.sliced"],
  ["rates.slicedStore"],
  ["rates.winrs", "rates.winrsOverall"],
  ["rates.depthwise", "rates.depthwiseGradient"],
  ["rates.few", "rates.fewGradient"],
  ["rates.direct"],
];

/** Steps of a fit from far away, each twice, and of one from nearby. */
const FAR_STEPS = [3, 3, 3, 1, 0.5, 0.25, 0.12, 0.06, 0.03, 0.015].flatMap((step) => [step, step]);
const NEAR_STEPS = [0.4, 0.2, 0.1, 0.05, 0.025, 0.012].flatMap((step) => [step, step]);

/**
 * Measures a device's model by small problems of the program's own: first how many workgroups run side by side, then all
 * rates together, then what differs from an H200's ratios.
 *
 * @throws {UnsupportedError} where so little of it ran that nothing can be said, or nothing that figures scale by, or a GPU is busy.
 */
export async function calibrate(name: string, measuring: Measuring): Promise<Calibrated> {
  const { limits, matrixUnits, workgroupsInFlight } = measuring;
  const known = workgroupsInFlight === undefined
    ? gpuModel(name)
    : softwareDevice(workgroupsInFlight, "", H200);
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
  for (const { by } of TOGETHER) {
    if (measuredBy(cases, by).length > 0) continue;
    const names = measuredBy(probes, by).map(({ name }) => `${name}: `);
    const own = notes.filter((note) => names.some((name) => note.startsWith(name)));
    throw unusable(`no measurement of ${by.join(", ")}`, own);
  }
  const model = fitModel(start, cases);
  const { kept } = measuring;
  return {
    model: kept === undefined ? model : steadied(model, kept),
    measured: [...new Set(cases.flatMap(({ figures }) => figures))].sort(),
    times: Object.fromEntries(cases.map(({ name, ms }) => [name, ms])),
    notes,
  };
}

function withoutGuess({ guessed: _, ...model }: DeviceModel): DeviceModel {
  return model;
}

/** What all rates scale by. */
const SIZE = ["times.dispatch", "rates.gathered", "rates.stream"];

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
  const probes = calibrationProbes({ limits: measuring.limits, model: start, figures: SIZE });
  const { cases, notes } = await measureProbes(probes, start, measuring);
  for (const { by } of TOGETHER) {
    if (measuredBy(cases, by).length === 0) throw unusable(`no measurement of ${by[0]}`, notes);
  }
  return scaledBy(start, cases);
}

/** Times what of the probes can be planned; those that did not settle a second time. */
async function measureProbes(
  probes: readonly Probe[],
  start: DeviceModel,
  { time }: Pick<Measuring, "time">,
): Promise<{ cases: MeasuredProbe[]; unsettled: number; notes: string[] }> {
  const planned = probes.flatMap((probe) => {
    const { plan } = probe;
    return plan === undefined || probe.predict(start) === undefined ? [] : [{ ...probe, plan }];
  });
  const notes: string[] = [];
  const cases: MeasuredProbe[] = [];
  let rest = planned;
  let unsettled = 0;
  for (const last of [false, true]) {
    const times = await time(rest);
    const again: typeof planned = [];
    rest.forEach((one, index) => {
      const { name } = one;
      const taken = times[index]!;
      if (typeof taken === "string") {
        notes.push(`${name}: ${taken}`);
      } else if (!(taken.median > 0 && Number.isFinite(taken.median))) {
        notes.push(`${name}: took ${taken.median} ms, which is no time`);
      } else if (taken.mad > SETTLED * taken.median && !last) {
        again.push(one);
      } else {
        if (taken.mad > SETTLED * taken.median) {
          const spread = Math.round(100 * taken.mad / taken.median);
          unsettled++;
          notes.push(`${name}: did not settle, its samples spread by ${spread} %`);
        }
        // What else runs on a CPU only ever makes it slower.
        cases.push({ ...one, ms: start.software ? taken.min : taken.median });
      }
    });
    rest = again;
    if (rest.length === 0) break;
  }
  return { cases, unsettled, notes };
}

/**
 * What shifts a figure's optimum from where it was no sooner than measurements are further off than `kept`, and no further
 * than they say (a minimax concave penalty).
 */
function penalty(change: number, count: number): number {
  const kept = Math.max(KEPT / Math.sqrt(count), SAME);
  const size = Math.min(Math.abs(change), WHOLLY * kept);
  return 2 * count * (kept * size - size ** 2 / (2 * WHOLLY));
}

/** A model with all its rates scaled by common factors, as measurements say. */
function scaledBy(start: DeviceModel, cases: readonly MeasuredProbe[]): DeviceModel {
  const paths = figurePaths(start);
  const scaled = TOGETHER.reduce(
    (model, { figures, by }) =>
      fitFigures(model, measuredBy(cases, by), {
        groups: [paths.filter((path) => figures.some((name) => isBelow(path, name)))],
        steps: FAR_STEPS,
        penalty,
      }),
    start,
  );
  return withCosts(scaled, start);
}

/**
 * The model that explains what probes took: all rates by common factors, then families of them, then single figures, each only
 * as far as what is known of others does not explain it.
 */
function fitModel(start: DeviceModel, cases: readonly MeasuredProbe[]): DeviceModel {
  const balanced = scaledBy(start, cases);
  const paths = figurePaths(start);
  const below = (names: readonly string[]) =>
    paths.filter((path) => names.some((name) => isBelow(path, name)));
  // What no figure explains of other measurements is not to end in one that they merely run with.
  const speaks = (group: readonly FigurePath[], index: number) =>
    group.some((path) => cases[index]!.figures.some((name) => isBelow(path, name)));
  const families = fitFigures(balanced, cases, {
    groups: FAMILIES.map(below),
    steps: NEAR_STEPS,
    penalty,
    speaks,
  });
  const probed = [...new Set(cases.flatMap(({ figures }) => figures))];
  const model = fitFigures(families, cases, {
    groups: below(probed).map((path) => [path]),
    steps: NEAR_STEPS,
    penalty,
    speaks,
  });
  return model;
}

/** That too little of a calibration can be used, with the first note of why. */
function unusable(what: string, [note]: readonly string[]): UnsupportedError {
  return new UnsupportedError(
    `Cannot calibrate: ${what} can be used${note === undefined ? "" : `; ${note}`}`,
  );
}

/** Of probes or measurements those that are there for some of these figures. */
function measuredBy<T extends Probe>(probes: readonly T[], names: readonly string[]): T[] {
  return probes.filter(({ figures }) => figures.some((name) => names.includes(name)));
}

/** Whether a figure's path is a name's or lies below it; names of tiles have dots of their own. */
function isBelow(path: FigurePath, name: string): boolean {
  return `${path.join(".")}.`.startsWith(`${name}.`);
}

/** A model with the costs of cuts, which are in multiply-adds, of a device that moves and waits otherwise than `before`. */
function withCosts(model: DeviceModel, before: DeviceModel): DeviceModel {
  const ratio = (path: FigurePath) => figure(model, path) / figure(before, path);
  const computing = ratio(["rates", "gathered"]);
  const moving = computing / ratio(["rates", "stream"]);
  const { element, dispatch, fill, store, storeAgain, unitStore } = before.costs;
  const digits = (value: number) => Number(value.toPrecision(3));
  return {
    ...model,
    costs: {
      element: digits(element * moving),
      dispatch: digits(dispatch * computing * ratio(["times", "dispatch"])),
      fill: digits(fill),
      store: digits(store * moving),
      storeAgain: digits(storeAgain * moving),
      unitStore: digits(unitStore * moving),
    },
  };
}

/** A model whose figures are those of a calibration before wherever they are nearly the same, so that choices do not waver. */
export function steadied(model: DeviceModel, kept: DeviceModel): DeviceModel {
  const same = model.multiprocessors === kept.multiprocessors && model.software === kept.software;
  if (!same) return model;
  return figurePaths(model).reduce((steady, path) => {
    const [now, before] = [figure(model, path), figure(kept, path)];
    return Math.abs(Math.log(now / before)) < NEAR ? withFigure(steady, path, before) : steady;
  }, model);
}

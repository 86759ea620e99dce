import { TILE_POLICIES } from "../../kernels/policy.ts";
import type { DeviceModel, DeviceRates, DeviceShares, SlicedPolicies } from "./model.ts";
import { scaledBy } from "./scale.ts";

/** Multiprocessors, or pairs of workgroups in flight, of the machine that the figures are of. */
const MEASURED_ON = 2;

/** What tells a software device's figures from an H200's. */
type SoftwareFigures = Pick<DeviceModel, "rates" | "times" | "shares">;

/** Those that are its own: WinRS' kernels stand to each other as an H200's. */
interface OwnFigures {
  readonly rates: Omit<DeviceRates, "winrs">;
  readonly times: DeviceModel["times"];
  readonly strewn: number;
  /** What the policy `block` reaches of `tiny`. */
  readonly block: number;
  /** `shares.sliced.thin`. */
  readonly thin: number;
  /** Of an H200's `shares.sliced.policies.scattered`. */
  readonly scattered: number;
}

/**
 * Lavapipe (Mesa 22.3.6) on two cores of an AMD EPYC. Fitted to what every algorithm but WinRS takes of the 20 problems
 * of `bench/planner_rivals.ts` on a CPU, `packed`, `stream`, `correlated` and `slicedStore` then by hand to their choices. Of
 * WinRS nothing was fitted: `auto` leaves it aside.
 */
const LAVAPIPE: OwnFigures = {
  rates: {
    packed: 0.0145,
    gathered: 0.0066,
    correlated: { along: 0.0082, across: 0.007 },
    sliced: { one: 0.0108, oneWide: 0.0232, two: 0.0301 },
    slicedStore: { lines: 0.00027, scattered: 0.00028 },
    dot4: 0.01363,
    planned: 0.0066,
    direct: 0.00108,
    depthwise: { along: 0.03, across: 0.03 },
    few: 0.0219,
    fewGradient: 0.0163,
    depthwiseGradient: { along: 0.02, across: 0.02 },
    stream: 0.0045,
    filterStream: 0.000472,
    winrsOverall: 0.0217,
    winrsBuckets: 0.00249,
  },
  times: { dispatch: 44.5, winrsKernel: 44.5, transform: 0, loads: 0 },
  strewn: 0.9,
  block: 1.9,
  thin: 0.075,
  scattered: 0.6,
};

/** SwiftShader (chromium's, Subzero) on the same, likewise; of sliced products nothing was fitted but that they are slow. `gathered` and `strewn`: by hand, to three runs, as `depthwiseGradient` to four problems. */
const SWIFTSHADER: OwnFigures = {
  rates: {
    packed: 0.00105,
    gathered: 0.00151,
    correlated: { along: 0.00206, across: 0.00175 },
    sliced: { one: 0.000142, oneWide: 0.000135, two: 0.000115 },
    slicedStore: { lines: 0.0138, scattered: 0.00288 },
    dot4: 0.003345,
    planned: 0.00162,
    direct: 0.000294,
    depthwise: { along: 0.03, across: 0.03 },
    few: 0.0206,
    fewGradient: 0.000489,
    depthwiseGradient: { along: 0.00025, across: 0.0001 },
    stream: 0.0295,
    filterStream: 0.00011,
    winrsOverall: 0.000308,
    winrsBuckets: 0.0262,
  },
  times: { dispatch: 195, winrsKernel: 195, transform: 0, loads: 0 },
  strewn: 1,
  block: 1.8,
  thin: 0.25,
  scattered: 1,
};

/** A matrix times vectors, by hand, to some thirty products on lavapipe, whose mainloop took up to four times as long as it should. */
const CPU_GEMV: DeviceShares["gemv"] = { products: 0.6, apart: 0.06, draw: 2, short: 1 };

/**
 * The figures of a CPU's driver by its adapter's name, lavapipe's of one that is unknown, with so many multiprocessors.
 *
 * @param base Figures of which WinRS' rates are scaled, and shares are.
 */
export function softwareFigures(
  adapter: string,
  multiprocessors: number,
  base: Pick<DeviceModel, "rates" | "shares">,
): SoftwareFigures {
  const own = /swiftshader/i.test(adapter) ? SWIFTSHADER : LAVAPIPE;
  const { rates, times, strewn, block, thin } = own;
  const winrs = scaledBy(base.rates.winrs, rates.winrsOverall / base.rates.winrsOverall);
  const policies = ({ lines, images, scattered }: SlicedPolicies) => ({
    lines,
    images: scaledBy(images, own.scattered),
    scattered: scaledBy(scattered, own.scattered),
  });
  const sliced = {
    ...base.shares.sliced,
    thin,
    policies: policies(base.shares.sliced.policies),
    few: policies(base.shares.sliced.few),
  };
  return {
    rates: scaledBy({ ...rates, winrs }, multiprocessors / MEASURED_ON),
    times,
    shares: {
      ...base.shares,
      policies: softwarePolicies(base.shares, block),
      halfGroups: 1,
      gemv: CPU_GEMV,
      strewn,
      sliced,
    },
  };
}

/**
 * A CPU's `shares.policies`: without matrix units no others than these. What others unroll takes up to three times as long to
 * compile, and SwiftShader took 24 GB for a thin policy's loads. With many results they gain nothing over a thread of 8x8; with
 * few rows or columns lavapipe would take a fifth to a half of the time (`--policy sliver`).
 *
 * @param block What `block` reaches of `tiny`.
 */
export function softwarePolicies(
  { policies }: Pick<DeviceShares, "policies">,
  block = LAVAPIPE.block,
): DeviceShares["policies"] {
  const never = Object.fromEntries(TILE_POLICIES.map(({ name }) => [name, 0]));
  return { ...policies, ...never, tiny: 1, block };
}

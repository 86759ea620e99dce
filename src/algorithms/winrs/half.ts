import { elementsOf } from "../../elements/elements.ts";
import { accumulationLength } from "../../problem/conv_problem.ts";
import { ERROR_CEILING } from "../../problem/error_bound.ts";
import { amplification, halfError, ROUNDED_F16 } from "../../winograd/amplification.ts";
import { type WinogradTransform, winogradTransform } from "../../winograd/transform.ts";
import { allowedAmplification, HALF_ALLOWED } from "../algorithm.ts";
import { deviceOf } from "../device/h200.ts";
import type { PlanRequest } from "../request.ts";
import { unitPolicyOf } from "./baseline.ts";
import { DIRECT, NEVER, type Omega, omegaName, threadSets, type Throughput } from "./omega.ts";

/**
 * Kernels in f16, which `half-tile` asks for: transformed data is rounded to f16 and stays so in workgroup memory; transforms,
 * sums and buckets are f32.
 */
export function isHalf(request: PlanRequest): boolean {
  return elementsOf(request).tile === "f16";
}

/** Unit roundoff of f16 over that of f32, in which sums are. */
const COARSER = 2 ** 13;

/**
 * How much a kernel enlarges rounding errors of sums in f32. With data in f16 both factors of a product are rounded; on
 * constant data all products of a sum err alike, where those of f32 sums err like the root of their number.
 */
export function enlarged(request: PlanRequest, omega: Omega): number {
  if (omega === DIRECT) return 1;
  const plain = transformsOf(omega).reduce((all, one) => all * amplification(one), 1);
  const length = Math.max(1, accumulationLength(request.problem));
  return isHalf(request) ? plain * (1 + Math.SQRT2 * COARSER / Math.sqrt(length)) : plain;
}

/** Whether `auto` may take a kernel in f16 by its relative L2 error on normal data, or by the bound that the user allows. */
export function mayTakeHalf(request: PlanRequest, omega: Omega): boolean {
  if (request.exact || request.maxBoundRatio !== undefined) {
    return enlarged(request, omega) <= allowedAmplification(request);
  }
  if (elementsOf(request).result !== "f16") return omega === DIRECT;
  return Math.hypot(ROUNDED_F16, typical(omega)) <= HALF_ALLOWED * ROUNDED_F16;
}

/**
 * Whether a kernel may be chosen, and not by its name alone: in f16 nested ones were not measured, and where channels do not lie
 * innermost sets of slices take too long, for which threads load more.
 */
export function isWeighed(request: PlanRequest, omega: Omega): boolean {
  return isHalf(request)
    ? omega.rows === undefined
    : request.layout === "nhwc" || threadSets(omega) === 1;
}

/**
 * Direct TFLOP/s of a request's kernels. In f16, tiles are converted as they are multiplied, or multiplied on matrix units; those whose errors no one has a
 * use for are so slow that nothing chooses them, unless the user allows a bound, and so are nested ones, which were not measured.
 */
export function kernelRates(request: PlanRequest): Throughput {
  const { rates: { winrs }, shares } = deviceOf(request);
  const half = isHalf(request);
  const ceiling = half && request.maxBoundRatio === undefined
    ? ERROR_CEILING[request.outDtype ?? request.dtype]
    : Infinity;
  return remembered((omega) => {
    const name = omegaName(omega);
    // Models from before a kernel have no rate of it.
    const rate = winrs[name] ?? NEVER;
    if (!isWeighed(request, omega) || half && typical(omega) > ceiling) return NEVER * rate;
    if (!half) return rate;
    const units = unitPolicyOf(request, omega) === undefined ? undefined : shares.winrsUnits[name];
    return (units ?? shares.winrsHalf) * rate;
  });
}

/** What `figure` gives for a kernel, found once: thousands of grids ask for it. */
export function remembered<T>(figure: (omega: Omega) => T): (omega: Omega) => T {
  const known = new Map<Omega, T>();
  return (omega) => {
    if (!known.has(omega)) known.set(omega, figure(omega));
    return known.get(omega)!;
  };
}

function typical(omega: Omega): number {
  return halfError(transformsOf(omega));
}

/** Of its axes, rows first. */
function transformsOf({ n, r, rows }: Omega): WinogradTransform[] {
  return (rows === undefined ? [{ n, r }] : [rows, { n, r }])
    .map((axis) => winogradTransform(axis.n, axis.r));
}

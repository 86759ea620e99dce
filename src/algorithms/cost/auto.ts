import { defined } from "../../defined.ts";
import { variantTrait } from "../../kernels/variant.ts";
import type { ConvOutDType } from "../../problem/conv_problem.ts";
import { type Algorithm, allowedAmplification, inaccuracy } from "../algorithm.ts";
import { deviceOf } from "../device/h200.ts";
import { type DeviceModel, deviceText, moveTime, passTime, productTime } from "../device/model.ts";
import type { AlgorithmName, Candidate, Plan, Rival } from "../plan.ts";
import { isRefusal, type Planned, type Refusal, refusal } from "../refusal.ts";
import { algorithmOf, algorithms } from "../registry.ts";
import type { PlanRequest } from "../request.ts";
import { missesTiles, refuseSchedule } from "../schedule.ts";

/** Choices beside the schedule that only some algorithms have, and what they choose among. */
const CHOICES = { tile: "Winograd tiles", pair: "pairs of kernels" } as const;

/** The first choice of a request that an algorithm does not have, where only what has it can be meant. */
export function missingOption(
  { options }: Algorithm,
  request: PlanRequest,
): "tile" | "pair" | "policy" | "splits" | undefined {
  return (["tile", "pair"] as const)
    .find((option) => request[option] !== undefined && !options.includes(option)) ??
    missesTiles(options, request.schedule);
}

/** Why an algorithm cannot do the problem, or undefined if it can. */
export function unsupported(algorithm: Algorithm, request: PlanRequest): string | undefined {
  const { name, options, dtypes = ["f32"], refuse } = algorithm;
  const named = request.algorithm === name;
  const passedOver = named ? missingOption(algorithm, request) : undefined;
  if (passedOver === "tile" || passedOver === "pair") return `it has no ${CHOICES[passedOver]}`;
  const { dtype, outDtype = dtype } = request;
  // i32 sums come with any operands; u8 is stored as i8 is.
  const takes = (one: ConvOutDType) => one === "i32" || dtypes.includes(one === "u8" ? "i8" : one);
  const scheduled = refuseSchedule(options, request.schedule, named);
  if (scheduled !== undefined) return scheduled;
  if (!takes(dtype) || !takes(outDtype)) {
    return `its tensors are ${dtypes.join(", ").replace(/, ([^,]*)$/, " or $1")}`;
  }
  if (request.within !== undefined && !algorithm.takesParts) return "its tensors are whole ones";
  if (request.math === "f16x3" && !options.includes("math")) return "it multiplies f32 as it is";
  return refuse(request);
}

/**
 * Microseconds of a plan by its passes: each takes as long as its multiplications, or as all that it binds takes to move. Rougher than a
 * model of its own: all kernels are alike to it.
 */
export function planTime({ passes }: Pick<Plan, "passes">, device: DeviceModel): number {
  const { planned, stream } = device.rates;
  return passes.reduce((sum, { bindings, multiplications }) => {
    const bytes = bindings.reduce((all, { size }) => all + size, 0);
    const product = productTime(multiplications, planned);
    return sum + passTime(product, moveTime(bytes, stream), device);
  }, 0);
}

/** Every algorithm that `auto` weighs for a request, those that it may not take with the reason. */
function candidatesOf(request: PlanRequest, allowed: number): Candidate[] {
  const weighed = algorithms().flatMap((algorithm) => {
    // Where a choice is said, only what has it can be meant.
    if (missingOption(algorithm, request) !== undefined) return [];
    if (request.math === "f16x3" && !algorithm.options.includes("math")) return [];
    const offered = algorithm.candidates?.(request, allowed) ?? [];
    const reason = offered.length === 0 ? undefined : unsupported(algorithm, request);
    return reason === undefined ? offered : offered.map((one) => ({ ...one, reason }));
  });
  return weighed.map((one) =>
    one.reason === undefined && one.amplification > allowed
      ? { ...one, reason: `it ${inaccuracy(request, one.amplification, allowed)}` }
      : one
  );
}

/** Of candidates predicted to take so little more than the fastest, the one that enlarges errors least is taken. */
const SLACK = 1.03;
/** The same of one that enlarges none: what the model errs by is no reason for larger errors. */
const EXACT_SLACK = 1.05;
/** Where it enlarges errors to this share of the fastest's at most: F(4x4,3x3) may stand for F(6x6,3x3), F(5x5,3x3) not. */
const CLEARLY_LESS = 0.7;

/** How much longer kernels take that unpack bf16 on the way to their transforms (means of an H200's). */
const BF16_LONGER: Readonly<Record<string, number>> = {
  "winograd1d": 1.06,
  "winograd2d": 1.1,
  "winograd2d-nonfused": 1.1,
  "winrs": 1.2,
};

/** Predicted milliseconds of an algorithm with the request's tile or pair; undefined where there is no model of it. */
export function predictMs(
  request: PlanRequest,
  algorithm: AlgorithmName,
): Planned<number> | undefined {
  const priced = price(request, algorithm);
  return isRefusal(priced) ? priced : priced.ms;
}

/** A request's geometry and predicted milliseconds, where there is a model of the algorithm. */
function price(
  request: PlanRequest,
  algorithm: AlgorithmName,
): Planned<{ readonly geometry?: unknown; readonly ms?: number | undefined }> {
  const priced = algorithmOf(algorithm);
  if (priced?.price === undefined) return {};
  const geometry = priced.geometry(request);
  if (isRefusal(geometry)) return geometry;
  const time = priced.price(geometry);
  const unpacks = request.dtype === "bf16" && !deviceOf(request).software;
  const longer = unpacks ? BF16_LONGER[algorithm] ?? 1 : 1;
  return { geometry, ms: time === undefined ? undefined : longer * time / 1e3 };
}

/** Predicted milliseconds of a plan: by the model of its algorithm, or pass by pass. */
export function predictPlanMs(request: PlanRequest, plan: Plan): number | undefined {
  if (plan.predictedMs !== undefined) return plan.predictedMs;
  if (plan.passes.length === 0) return undefined;
  const modelled = predictMs(request, plan.algorithm);
  return typeof modelled === "number" ? modelled : planTime(plan, deviceOf(request)) / 1e3;
}

/** The request with a candidate's algorithm, tile, pair and variant. */
export function requestFor(
  request: PlanRequest,
  { algorithm, tile, pair, variant }: Candidate,
): PlanRequest {
  return {
    ...request,
    algorithm,
    ...defined({ tile, pair }),
    ...(variant && { schedule: { ...request.schedule, ...variant } }),
  };
}

/**
 * What `auto` may take, in the order in which it should be tried, and, with reasons, what it may not; `direct` last. Nothing
 * is planned: a candidate may still turn out not to fit the device.
 *
 * @param geometries Gets the geometry of each that is priced.
 */
export function rankRivals(
  request: PlanRequest,
  geometries: Map<Rival, unknown> = new Map(),
): Rival[] {
  const rivals = candidatesOf(request, allowedAmplification(request))
    .map((candidate) => priced(request, candidate, geometries));
  const order = ({ predictedMs = Infinity }: Rival) => predictedMs;
  rivals.sort((a, b) => order(a) === order(b) ? 0 : order(a) - order(b));
  const fastest = Math.min(...rivals.map(order));
  const quickest = rivals[0]?.amplification ?? 1;
  const close = rivals.filter(({ amplification, predictedMs = Infinity }, i) =>
    predictedMs <= (amplification > 1 ? SLACK : EXACT_SLACK) * fastest &&
    (i === 0 || amplification === 1 || amplification <= CLEARLY_LESS * quickest)
  );
  const best = close.sort((a, b) => a.amplification - b.amplification || order(a) - order(b))[0];
  const first = best === undefined ? rivals : [best, ...rivals.filter((rival) => rival !== best)];
  const free = request.tile === undefined && request.math !== "f16x3";
  if (!free) return first;
  // What needs neither workspace nor tiles: where nothing else fits.
  const predictedMs = predictMs(request, "direct") as number;
  return [...first, { algorithm: "direct", amplification: 1, predictedMs }];
}

function priced(
  request: PlanRequest,
  candidate: Candidate,
  geometries: Map<Rival, unknown>,
): Rival {
  if (candidate.reason !== undefined) return candidate;
  const made = price(requestFor(request, candidate), candidate.algorithm);
  if (isRefusal(made)) return { ...candidate, reason: made.text };
  const { geometry, ms: predictedMs } = made;
  const rival = predictedMs === undefined ? candidate : { ...candidate, predictedMs };
  geometries.set(rival, geometry);
  return rival;
}

/** Rivals that the note of a choice names. */
const NAMED = 3;

/**
 * Plans the candidate that is predicted to be fastest; the next one where the device cannot run it. What the last candidate
 * is refused for, if none can be planned.
 */
export function planFastest(
  request: PlanRequest,
  tryPlanConv: (request: PlanRequest, geometry?: unknown) => Planned<Plan>,
): Planned<Plan> {
  const geometries = new Map<Rival, unknown>();
  const ranked = rankRivals(request, geometries);
  const refused: Rival[] = [];
  let last: Refusal | undefined;
  for (const [index, rival] of ranked.entries()) {
    if (rival.reason !== undefined) continue;
    const plan = tryPlanConv(requestFor(request, rival), geometries.get(rival));
    if (isRefusal(plan)) {
      last = plan;
      refused.push({ ...rival, reason: plan.text });
      continue;
    }
    const rivals = [rival, ...ranked.slice(index + 1), ...refused];
    const { predictedMs } = rival;
    const device = deviceOf(request);
    return {
      ...plan,
      ...(predictedMs === undefined ? {} : { predictedMs, predictedDevice: device.name }),
      rivals,
      notes: [...plan.notes, explanation(rivals, device)],
    };
  }
  const reasons = ranked.map((rival) =>
    `${rivalName(rival)}: ${rival.reason ?? "it does not fit"}`
  );
  const how = request.math === "f16x3" ? " in math f16x3" : "";
  return last ?? refusal("problem", `no algorithm can${how} (${reasons.join("; ")})`);
}

/** `winograd2d-nonfused F(4x4,3x3)`, `winrs a4n3r2 half_tile`. */
export function rivalName({ algorithm, tile, pair, variant }: Rival): string {
  return [algorithm, tile, pair].filter((part) => part !== undefined).join(" ") +
    variantTrait(variant).replace("_", " ");
}

/** `auto: winograd2d-nonfused F(4x4,3x3) is predicted to take 0.284 ms on an NVIDIA H200, implicit-gemm 0.65`. */
function explanation([chosen, ...others]: readonly Rival[], device: DeviceModel): string {
  // No rival is `direct`, which is taken where nothing else fits.
  const timed = others.filter(({ predictedMs, reason, algorithm }) =>
    predictedMs !== undefined && !reason && algorithm !== "direct"
  );
  const ms = ({ predictedMs = NaN }: Rival) => predictedMs.toPrecision(3);
  const rest = timed.slice(0, NAMED).map((rival) => `${rivalName(rival)} ${ms(rival)}`);
  const faster = timed.some(({ predictedMs = NaN }) => predictedMs < (chosen!.predictedMs ?? 0));
  return `auto: ${rivalName(chosen!)} is predicted to take ${ms(chosen!)} ms on ${
    deviceText(device)
  }` +
    (rest.length === 0 ? ", nothing else can be taken" : `, ${rest.join(", ")}`) +
    (faster ? "; less error is worth a little time" : "");
}

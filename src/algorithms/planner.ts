import { variesLoop } from "../kernels/variant.ts";
import { convElementsFault } from "../problem/conv_elements.ts";
import {
  accumulationLength,
  CONV_DTYPES,
  type ConvProblem,
  convProblem,
  OPERATIONS,
} from "../problem/conv_problem.ts";
import { ACTIVATIONS } from "../problem/activations.ts";
import { fullEpilogue } from "../problem/epilogue.ts";
import { ERROR_CEILING } from "../problem/error_bound.ts";
import { FILTER_LAYOUTS, LAYOUTS } from "../tensor/layout.ts";
import { halfError, typicalError } from "../winograd/amplification.ts";
import { formatTile } from "../winograd/tile.ts";
import { winogradTransform } from "../winograd/transform.ts";
import { allowedAmplification, inaccuracy, type OptionChoice } from "./algorithm.ts";
import { channelParts, joiningTime, joinParts } from "./channel_parts.ts";
import { missingOption, planFastest, predictMs, unsupported } from "./cost/auto.ts";
import { planTuned } from "./cost/tuned.ts";
import { refuseCounts } from "./cut.ts";
import { deviceOf } from "./device/h200.ts";
import { refuseSplitMath } from "./halves.ts";
import { planIntegers } from "./integer_operands.ts";
import { refuseBindings, refuseLongLoops } from "./passes.ts";
import type { AlgorithmName, Plan } from "./plan.ts";
import { productUnit } from "./product.ts";
import { expectPlanned, isRefusal, type Planned, type Refusal, refusal } from "./refusal.ts";
import { algorithmNames, algorithmOf, algorithms } from "./registry.ts";
import { expectRequest, isSoftware, MATHS, type PlanRequest } from "./request.ts";
import { refuseHugeTensors, resultElements, withWorkspaceBytes } from "./tensors.ts";

/**
 * Every algorithm, with the reason where it does not support the problem.
 *
 * @example
 * ```ts
 * import {
 *   DEFAULT_LIMITS,
 *   NO_EPILOGUE,
 *   parseDescriptor,
 *   supportedAlgorithms,
 * } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const all = supportedAlgorithms({
 *   problem: parseDescriptor("mb1ic3ih8oc4kh3"),
 *   dtype: "f32",
 *   layout: "nchw",
 *   filterLayout: "kcrs",
 *   epilogue: NO_EPILOGUE,
 *   algorithm: "auto",
 *   limits: DEFAULT_LIMITS,
 * });
 * assert.equal(all.find(({ name }) => name === "winrs")?.reason, "it computes bwd-filter");
 * ```
 */
export function supportedAlgorithms(
  given: PlanRequest,
): { name: AlgorithmName; reason?: string }[] {
  const request = checkedRequest(given);
  return algorithms().map((algorithm) => {
    const { name } = algorithm;
    const reason = unsupported(algorithm, request);
    return reason === undefined ? { name } : { name, reason };
  });
}

/** Options of the algorithm that a request names which are worth measuring beside the planner's choice. */
export function algorithmRivals(request: PlanRequest): readonly OptionChoice[] {
  return algorithmOf(request.algorithm)?.rivals?.(request) ?? [];
}

/** Rows of a product below which a tile is mostly padding: thin groups. */
const THIN_ROWS = 8;

/** What `auto` stands for without comparing times. */
interface FixedChoice {
  readonly name: AlgorithmName;
  readonly why: string;
  /** Whether nothing that the user said asks for it, so that `direct` may take its place. */
  readonly replaceable?: boolean;
}

/** What `auto` stands for where no times are compared; undefined where they are. */
function fixedChoice(request: PlanRequest): FixedChoice | undefined {
  const { problem } = request;
  // Of halves few algorithms are.
  if (request.math === "f16x3") return undefined;
  const rows = (problem.op === "bwd-data" ? problem.inChannels : problem.outChannels) /
    problem.groups;
  if (request.pair !== undefined && problem.op === "bwd-filter") {
    return { name: "winrs", why: "auto: the pair is of winrs" };
  }
  const hasOptions = (name: AlgorithmName) =>
    missingOption(algorithmOf(name)!, request) === undefined;
  if (
    problem.groups > 1 && problem.inChannels === problem.groups && !degenerate(problem) &&
    request.dtype !== "i8" && hasOptions("depthwise")
  ) {
    return { name: "depthwise", why: "auto: one filter a channel", replaceable: true };
  }
  if (problem.groups > 1 && rows < THIN_ROWS) {
    const name = unsupported(algorithmOf("depthwise")!, request) === undefined
      ? "depthwise"
      : "direct";
    const why = `auto: groups of ${rows} rows leave tiles of products empty`;
    if (hasOptions(name)) return { name, why, replaceable: true };
  }
  if (request.tile !== undefined) return undefined;
  const { schedule } = request;
  if (variesLoop(schedule) || (schedule?.policy ?? schedule?.splits) !== undefined) {
    return {
      name: "implicit-gemm",
      why: "auto: a policy, splits and variants are of implicit-gemm",
    };
  }
  return degenerate(problem)
    ? { name: "implicit-gemm", why: "auto: there is nothing to sum", replaceable: true }
    : undefined;
}

/** Plans a fixed choice, or `direct`, which needs no workspace, where it takes more than is allowed. */
function planFixed(request: PlanRequest, { name, why, replaceable }: FixedChoice): Planned<Plan> {
  const plan = planNamed({ ...request, algorithm: name });
  if (!isRefusal(plan)) return noted(plan, why);
  if (!replaceable || plan.kind !== "workspace") return plan;
  const direct = planNamed({ ...request, algorithm: "direct" });
  const { maxWorkspaceBytes } = request;
  return noted(
    direct,
    `auto: direct, ${name} takes more than ${maxWorkspaceBytes} bytes of workspace`,
  );
}

function noted(plan: Planned<Plan>, note: string): Planned<Plan> {
  return isRefusal(plan) ? plan : { ...plan, notes: [...plan.notes, note] };
}

/** Whether there is nothing to sum, or nothing to store. */
function degenerate(problem: ConvProblem): boolean {
  return accumulationLength(problem) === 0 || resultElements(problem) === 0;
}

/** Plans what a device's tuning, or else the model, says is fastest. */
function planAuto(request: PlanRequest): Planned<Plan> {
  const tuned = planTuned(request, planNamed);
  if (typeof tuned === "object") return tuned;
  const fixed = fixedChoice(request);
  const plan = fixed === undefined
    ? planInParts(request, planFastest(request, planNamed))
    : planFixed(request, fixed);
  return tuned === undefined ? plan : noted(plan, tuned);
}

/** Two kernels are to take less than this share of one's time, gradients of filters or others: the model errs by as much. */
const PARTS_WORTH = { filter: 0.88, images: 0.8 };

/** The plan in two parts of the result's channels, where that is predicted to be clearly faster than the plan of all. */
function planInParts(request: PlanRequest, whole: Planned<Plan>): Planned<Plan> {
  if (isRefusal(whole) || whole.predictedMs === undefined) return whole;
  const parts = deviceOf(request).software ? undefined : channelParts(request);
  if (parts === undefined) return whole;
  const ms = predictMs(parts.rest, "depthwise");
  if (isRefusal(ms) || ms === undefined) return whole;
  const first = planFastest(parts.first, planNamed);
  if (isRefusal(first) || first.predictedMs === undefined) return whole;
  const predictedMs = first.predictedMs + ms + joiningTime(parts) / 1e3;
  const worth = PARTS_WORTH[request.problem.op === "bwd-filter" ? "filter" : "images"];
  if (predictedMs >= worth * whole.predictedMs) return whole;
  const rest = planNamed(parts.rest);
  if (isRefusal(rest)) return whole;
  const plan = joinParts(parts, first, rest);
  if (isRefusal(refuseWorkspace(request, plan))) return whole;
  const chosen = (first.rivals ?? []).slice(0, 1).map((rival) => ({ ...rival, predictedMs }));
  return {
    ...plan,
    predictedMs,
    rivals: [...chosen, ...whole.rivals ?? []],
  };
}

/** What `auto` would take for a problem that the request's algorithm does not support; undefined if nothing can. */
function alternative(request: PlanRequest): string | undefined {
  const { tile: _, pair: __, ...free } = request;
  const { policy: ___, ...schedule } = request.schedule ?? {};
  const plan = planAuto({ ...free, schedule, algorithm: "auto" });
  return isRefusal(plan) ? undefined : plan.algorithm;
}

/** Refuses what enlarges rounding errors more than the user said; what is allowed unsaid is for `auto` alone. */
function refuseInaccuracy(
  request: PlanRequest,
  { algorithm, amplification = 1 }: Plan,
): Refusal | undefined {
  if (!request.exact && request.maxBoundRatio === undefined) return undefined;
  const allowed = allowedAmplification(request);
  return amplification <= allowed
    ? undefined
    : refusal("accuracy", `${algorithm} ${inaccuracy(request, amplification, allowed)}`);
}

/** Unit roundoff of f32, in which all kernels sum. */
const UNIT_ROUNDOFF = 2 ** -24;

/** Refuses tiles whose results would not pass the gate's ceiling on normal data, unless the user allows a bound ratio. */
function refuseAboveCeiling(
  { problem, dtype, outDtype = dtype, maxBoundRatio }: PlanRequest,
  { algorithm, arithmetic }: Plan,
): Refusal | undefined {
  if (maxBoundRatio !== undefined) return undefined;
  const { transformed } = arithmetic;
  const ceiling = ERROR_CEILING[transformed ? outDtype : "f32"];
  for (const { axes } of arithmetic.tiles ?? []) {
    const products = axes.reduce((all, { r }) => all / r, accumulationLength(problem));
    const length = Math.min(arithmetic.chain ?? Infinity, products);
    const transforms = axes.map(({ n, r }) => winogradTransform(n, r));
    const stored = transformed ? halfError(transforms) : 0;
    const error = Math.hypot(UNIT_ROUNDOFF * typicalError(transforms, length), stored);
    if (error <= ceiling) continue;
    const tile = formatTile({ n: axes.map(({ n }) => n), r: axes.map(({ r }) => r) });
    return refusal(
      "accuracy",
      `${algorithm} ${tile} typically errs by ${error.toExponential(1)} of a result's norm with ` +
        `sums of ${Math.ceil(length)} products${transformed ? " of f16" : ""}, ` +
        `${ceiling} is allowed ` +
        "(--max-bound-ratio plans it all the same)",
    );
  }
  return undefined;
}

function refuseWorkspace(
  { maxWorkspaceBytes = Infinity }: PlanRequest,
  { algorithm, workspaceBytes }: Plan,
): Refusal | undefined {
  return workspaceBytes <= maxWorkspaceBytes ? undefined : refusal(
    "workspace",
    `${algorithm} takes ${workspaceBytes} bytes of workspace, ` +
      `at most ${maxWorkspaceBytes} are allowed`,
  );
}

/**
 * {@linkcode tryPlanConv} where a refusal is an error.
 *
 * @throws {RangeError} if a tensor has 2^32 elements or more, a named algorithm does not support the problem, takes more
 * workspace or enlarges rounding errors more than is allowed, or the epilogue does not fit the operation.
 * @throws {UnsupportedError} if the device's limits do not suffice, or it is a software device that would cut loops short.
 * @example
 * ```ts
 * import { DEFAULT_LIMITS, NO_EPILOGUE, parseDescriptor, planConv } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const plan = planConv({
 *   problem: parseDescriptor("mb32ic64ih56oc64kh3ph1"),
 *   dtype: "f32",
 *   layout: "nchw",
 *   filterLayout: "kcrs",
 *   epilogue: NO_EPILOGUE,
 *   algorithm: "implicit-gemm",
 *   limits: DEFAULT_LIMITS,
 * });
 * assert.equal(plan.passes.length, 2); // the filter is packed, then multiplied
 * ```
 */
export function planConv(request: PlanRequest): Plan {
  return expectPlanned(tryPlanConv(request));
}

/**
 * Plans a convolution: pure, no GPU. Empty results have no passes.
 *
 * @throws {SyntaxError | RangeError} if the text of the request's tile or pair is none.
 * @example
 * ```ts
 * import {
 *   DEFAULT_LIMITS,
 *   isRefusal,
 *   NO_EPILOGUE,
 *   parseDescriptor,
 *   tryPlanConv,
 * } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const planned = tryPlanConv({
 *   problem: parseDescriptor("mb1ic3ih8oc4kh3sh2"),
 *   dtype: "f32",
 *   layout: "nchw",
 *   filterLayout: "kcrs",
 *   epilogue: NO_EPILOGUE,
 *   algorithm: "winograd2d",
 *   limits: DEFAULT_LIMITS,
 * });
 * assert.ok(isRefusal(planned) && planned.kind === "problem", "Winograd has stride 1");
 * ```
 */
export function tryPlanConv(given: PlanRequest): Planned<Plan> {
  const asked = checkedRequest(given);
  const { problem, epilogue } = asked;
  if (problem.op !== "fwd" && (epilogue.bias || epilogue.activation !== "none")) {
    return refusal("problem", `bias and activation belong to fwd, not to ${problem.op}`);
  }
  const unknown = refuseUnknown(asked) ?? refuseMath(asked) ?? refuseCounts(asked);
  if (unknown !== undefined) return unknown;
  const request = withWorkspaceBytes(asked);
  const huge = refuseHugeTensors(request);
  if (huge !== undefined) return huge;
  const integers = planIntegers(request, tryPlanConv);
  if (integers !== undefined) return integers;
  if (request.algorithm === "auto") return planAuto(request);
  const plan = planNamed(request);
  const algorithm = algorithmOf(request.algorithm);
  if (!isRefusal(plan) || algorithm === undefined) return plan;
  if (unsupported(algorithm, request) === undefined) return plan;
  const option = missingOption(algorithm, request);
  if (option !== undefined) {
    const others = algorithms().filter(({ options }) => options.includes(option));
    const names = others.map(({ name }) => name).join(", ");
    return refusal(plan.kind, `${plan.text} (--${option} is of ${names})`);
  }
  const other = alternative(request);
  return other === undefined ? plan : refusal(plan.kind, `${plan.text} (${other} does)`);
}

/** The request with a valid problem and a full epilogue: programs without types may pass anything. */
function checkedRequest(given: PlanRequest): PlanRequest {
  expectRequest(given);
  const epilogue = fullEpilogue("Cannot plan", given.epilogue);
  return { ...given, problem: convProblem(given.problem), epilogue };
}

/** Refuses how operands are multiplied where they are not f32, or on units that there are not. */
function refuseMath(request: PlanRequest): Refusal | undefined {
  const { dtype, math = "auto" } = request;
  if (math === "f16x3" && request.exact) {
    return refusal("accuracy", "math f16x3 makes three products of one, which exact forbids");
  }
  if (math === "f16x3") {
    return refuseSplitMath({ dtype, depth: 1, hasUnit: productUnit(request) !== undefined });
  }
  return math === "auto" || dtype === "f32"
    ? undefined
    : refusal("problem", `math ${math} is of f32 operands, the dtype is ${dtype}`);
}

/** Refuses words that are none of those that a request may say, and element types that do not go with the rest. */
function refuseUnknown(request: PlanRequest): Refusal | undefined {
  const { problem, dtype, layout, filterLayout, epilogue } = request;
  const said: readonly (readonly [string, string, readonly string[]])[] = [
    ["op", problem.op, OPERATIONS],
    ["dtype", dtype, CONV_DTYPES],
    ["layout", layout, LAYOUTS],
    ["filterLayout", filterLayout, FILTER_LAYOUTS],
    ["activation", epilogue.activation, ACTIVATIONS],
    ["math", request.math ?? "auto", MATHS],
  ];
  const wrong = said.find(([, word, words]) => !words.includes(word));
  if (wrong === undefined) {
    const fault = convElementsFault(request);
    return fault === undefined ? undefined : refusal("problem", fault);
  }
  const [name, word, words] = wrong;
  return refusal("problem", `${name} ${word} is none of ${words.join(", ")}`);
}

/** @param derived The geometry of the request where it is priced already. */
function planNamed(request: PlanRequest, derived?: unknown): Planned<Plan> {
  const { problem } = request;
  const algorithm = algorithmOf(request.algorithm);
  if (algorithm === undefined) {
    const names = algorithmNames().join(", ");
    return refusal("problem", `there is no algorithm ${request.algorithm}, only ${names}`);
  }
  const { name } = algorithm;
  const reason = unsupported(algorithm, request);
  if (reason !== undefined) {
    return refusal("problem", `${name} does not support this problem: ${reason}`);
  }
  // Literal zero divisors do not compile; in a uniform they are harmless.
  const mode = degenerate(problem) ? "uniform" : request.sizes ?? "constant";
  const geometry = derived ?? algorithm.geometry(request);
  const plan = isRefusal(geometry) ? geometry : algorithm.plan(geometry, mode);
  if (isRefusal(plan)) return plan;
  return refuseInaccuracy(request, plan) ??
    refuseAboveCeiling(request, plan) ??
    (isSoftware(request) ? refuseLongLoops(plan) : undefined) ??
    refuseWorkspace(request, plan) ??
    refuseBindings(plan, request.limits) ??
    plan;
}

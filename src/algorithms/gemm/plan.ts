import {
  depthOfValue,
  type Elements,
  elementsOf,
  elementsTrait,
  sumOf,
} from "../../elements/elements.ts";
import { epilogueTrait, NO_STEPS } from "../../kernels/epilogue.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { loadedTensor, policyVector } from "../../kernels/loader.ts";
import { matrixLoader, packedLoader } from "../../kernels/loaders/matrix.ts";
import { innerProduct } from "../../kernels/loop/thread_products.ts";
import {
  productKernel,
  productMultiplications,
  productWorkgroups,
} from "../../kernels/product_kernel.ts";
import { fullVariant } from "../../kernels/variant.ts";
import { unitScalar } from "../../kernels/matrix_units.ts";
import { type ModuleBuilder, moduleBuilder } from "../../kernels/module.ts";
import { mappedOutput } from "../../kernels/output.ts";
import { GEMV, THIN_POLICIES } from "../../kernels/policy.ts";
import { partialElements, tilePartialsOutput } from "../../kernels/reduce.ts";
import { HALVES } from "../../kernels/split_halves.ts";
import {
  checkGemmArithmetic,
  GEMM_DTYPES,
  gemmProblem,
  summedDepth,
} from "../../problem/gemm_problem.ts";
import { splitDrift } from "../../problem/split_rounding.ts";
import { planTunedProduct } from "../cost/tuned.ts";
import { type Cut, cutSchedule, refuseCounts } from "../cut.ts";
import { cutNotes, UNBOUND_NOTE } from "../cut_notes.ts";
import { deviceOf } from "../device/h200.ts";
import { pass, reducePass, reduceTilesPass, refuseBindings, runnable } from "../passes.ts";
import type { Pass, Plan } from "../plan.ts";
import { expectPlanned, isRefusal, type Planned, refusal } from "../refusal.ts";
import { expectRequest } from "../request.ts";
import { bandOfTiles, chooseGemm, cutGemm, gemmSums, gemmUnit, gemmVector } from "./choose.ts";
import { planGemv } from "./gemv.ts";
import {
  gemmBuffers,
  gemmEpilogue,
  gemmReduction,
  type GemmRequest,
  loadSteps,
  loopDepth,
  type OperandShape,
  operandShapes,
  packedSize,
  packingPays,
  packOperandPass,
  packsPanels,
  resultMap,
  storedDepth,
} from "./operands.ts";
import { SPLIT_NOTE, type SplitProduct, splitProduct, UNSTREAMED_NOTE } from "./split.ts";

/** The request of a product that is cut so, with what the planner chooses of its schedule. */
function withTile(request: GemmRequest, cut: Cut): GemmRequest {
  const { dtype, accumulate, schedule } = request;
  if (dtype !== "f16" || accumulate === "f16" || schedule?.halfTile !== undefined) return request;
  // Bound by memory, so f16 stays as it is on its way to the products.
  return THIN_POLICIES.includes(cut.policy.name)
    ? { ...request, schedule: { ...schedule, halfTile: true } }
    : request;
}

/** What a plan says of f16 sums where the device's matrix units would add up in f32. */
const THREADS_NOTE = "sums in f16 are made by threads: on matrix units they are in f32 alone";

/**
 * Share of a step's rows before the back edge of a software-pipelined loop of split-K: 1.02 times as fast as a little less than half in
 * 14 products, 0.995 in gradients of filters, on an H100.
 */
const SPLIT_PIPELINED = 11 / 16;

/**
 * {@linkcode tryPlanGemm} where a refusal is an error.
 *
 * @throws {RangeError} if the policy is unknown, or as {@linkcode checkGemmArithmetic}.
 * @throws {UnsupportedError} if the device's limits do not suffice, or it is a software device that would cut loops short.
 * @example
 * ```ts
 * import { DEFAULT_LIMITS, gemmProblem, planGemm } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const problem = gemmProblem({ m: 512, n: 512, k: 512 });
 * const plan = planGemm({ problem, dtype: "f32", limits: DEFAULT_LIMITS });
 * assert.equal(plan.algorithm, "gemm");
 * ```
 */
export function planGemm(request: GemmRequest): Plan {
  return expectPlanned(tryPlanGemm(request));
}

/**
 * Plans a matrix product: pure, no GPU. An empty result has no passes; a depth of 0 leaves the epilogue
 * of zeros.
 *
 * @throws {RangeError} as {@linkcode checkGemmArithmetic}.
 */
export function tryPlanGemm(given: GemmRequest): Planned<Plan> {
  expectRequest(given);
  const asked = { ...given, problem: gemmProblem(given.problem) };
  checkGemmArithmetic(asked.problem, asked);
  if (!GEMM_DTYPES.includes(asked.dtype)) {
    return refusal("problem", `dtype ${asked.dtype} is none of ${GEMM_DTYPES.join(", ")}`);
  }
  const counted = refuseCounts(asked);
  if (counted !== undefined) return counted;
  const tuned = planTunedProduct(asked, planChosen);
  if (typeof tuned === "object") return tuned;
  const plan = planChosen(asked);
  if (tuned === undefined || isRefusal(plan)) return plan;
  return { ...plan, notes: [...plan.notes, tuned] };
}

/** Plans a product as the model chooses what is not said. */
function planChosen(asked: GemmRequest): Planned<Plan> {
  const choice = chooseGemm(summedRequest(asked));
  if (isRefusal(choice)) return choice;
  const { math, gemv, cut } = choice;
  if (gemv !== undefined) {
    const plan = planGemv(asked, gemv.shape);
    // The mainloop may do with fewer bindings.
    if (!isRefusal(plan) || asked.schedule?.policy === GEMV) return plan;
  }
  // Of nothing to multiply that policy leaves nothing to choose.
  const { policy, ...others } = asked.schedule ?? {};
  const request = policy === GEMV ? { ...asked, schedule: others } : asked;
  const plan = planMath({ ...request, math }, policy === GEMV ? undefined : cut());
  // Halves take buffers and bindings that f32 does without.
  return isRefusal(plan) && math === "f16x3" && asked.math !== math && policy === undefined
    ? planMath({ ...request, math: "f32" })
    : plan;
}

/** The request with the depth that results sum: 0 where alpha is 0 in the type that kernels hold it in. */
function summedRequest(asked: GemmRequest): GemmRequest {
  const { problem, dtype } = asked;
  const alpha = dtype === "f64" ? problem.alpha : Math.fround(problem.alpha);
  return { ...asked, problem: { ...problem, k: summedDepth({ ...problem, alpha }) } };
}

/** Plans a product whose math is chosen, and its cut where that is known. */
function planMath(asked: GemmRequest, known?: Planned<Cut>): Planned<Plan> {
  const summed = summedRequest(asked);
  const first = known ?? cutGemm(summed);
  if (isRefusal(first)) return first;
  const request = withTile(summed, first);
  const cut = request === summed ? first : cutGemm(request);
  if (isRefusal(cut)) return cut;
  const { accumulate, ...summedInF32 } = asked;
  const { problem, limits } = request;
  const device = deviceOf(request);
  const asStored = elementsOf(request);
  const { m, n, k, batch, transpose } = problem;
  // Literal zero divisors do not compile; in a uniform they are harmless.
  const mode = m * n * k * batch === 0 ? "uniform" : request.sizes ?? "constant";
  const shapes = operandShapes(problem, asStored);
  const elements = batch * m * n;
  const { splits, head, policy } = cut;
  const { matrix } = policy;
  const band = bandOfTiles(device, policy, request);
  const variant = fullVariant({ raster: band, ...request.schedule });
  const types = matrix === undefined || matrix.split
    ? asStored
    : { ...asStored, tile: unitScalar(matrix.unit) };
  // Products of a value along the depth of what the loop loads: halves are two values a product.
  const packed = matrix?.split ? 1 / 2 : depthOfValue(asStored);
  const chain = gemmUnit(request)?.chain;
  const depth = loopDepth(storedDepth(k, asStored, matrix), policy, chain);
  const shape = { rows: m, columns: n, depth, batches: batch, splits };

  // With an alpha of 0 no kernel reads A and B, but callers still give them.
  const { buffers, place } = gemmBuffers(asked.problem, types, limits, mode);
  const result = place.output!;
  const strides = { row: n, outer: 0, inner: 1, base: [m * n] };
  const vector = gemmVector(problem);
  const tail = head === undefined ? undefined : {
    policy,
    range: { first: head, count: productWorkgroups({ ...shape, splits: 1 }, policy) - head },
    splits,
    rows: m,
    columns: n,
    strides: { ...strides, period: n, group: m * n },
    vector,
    raster: variant.raster,
  };
  const sums = gemmSums(types, cut, Math.ceil(depth / policy.depth), packed, chain);
  // Sums of halves are taken back to their size by a pass of its own: what that takes of registers the loop would lack.
  const later = tail === undefined && (splits > 1 || matrix?.split === true);
  const partials = !later && tail === undefined ? undefined : buffers.workspace(
    "partial results",
    tail === undefined ? splits * elements : partialElements(tail),
    sumOf(types),
  );
  const packs: Pass[] = [];
  const ending = gemmEpilogue(problem, types, buffers, place);
  const drift = matrix?.split ? splitDrift(sums, k, request.matrixUnits!.cutsOff) : {};
  const split = matrix?.split
    ? splitProduct({
      problem,
      policy,
      device,
      buffers,
      place,
      shapes,
      depth,
      drift,
      epilogue: ending,
    })
    : undefined;
  const a = split === undefined ? operand("a", shapes.a, place.a!) : inHalves("a", split);
  const b = split === undefined ? operand("b", shapes.b, place.b!) : inHalves("b", split);
  const main = product();
  const plan = buffers.plan({
    kernel: canonicalName(main.kernel),
    algorithm: "gemm",
    passes: elements === 0 ? [] : [
      ...(split?.before ?? []),
      ...packs,
      main,
      ...(partials === undefined ? [] : [reduction(partials)]),
      ...(split?.after ?? []),
    ],
    multiplications: main.multiplications,
    arithmetic: { ...sums, ...drift },
    schedule: { ...cutSchedule(cut, request), raster: variant.raster },
    notes: [
      ...cutNotes(cut, productWorkgroups({ ...shape, splits: 1 }, policy), request),
      ...packs.map(({ kernel: { name } }) => `${name.split(".")[0]} before it`),
      ...(split === undefined ? [] : [SPLIT_NOTE]),
      ...(split !== undefined && request.schedule?.balance === "stream-k" ? [UNSTREAMED_NOTE] : []),
      ...(accumulate === "f16" && gemmUnit(summedInF32) ? [THREADS_NOTE] : []),
    ],
  });
  // The kernel of stream-K binds two results.
  if (head !== undefined && !isRefusal(plan) && refuseBindings(plan, limits) !== undefined) {
    const { splits: _, ...schedule } = asked.schedule ?? {};
    const whole = planMath({ ...asked, schedule: { ...schedule, balance: "none" } });
    return isRefusal(whole) ? whole : { ...whole, notes: [...whole.notes, UNBOUND_NOTE] };
  }
  return runnable(plan, request);

  /** The mainloop: whole tiles to the result, what is split to partial results. */
  function product(): Pass {
    const module = moduleBuilder(mode);
    const [aLoader, bLoader] = [a.loader(module), b.loader(module)];
    const target = later ? partials! : result;
    const whole = target === result;
    const width = vector === "none" ? 1 : 4;
    const element = whole ? types.result : sumOf(types);
    const out = module.tensor("result", "write", width, buffers.split(target), element);
    const epilogue = whole ? ending : NO_STEPS;
    const epilogueSteps = epilogue(module, width, (row) => row);
    const map = resultMap(module, problem, vector, whole ? 1 : splits);
    const inTiles = tail &&
      tilePartialsOutput(module, tail, buffers.split(partials!), sumOf(types));
    const suffix = `${transpose}_a${a.trait}b${b.trait}_o${width}${
      tail !== undefined ? "_streamk" : whole ? "" : splits === 1 ? "_scaled" : "_split"
    }${epilogueTrait(epilogueSteps)}${buffers.splitTrait(a.buffer, b.buffer, target)}`;
    const loop = tail === undefined ? shape : { ...shape, split: tail.range };
    const kernel = productKernel(module, {
      traits: `gemm_${elementsTrait(types)}${split === undefined ? "" : "_f16x3"}`,
      suffix,
      shape: loop,
      policy,
      loaders: [aLoader, bLoader],
      output: mappedOutput(out, map, epilogueSteps),
      workgroupBytes: limits.maxComputeWorkgroupStorageSize,
      partials: inTiles,
      variant,
      sums: { inner: innerProduct(types.accumulate), chain },
      threads: { pipelinedShare: splits > 1 && tail === undefined ? SPLIT_PIPELINED : undefined },
    });
    const multiplications = packed * productMultiplications(loop, policy, mode, variant);
    const operands = { a: a.buffer, b: b.buffer };
    const places = { ...place, ...operands, result: target, partials };
    return pass(kernel, buffers, places, multiplications);
  }

  function reduction(partials: number): Pass {
    const places = { ...place, ...split?.places, partials, result };
    const epilogue = split?.epilogue ?? ending;
    if (tail !== undefined) {
      return reduceTilesPass(tail, epilogue, buffers, places, types.result);
    }
    return reducePass(gemmReduction(problem, splits), epilogue, buffers, places, types.result);
  }

  /** An operand as it is, or packed first. */
  function operand(name: "a" | "b", matrix: OperandShape, unpacked: number) {
    const side = name === "a" ? "rows" : "columns";
    if (!packingPays(request, types, matrix, policy, side)) {
      const vector = policyVector(policy, matrix.vector, loadSteps(matrix));
      const padded = depth === matrix.depth ? {} : { padded: true };
      const loader = (module: ModuleBuilder) => {
        const tensor = loadedTensor(module, name, vector, buffers.split(unpacked), types);
        return matrixLoader(module, name, tensor, {
          ...matrix,
          vector,
          tileDepth: policy.depth,
          ...padded,
        });
      };
      return { buffer: unpacked, loader, trait: `${vector}` };
    }
    const padded = packedSize({ ...matrix, depth }, policy, side);
    const values = batch * padded.places * padded.depth;
    const packed = buffers.workspace(`packed ${name}`, values, types.storage);
    const at = { unpacked, packed };
    packs.push(packOperandPass(matrix, policy, padded, types, buffers, at));
    return paddedOperand(name, packed, padded, types, "p");
  }

  function inHalves(name: "a" | "b", { halves }: SplitProduct) {
    const { buffer, padded } = halves[name];
    return paddedOperand(name, buffer, padded, HALVES, "h");
  }

  /** An operand that was written for the loop, padded. */
  function paddedOperand(
    name: "a" | "b",
    buffer: number,
    padded: { readonly places: number; readonly depth: number },
    types: Pick<Elements, "storage" | "tile">,
    trait: string,
  ) {
    const vector = policyVector(policy, 4, []);
    const loader = (module: ModuleBuilder) =>
      packedLoader(module, name, loadedTensor(module, name, vector, buffers.split(buffer), types), {
        ...padded,
        tileDepth: policy.depth,
        vector,
        inPanels: packsPanels(policy),
      });
    return { buffer, loader, trait };
  }
}

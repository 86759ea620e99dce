import { biasOf, type ElementChoice, elementsOf, sumOf } from "../elements/elements.ts";
import type { Scalar } from "../elements/scalar.ts";
import { finishSumsKernel } from "../kernels/bytes.ts";
import {
  activationStep,
  biasStep,
  type EpilogueFactory,
  quantizeStep,
} from "../kernels/epilogue.ts";
import { canonicalName } from "../kernels/kernel.ts";
import { WHOLE } from "../kernels/module.ts";
import { foldGrid, type SizedKernel } from "../kernels/sized_kernel.ts";
import {
  type ReduceShape,
  reduceSplitsKernel,
  reduceTilesKernel,
  type TilePartials,
} from "../kernels/reduce.ts";
import {
  type SplitHalves,
  splitHalvesKernel,
  type SplitMaxima,
  splitMaximaKernel,
} from "../kernels/split_halves.ts";
import { clearMarksKernel } from "../kernels/split_marks.ts";
import { type Epilogue, NO_EPILOGUE } from "../problem/epilogue.ts";
import { deviceOf } from "./device/h200.ts";
import { copyTime, type DeviceModel } from "./device/model.ts";
import type { DeviceLimits, Pass, Plan, PlanBinding } from "./plan.ts";
import { isRefusal, type Planned, type Refusal, refusal } from "./refusal.ts";
import type { PlanRequest } from "./request.ts";
import { type BufferList, type ProblemBuffers, resultElements } from "./tensors.ts";

/**
 * Iterations that a thread may run on a software device. lavapipe stops after 65,535 without a word, counting those of all
 * loops of a kernel together; others are held to the same.
 */
export const MOST_ITERATIONS = 65_000;

/** Iterations of the pass of a plan that runs most of them, on one thread. */
export function longestLoops({ passes }: Pick<Plan, "passes">): number {
  return passes.reduce((most, { iterations = 0 }) => Math.max(most, iterations), 0);
}

export function refuseLongLoops({ passes }: Pick<Plan, "passes">): Refusal | undefined {
  const long = passes.find(({ iterations = 0 }) => iterations > MOST_ITERATIONS);
  return long &&
    refusal(
      "limit",
      `${canonicalName(long.kernel)} loops ${long.iterations} times, a software device may stop ` +
        `after ${MOST_ITERATIONS}; more splits make loops shorter, a GPU has no such limit`,
    );
}

/**
 * A pass of a kernel.
 *
 * @param places For each tensor name the kernel binds, the plan's buffer, or bindings of a part of it.
 */
export function pass(
  { kernel, tensors, workgroups, uniforms, iterations, tooLarge }: SizedKernel,
  buffers: BufferList,
  places: Readonly<Record<string, number | readonly PlanBinding[] | undefined>>,
  multiplications = 0,
): Pass {
  const bindings = tensors.flatMap((name) => {
    const place = places[name];
    if (place === undefined) {
      throw new Error(`Cannot plan: no buffer for ${name} of ${kernel.name}`);
    }
    return typeof place === "number" ? buffers.bindings(place) : place;
  });
  if (tooLarge !== undefined) {
    const name = canonicalName(kernel);
    buffers.refuse(refusal("problem", `${name}: ${tooLarge}, kernels count up to 2^32`));
  }
  const grid = foldGrid(workgroups, buffers.limits.maxComputeWorkgroupsPerDimension);
  if (grid === undefined) {
    buffers.refuse(refusal("limit", `${workgroups} workgroups exceed the device's grid`));
  }
  return {
    kernel,
    bindings,
    ...(uniforms === undefined ? {} : { uniforms }),
    grid: grid ?? [1, 1, 1],
    multiplications,
    iterations,
  };
}

/** Buffers of partial results, of what they add up to, and of what the epilogue reads. */
type SumPlaces =
  & { readonly partials: number; readonly result: number }
  & Readonly<
    Record<string, number | undefined>
  >;

/** The pass that sums the partial results of split depth and finishes them. */
export function reducePass(
  shape: ReduceShape,
  epilogue: EpilogueFactory,
  buffers: BufferList,
  places: SumPlaces,
  element: Scalar,
  onto = false,
): Pass {
  const { partials, result } = places;
  const module = buffers.module({ partials, result });
  const kernel = reduceSplitsKernel(module, shape, epilogue, element, onto);
  return pass(kernel, buffers, places);
}

/**
 * The pass that sums the partial results of a range of tiles and finishes them.
 *
 * @param rowIndex As `reduceTilesKernel()` has it.
 */
export function reduceTilesPass(
  shape: TilePartials,
  epilogue: EpilogueFactory,
  buffers: BufferList,
  places: SumPlaces,
  element: Scalar,
  rowIndex?: Parameters<typeof reduceTilesKernel>[4],
): Pass {
  const { partials, result } = places;
  const module = buffers.module({ partials, result });
  const kernel = reduceTilesKernel(module, shape, epilogue, element, rowIndex);
  return pass(kernel, buffers, places);
}

/** A plan, unless its kernels have more bindings than the device, or a software device may cut its loops short. */
export function runnable(
  planned: Planned<Plan>,
  { limits, device }: { readonly limits: DeviceLimits; readonly device?: DeviceModel },
): Planned<Plan> {
  if (isRefusal(planned)) return planned;
  return refuseBindings(planned, limits) ??
    (device?.software ? refuseLongLoops(planned) : undefined) ?? planned;
}

export function refuseBindings(
  { passes }: Pick<Plan, "passes">,
  { maxStorageBuffersPerShaderStage: most }: DeviceLimits,
): Refusal | undefined {
  const one = passes.find(({ bindings }) => bindings.length > most);
  return one &&
    refusal(
      "limit",
      `kernel ${one.kernel.name} binds ${one.bindings.length} storage buffers, ` +
        `the device's maxStorageBuffersPerShaderStage is ${most}`,
    );
}

/**
 * The steps of a convolution's epilogue; `rowIndex` turns a row of the product into a channel.
 *
 * @param side Which side of the product the channels are.
 */
export function convEpilogue(
  { epilogue: { bias, activation, scale, zeroPoint }, ...choice }: ElementChoice & {
    readonly epilogue: Epilogue;
  },
  side: "rows" | "columns" = "rows",
): EpilogueFactory {
  const types = elementsOf(choice);
  return (module, _width, rowIndex) => [
    ...(bias ? [biasStep(module, side, WHOLE, rowIndex, biasOf(types))] : []),
    ...(activation === "none" ? [] : [
      activationStep(module, activation, sumOf(types), {
        side,
        index: rowIndex,
        element: biasOf(types),
      }),
    ]),
    ...(scale === undefined ? [] : [
      quantizeStep(
        module,
        scale === "channel" ? { split: WHOLE, index: rowIndex } : scale,
        choice.outDtype === "u8" ? "u8" : "i8",
        zeroPoint,
      ),
    ]),
  ];
}

/** The request for the bare sums of one with int8 results. */
export function sumsRequest(request: PlanRequest): PlanRequest {
  return { ...request, outDtype: "i32", epilogue: NO_EPILOGUE };
}

/** The pass that finishes sums and stores them as int8. */
export function quantizePass(
  request: PlanRequest,
  { buffers, ends }: ProblemBuffers,
  sums: number,
  result: number,
): Pass {
  const { problem } = request;
  const shape = { elements: resultElements(problem), channels: problem.outChannels };
  const module = buffers.module({ sums, result });
  const kernel = finishSumsKernel(module, shape, convEpilogue(request), "i8");
  return pass(kernel, buffers, { sums, result, ...ends });
}

/** Microseconds of the same: sums in i32 are read, int8 written. */
export function quantizeTime(request: PlanRequest): number {
  const device = deviceOf(request);
  return copyTime(5 * resultElements(request.problem), device.rates.stream, device);
}

/** The buffers of a product in halves: words of marks, and where they have them flags of results. */
interface SplitPlaces {
  readonly marks: number;
  readonly flags?: number;
}

export function clearMarksPass(buffers: BufferList, { marks }: SplitPlaces, words: number): Pass {
  return pass(clearMarksKernel(buffers.module({}), words), buffers, { marks });
}

/** Finds the largest values of a tensor, a buffer; no pass where there are none. */
export function maximaPasses(
  buffers: BufferList,
  { marks }: SplitPlaces,
  shape: SplitMaxima,
  tensor: number,
): Pass[] {
  if ([...shape.keys, ...shape.rest].some(({ count }) => count === 0)) return [];
  const kernel = splitMaximaKernel(buffers.module({ tensor }), shape);
  return [pass(kernel, buffers, { tensor, marks })];
}

/** Splits an operand, a buffer, into halves, another. */
export function splitHalvesPass(
  buffers: BufferList,
  places: SplitPlaces,
  shape: SplitHalves,
  operand: number,
  halves: number,
): Pass {
  const kernel = splitHalvesKernel(buffers.module({ operand, halves }), shape);
  return pass(kernel, buffers, { operand, halves, ...places });
}

import { finishSumsKernel } from "../kernels/bytes.ts";
import type { SizeMode } from "../kernels/module.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import { convEpilogue } from "./conv_epilogue.ts";
import { deviceOf } from "./device/h200.ts";
import { moveTime, passTime } from "./device/model.ts";
import { pass } from "./passes.ts";
import type { Pass } from "./plan.ts";
import type { PlanRequest } from "./request.ts";
import { type BufferList, resultElements } from "./tensors.ts";

/** The request for the bare sums of one with int8 results. */
export function sumsRequest(request: PlanRequest): PlanRequest {
  return { ...request, outDtype: "i32", epilogue: NO_EPILOGUE };
}

/** The pass that finishes sums and stores them as int8. */
export function quantizePass(
  request: PlanRequest,
  mode: SizeMode,
  buffers: BufferList,
  places: {
    readonly sums: number;
    readonly result: number;
    readonly bias: number | undefined;
    readonly scale: number | undefined;
  },
): Pass {
  const { problem, limits } = request;
  const shape = { elements: resultElements(problem), channels: problem.outChannels };
  const splits = { sums: buffers.split(places.sums), result: buffers.split(places.result) };
  const kernel = finishSumsKernel(shape, mode, convEpilogue(request), splits, "i8");
  return pass(kernel, buffers, places, limits);
}

/** Microseconds of the same: sums in i32 are read, int8 written. */
export function quantizeTime(request: PlanRequest): number {
  const device = deviceOf(request);
  return passTime(0, moveTime(5 * resultElements(request.problem), device.rates.stream), device);
}

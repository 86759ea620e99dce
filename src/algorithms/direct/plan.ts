import { directKernel } from "../../kernels/direct.ts";
import { foldGrid, type SizeMode, WHOLE } from "../../kernels/module.ts";
import {
  accumulationLength,
  type ConvTensor,
  directFlops,
  operandTensors,
  resultTensor,
} from "../../problem/conv_problem.ts";
import { NO_EPILOGUE } from "../../problem/epilogue.ts";
import type { Plan } from "../plan.ts";
import type { PlanRequest } from "../request.ts";
import { pass, reducePass } from "../split_k.ts";
import { problemBuffers, resultElements } from "../tensors.ts";

// lavapipe stops a loop after 65,535 iterations without a word.
const MOST_TERMS = 60_000;

/** Plans the direct algorithm: works for every problem. */
export function planDirect(request: PlanRequest, mode: SizeMode): Plan {
  const { problem } = request;
  const { buffers, tensor, bias } = problemBuffers(request);
  const elements = resultElements(problem);
  const splits = Math.max(1, Math.ceil(accumulationLength(problem) / MOST_TERMS));
  const [left, right] = operandTensors(problem.op);
  const result = tensor[resultTensor(problem.op)];
  const partials = splits > 1
    ? buffers.add("partial results", "workspace", splits * elements)
    : result;
  const split = { input: WHOLE, filter: WHOLE, output: WHOLE };
  for (const which of [left, right] satisfies ConvTensor[]) {
    split[which] = buffers.split(tensor[which]);
  }
  split[resultTensor(problem.op)] = buffers.split(partials);
  const epilogue = splits > 1 ? NO_EPILOGUE : request.epilogue;
  const kernel = directKernel(
    { problem, layout: request.layout, filterLayout: request.filterLayout, splits, mode },
    epilogue,
    split,
  );
  const multiplications = directFlops(problem) / 2;
  const main = pass(
    kernel,
    [
      buffers.bindings(tensor[left]),
      buffers.bindings(tensor[right]),
      buffers.bindings(partials),
      epilogue.bias && bias !== undefined ? buffers.bindings(bias) : [],
    ],
    foldGrid(
      Math.ceil(elements * splits / 64),
      request.limits.maxComputeWorkgroupsPerDimension,
    ),
    multiplications,
  );
  const passes = splits > 1
    ? [main, reducePass(request, mode, buffers, { partials, result, bias }, splits)]
    : [main];
  return {
    kernel: kernel.kernel.name.replace(/\.[0-9a-f]{8}$/, ""),
    algorithm: "direct",
    buffers: buffers.list,
    passes: elements === 0 ? [] : passes,
    workspaceBytes: buffers.workspaceBytes(),
    multiplications,
    notes: [`one thread for each of ${elements} results, ${accumulationLength(problem)} products`],
  };
}

/** The user's WGSL that `wgconv verify --kernel` names. */
import { ownAlgorithm, planOwnGemm } from "../algorithms/own_kernel/own_kernel.ts";
import { isRefusal } from "../algorithms/refusal.ts";
import { registerAlgorithm } from "../algorithms/registry.ts";
import { openDevice } from "../gpu/device.ts";
import { readNpy, writeNpy } from "../npy/mod.ts";
import { convSubject } from "../run/conv_subject.ts";
import { gpuExecutor, gpuPlanning } from "../run/executor.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import { runPlan } from "../run/run_plan.ts";
import type { Subject } from "../run/subject.ts";
import { tensor } from "../tensor/tensor.ts";
import type { Asked } from "../verify/problems.ts";
import type { ForeignKernel } from "../verify/worker.ts";
import type { Program } from "./fuzz_program.ts";
import type { GpuChoice } from "./gpu_choice.ts";
import { readOwnKernel } from "./own_kernel.ts";

/**
 * Opens the device for a kernel of a file, which is then asked as a program is.
 *
 * @throws {UnsupportedError} where there is no device, or it lacks what the kernel enables.
 */
export async function ownProgram(
  path: string,
  { backend, adapter }: GpuChoice,
): Promise<Program> {
  const own = readOwnKernel(path);
  using stack = new DisposableStack();
  const planning = own.op === "gemm" ? {} : { algorithm: own.name };
  if (own.op !== "gemm") stack.use(registerAlgorithm(ownAlgorithm(own)));
  const features = own.passes.flatMap((pass) => pass.features);
  const half = own.dtype === "f16" ? ["shader-f16"] : [];
  const gpu = await openDevice({ backend, adapter, features: [...features, ...half] });
  const { device } = stack.use(gpuExecutor(gpu));
  const subjectOf = (asked: Asked): Subject => {
    const { dtype, outDtype = dtype } = own;
    return "conv" in asked
      ? convSubject({ ...asked.conv, dtype, outDtype })
      : gemmSubject(asked.gemm, { dtype, outDtype }, (request) => planOwnGemm(own, request));
  };
  const kernel: ForeignKernel = {
    async ask({ asked, words }) {
      const subject = subjectOf(asked);
      const plan = subject.planner.plan(gpuPlanning(gpu, planning));
      if (isRefusal(plan)) return { unsupported: plan.text };
      const operands = Object.fromEntries(
        await Promise.all(subject.operands.map(async ({ role }) => {
          const { data } = await readNpy(words[role === "output" ? "grad_output" : role]!);
          return [role, data];
        })),
      );
      const { result } = await runPlan(gpu, plan, operands, subject.result, 1);
      const { dtype, shape } = subject.result;
      await writeNpy(words.output!, tensor(dtype, shape, result));
      return {};
    },
    close: () => Promise.resolve(),
  };
  const kept = stack.move();
  return { name: own.name, device, open: () => kernel, [Symbol.dispose]: () => kept.dispose() };
}

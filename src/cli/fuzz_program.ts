/** The kernel that `--run`, `--worker` or `--kernel` names, as a program. */
import { basename } from "node:path";
import { escape, split } from "shellwords";
import { ownAlgorithm, planOwnGemm } from "../algorithms/own_kernel/own_kernel.ts";
import { isRefusal } from "../algorithms/refusal.ts";
import { registerAlgorithm } from "../algorithms/registry.ts";
import { InputSyntaxError, InputTypeError } from "../errors.ts";
import { openDevice } from "../gpu/device.ts";
import { readNpy, writeNpy } from "../npy/mod.ts";
import type { DeviceDescription } from "../report/environment.ts";
import { convSubject } from "../run/conv_subject.ts";
import { gpuExecutor, gpuPlanning, runPlan } from "../run/executor.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import type { Subject } from "../run/subject.ts";
import { tensor } from "../tensor/tensor.ts";
import type { Asked } from "../verify/problems.ts";
import {
  type ForeignKernel,
  type KernelRequest,
  runCommand,
  startWorker,
} from "../verify/worker.ts";
import type { FuzzOptions } from "./fuzz_options.ts";
import type { GpuChoice } from "./shared_options.ts";
import { readOwnKernel } from "./own_kernel.ts";
import { CHANNEL_OPERANDS } from "../problem/epilogue.ts";

/** Words that stand for something. */
const PLACES = new RegExp(
  `\\{(${
    CHANNEL_OPERANDS.join("|")
  }|input|filter|grad_output|output|a|b|c|residual|problem|op|json)\\}`,
  "g",
);

/** A program as it is started, or a kernel that runs as one. */
interface Program extends Disposable {
  /** What records call it, unless `--provider` does. */
  readonly name: string;
  /** Where it computes, if that is known. */
  readonly device?: DeviceDescription;
  /** Makes one kernel of it; several run at once. */
  open(): ForeignKernel;
}

/**
 * Reads the command.
 *
 * @param needed Names that stand for files which it must hold, unless it holds `{json}`.
 * @throws {SyntaxError | TypeError} where it is none, or may not be started.
 */
export async function programOf(
  { run, worker, shell = false, timeout }: FuzzOptions,
  needed: readonly string[],
): Promise<Program> {
  const text = (run ?? worker)!;
  const words = wordsOf(text);
  if (words[0] === undefined) throw new InputSyntaxError("Cannot verify: the command is empty");
  const name = basename(words[0]);
  const start = shell ? SHELL : words;
  await expectAllowed(start[0]!);
  const ms = timeout * 1000;
  if (worker !== undefined) {
    return {
      name,
      open: () => startWorker(shell ? [...SHELL, text] : words, ms),
      [Symbol.dispose]: () => {},
    };
  }
  if (!text.includes("{json}")) {
    const missing = needed.filter((one) => !text.includes(`{${one}}`));
    if (missing.length > 0) {
      throw new InputTypeError(
        `Cannot verify: --run "${text}" has no {${missing.join("}, {")}}, which stand for files`,
      );
    }
  }
  const argvOf = (of: KernelRequest["words"]) =>
    shell
      ? [...SHELL, text.replaceAll(PLACES, (_, one: string) => forShell(of[one] ?? ""))]
      : words.map((word) => word.replaceAll(PLACES, (_, one: string) => of[one] ?? ""));
  return { name, open: () => runCommand(argvOf, ms), [Symbol.dispose]: () => {} };
}

const IS_WINDOWS = Deno.build.os === "windows";
const SHELL: readonly string[] = IS_WINDOWS ? ["cmd", "/c"] : ["sh", "-c"];

/** A word as the shell takes it for one. */
function forShell(word: string): string {
  return IS_WINDOWS ? `"${word.replaceAll('"', '\\"')}"` : escape(word);
}

/**
 * The words of a command.
 *
 * @param backslashes Whether they stand for themselves, as in Windows' paths.
 * @throws {SyntaxError} where a quote is not closed.
 */
export function wordsOf(text: string, backslashes = IS_WINDOWS): string[] {
  try {
    return backslashes ? plainWords(text) : split(text);
  } catch {
    throw new InputSyntaxError(`Cannot verify: a quote of the command ${text} is not closed`);
  }
}

/** Words between spaces, of which quotes hold some together. */
function plainWords(text: string): string[] {
  const words = text.match(/(?:[^\s"']|"[^"]*"|'[^']*')+/g) ?? [];
  if (words.join("") !== text.replace(/"[^"]*"|'[^']*'|\s+/g, (part) => part.trim())) {
    throw new Error("a quote is not closed");
  }
  return words.map((word) => word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"));
}

async function expectAllowed(command: string): Promise<void> {
  const { state } = await Deno.permissions.query({ name: "run", command });
  if (state === "granted") return;
  throw new InputTypeError(
    "Cannot verify: this wgconv may not start programs; install it with --allow-run, or run it with deno run -A",
  );
}

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

/** The program that `--run` or `--worker` names. */
import { basename } from "node:path";
import { escape, split } from "shellwords";
import { InputSyntaxError, InputTypeError } from "../errors.ts";
import {
  type ForeignKernel,
  type KernelRequest,
  runCommand,
  startWorker,
} from "../verify/worker.ts";
import type { FuzzOptions } from "./fuzz_options.ts";
import type { DeviceDescription } from "../report/environment.ts";

/** Words that stand for something. */
const PLACES = /\{(input|filter|grad_output|bias|output|a|b|c|residual|problem|op|json)\}/g;

/** A program as it is started, or a kernel that runs as one. */
export interface Program extends Disposable {
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
      ? [...SHELL, text.replaceAll(PLACES, (_, one: string) => escape(of[one] ?? ""))]
      : words.map((word) => word.replaceAll(PLACES, (_, one: string) => of[one] ?? ""));
  return { name, open: () => runCommand(argvOf, ms), [Symbol.dispose]: () => {} };
}

const SHELL: readonly string[] = Deno.build.os === "windows" ? ["cmd", "/c"] : ["sh", "-c"];

function wordsOf(text: string): string[] {
  try {
    return split(text);
  } catch {
    throw new InputSyntaxError(`Cannot verify: a quote of the command ${text} is not closed`);
  }
}

async function expectAllowed(command: string): Promise<void> {
  const { state } = await Deno.permissions.query({ name: "run", command });
  if (state === "granted") return;
  throw new InputTypeError(
    "Cannot verify: this wgconv may not start programs; install it with --allow-run, or run it with deno run -A",
  );
}

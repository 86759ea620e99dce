import { CommanderError } from "#cli-types";
import { EXIT, exitCodeOf, isEngineFault, isOutOfHostMemory } from "../errors.ts";
import { checkStdout, isBrokenPipe, printer } from "./output.ts";

/** Ends a command with an exit code after it has said all there is to say, but for `errors`. */
export class ExitCode extends Error {
  override readonly name = "ExitCode";
  constructor(readonly code: number, readonly errors: readonly unknown[] = []) {
    super(`exit ${code}`);
  }
}

/**
 * Ends a command that came to `code`, and could not write all of it where there are `errors`: those are said, and
 * count only where the finding itself is a success.
 *
 * @throws {ExitCode} unless all went well.
 */
export function conclude(code: number, errors: readonly unknown[] = []): void {
  const said = errors.filter((error) => !isBrokenPipe(error));
  const worst = code === EXIT.ok && said.length > 0 ? exitCodeOf(said[0]) : code;
  if (worst !== EXIT.ok) throw new ExitCode(worst, said);
}

/** Takes every step of writing a finding, also after one that failed, and then concludes as {@linkcode conclude}. */
export async function handOver(
  code: number,
  ...steps: readonly (() => Promise<void> | void)[]
): Promise<void> {
  const errors: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      errors.push(error);
    }
  }
  conclude(code, errors);
}

/** Says on stderr what ended a command, in one sentence (with the stack where `debug` is set); its exit code. */
export function sayFailure(error: unknown, debug = false): number {
  if (error instanceof ExitCode) {
    error.errors.forEach((unwritten) => sayFailure(unwritten, debug));
    return error.code;
  }
  if (isBrokenPipe(error)) return EXIT.ok;
  const note = printer("stderr");
  note.line(`wgconv: ${isEngineFault(error) ? "internal error: " : ""}${oneSentence(error)}`);
  if (debug && error instanceof Error && error.stack) note.line(error.stack);
  return exitCodeOf(error);
}

/** Runs a command; gives its exit code. Nothing is thrown: errors are said as {@linkcode sayFailure} does. */
export async function runToEnd(work: () => Promise<void>, debug = false): Promise<number> {
  const codeAfter = async (part: () => Promise<void> | void) => {
    try {
      await part();
      return EXIT.ok;
    } catch (error) {
      if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
      return sayFailure(error, debug);
    }
  };
  const code = await codeAfter(work);
  const written = await codeAfter(checkStdout);
  return code === EXIT.ok ? written : code;
}

/** What an error says, without its class and stack. */
export function oneSentence(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) {
    return oneSentence(error.errors[0]);
  }
  if (isOutOfHostMemory(error)) {
    return `Cannot hold the data in this machine's memory: ${(error as Error).message}`;
  }
  return error instanceof Error ? error.message || error.name : String(error);
}

import { CommanderError } from "#cli-types";
import { EXIT, exitCodeOf, isEngineFault, isOutOfHostMemory } from "../errors.ts";
import { printableMessage } from "../printable.ts";
import { checkStdout, isBrokenPipe, painter, printer } from "./output.ts";

/** Ends a command with an exit code after it has said all there is to say. */
export class ExitCode extends Error {
  override readonly name = "ExitCode";
  constructor(readonly code: number) {
    super(`exit ${code}`);
  }
}

/** What a command writes beside its report: what fails is said at once, and hides nothing that it found. */
export interface Writes {
  /** Says an error of a write; one of the same words only once. */
  failed(error: unknown): void;
  attempt<T>(write: () => Promise<T>): Promise<T | undefined>;
  /**
   * Ends the command.
   *
   * @param code Of what it found; of the first write that failed where that is a success.
   * @throws {ExitCode} unless all went well.
   */
  conclude(code: number): void;
}

/** Begins the writes of a command. */
export function commandWrites(): Writes {
  const said = new Set<string>();
  let failure: number = EXIT.ok;
  const failed = (error: unknown) => {
    const sentence = oneSentence(error);
    if (said.has(sentence)) return;
    said.add(sentence);
    const code = sayFailure(error);
    if (failure === EXIT.ok) failure = code;
  };
  return {
    failed,
    async attempt(write) {
      try {
        return await write();
      } catch (error) {
        failed(error);
        return undefined;
      }
    },
    conclude(code) {
      const worst = code === EXIT.ok ? failure : code;
      if (worst !== EXIT.ok) throw new ExitCode(worst);
    },
  };
}

/** Whether `--debug` asks for the stacks of errors. */
let stacks = false;

/** Says on stderr what went wrong, in one sentence; the exit code that goes with it. */
export function sayFailure(error: unknown): number {
  if (error instanceof ExitCode) return error.code;
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (isBrokenPipe(error)) return EXIT.ok;
  const note = printer("stderr");
  const said = `wgconv: ${isEngineFault(error) ? "internal error: " : ""}${oneSentence(error)}`;
  note.painted(
    printableMessage(said).replace(/^wgconv:/, (name) => painter("stderr")("bad", name)),
  );
  if (stacks && error instanceof Error && error.stack) note.line(error.stack);
  return exitCodeOf(error);
}

/** Runs a command; gives its exit code. Nothing is thrown: errors become one sentence on stderr. */
export async function runToEnd(work: () => Promise<unknown>, debug = false): Promise<number> {
  stacks = debug;
  let code: number = EXIT.ok;
  for (const part of [work, checkStdout]) {
    try {
      await part();
    } catch (error) {
      const later = sayFailure(error);
      if (code === EXIT.ok) code = later;
    }
  }
  return code;
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

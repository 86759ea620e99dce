import { isOutOfHostMemory } from "../errors.ts";

/** Ends a command with an exit code after it has said all there is to say. */
export class ExitCode extends Error {
  override readonly name = "ExitCode";
  constructor(readonly code: number) {
    super(`exit ${code}`);
  }
}

/** Whether the reader of our output went away (`wgconv … | head`). */
export function isBrokenPipe(error: unknown): boolean {
  return error instanceof Deno.errors.BrokenPipe;
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

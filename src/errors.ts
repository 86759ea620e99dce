/** Exit codes of the program (DESIGN.md). */
export const EXIT = {
  ok: 0,
  accuracy: 1,
  usage: 2,
  unsupported: 3,
  regression: 4,
  internal: 5,
} as const;

/** No suitable GPU, feature or limit: exit 3. The message names what is missing. */
export class UnsupportedError extends Error {
  override readonly name = "UnsupportedError";
}

/** The device was lost, ran out of memory while running, or reported an error of ours: exit 5. */
export class DeviceError extends Error {
  override readonly name = "DeviceError";
}

/** What a run of the engine out of memory for arrays says. */
const OUT_OF_HOST_MEMORY = /allocation failed|Invalid (typed )?array (buffer )?length/i;

export function isOutOfHostMemory(error: unknown): boolean {
  return error instanceof RangeError && OUT_OF_HOST_MEMORY.test(error.message);
}

/** How our sentences begin, after the name of a file perhaps: what was being done, then what is wrong. */
const SENTENCE = /(^|: )Cannot .+: /s;

/** Whether an error is a fault of ours that the engine found, not what a check of ours refused in the same class. */
export function isEngineFault(error: unknown): boolean {
  if (error instanceof ReferenceError || error instanceof Deno.errors.BadResource) return true;
  return [TypeError, RangeError, SyntaxError].some((kind) => error instanceof kind) &&
    !SENTENCE.test((error as Error).message) && !isOutOfHostMemory(error);
}

/**
 * The exit code an error leads to. The built-in classes that our own checks throw (`TypeError` shapes
 * and types, `RangeError` values, `SyntaxError` text) and the operating system's errors about files
 * are the user's to mend: 2.
 */
export function exitCodeOf(error: unknown): number {
  if (error instanceof UnsupportedError) return EXIT.unsupported;
  if (error instanceof DeviceError) return EXIT.internal;
  if (isOutOfHostMemory(error)) return EXIT.unsupported;
  if (isEngineFault(error)) return EXIT.internal;
  // The system's errors without a class of their own: a full disk, a name that is too long.
  if (error instanceof Error && "code" in error && /^E[A-Z0-9]+$/.test(`${error.code}`)) {
    return EXIT.usage;
  }
  const usage = [TypeError, RangeError, SyntaxError, ...Object.values(Deno.errors)];
  return usage.some((kind) => error instanceof kind) ? EXIT.usage : EXIT.internal;
}

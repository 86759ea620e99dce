/** Exit codes of the program (DESIGN.md). */
export const EXIT = {
  ok: 0,
  accuracy: 1,
  usage: 2,
  unsupported: 3,
  regression: 4,
  internal: 5,
} as const;

/** What they mean, as help and docs say it. */
export const EXIT_HELP =
  `Exit codes: 0 ok, 1 accuracy failed, 2 usage, bad input or nothing ran, 3 no suitable GPU,
feature or limit, 4 performance regression, 5 device lost or internal error.`;

/**
 * Input of the wrong type or shape. Whoever gave it can mend it: exit 2, as the two classes that follow. The built-in classes
 * that these extend are left to what the engine finds, which is a fault of the program.
 */
export class InputTypeError extends TypeError {}

/** An input's value that is out of its range, or does not go with others. */
export class InputRangeError extends RangeError {}

/** Text that is not what it should be. */
export class InputSyntaxError extends SyntaxError {}

const INPUT_ERRORS = [InputTypeError, InputRangeError, InputSyntaxError] as const;

/** Whether an error is of the input. */
export function isInputError(error: unknown): error is Error {
  return INPUT_ERRORS.some((kind) => error instanceof kind);
}

/** An error of the same class with a place, a file or a line, before its sentence; anything else as it is. */
export function placedError(error: unknown, place: string): unknown {
  const kind = INPUT_ERRORS.find((one) => error instanceof one);
  return kind === undefined ? error : new kind(`${place}: ${(error as Error).message}`);
}

/**
 * What a system's error says, without its number, the call and the path, which may be a temporary's: in our words where
 * the system's would not say what to look at.
 */
export function systemWords(error: Error): string {
  if (error instanceof Deno.errors.IsADirectory) return "it is a directory";
  if (error instanceof Deno.errors.NotADirectory) return "a part of its path is no directory";
  if (error instanceof Deno.errors.AlreadyExists) return "a file has its name";
  const said = error.message.split(": ")[0]!.replace(/ \(os error \d+\)$/, "");
  if (/^Too many levels of symbolic links/.test(said)) return "its links lead in a circle";
  return said.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase());
}

/**
 * No suitable GPU, feature or limit: exit 3. The message names what is missing.
 * @example
 * ```ts
 * import { openDevice, UnsupportedError } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * await assert.rejects(openDevice({ adapter: "no such GPU" }), UnsupportedError);
 * ```
 */
export class UnsupportedError extends Error {
  /** As errors print it. */
  override readonly name = "UnsupportedError";
}

/**
 * The device was lost, ran out of memory while running, or reported an error of ours: exit 5.
 * @example
 * ```ts
 * import { convolve, DeviceError, openDevice, parseDescriptor } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openDevice();
 * gpu.device.destroy();
 * const operands = { input: new Float32Array(4), filter: new Float32Array(1) };
 * await assert.rejects(convolve(gpu, parseDescriptor("mb1ic1ih2oc1kh1"), operands), DeviceError);
 * ```
 */
export class DeviceError extends Error {
  /** As errors print it. */
  override readonly name = "DeviceError";
}

/** What a run of the engine out of memory for arrays says. */
const OUT_OF_HOST_MEMORY = /allocation failed|Invalid (typed )?array (buffer )?length/i;

/** Whether the host, not the device, had no memory left for an array. */
export function isOutOfHostMemory(error: unknown): boolean {
  return error instanceof RangeError && OUT_OF_HOST_MEMORY.test(error.message);
}

/** Whether an error is a fault of ours that the engine found. */
export function isEngineFault(error: unknown): boolean {
  if (error instanceof ReferenceError || error instanceof Deno.errors.BadResource) return true;
  return [TypeError, RangeError, SyntaxError].some((kind) => error instanceof kind) &&
    !isInputError(error) && !isOutOfHostMemory(error);
}

/**
 * The exit code an error leads to: 2 where it is of the input, or the operating system's about a file; 3 where the device,
 * or memory, does not suffice; 5 for anything else.
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
  const mendable = isInputError(error) ||
    Object.values(Deno.errors).some((kind) => error instanceof kind);
  return mendable ? EXIT.usage : EXIT.internal;
}

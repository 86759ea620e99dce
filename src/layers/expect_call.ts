import { BALANCES, MATHS } from "../algorithms/request.ts";
import { InputRangeError, InputTypeError } from "../errors.ts";
import { expectObject, expectWord, said } from "../expect.ts";
import { GpuDevice } from "../gpu/gpu_device.ts";
import { FILTER_LAYOUTS, LAYOUTS } from "../tensor/layout.ts";

const WORDS = { balance: BALANCES, math: MATHS, layout: LAYOUTS, filterLayout: FILTER_LAYOUTS };
const TEXTS = ["algorithm", "policy", "tile", "pair"];
const NUMBERS = ["maxWorkspaceBytes", "maxWorkspaceShare", "maxBoundRatio"];

/**
 * Refuses what is no device, or no options, before anything looks into them.
 *
 * @param words Options that are words, beside those of all calls.
 * @throws {TypeError | RangeError} which says what was expected.
 */
export function expectCall(
  doing: string,
  gpu: unknown,
  options: object,
  words: Readonly<Record<string, readonly string[]>>,
): void {
  if (!(gpu instanceof GpuDevice)) {
    throw new InputTypeError(
      `${doing}: the device is ${said(gpu)}, expected what openDevice() gives; ` +
        "openDevice({ device }) opens one on a GPUDevice",
    );
  }
  expectObject(doing, "options", options, "options");
  const given: Readonly<Record<string, unknown>> = { ...options };
  for (const [name, choices] of Object.entries({ ...WORDS, ...words })) {
    if (given[name] !== undefined) expectWord(doing, name, given[name], choices);
  }
  for (const name of TEXTS) {
    if (given[name] === undefined || typeof given[name] === "string") continue;
    throw new InputTypeError(`${doing}: ${name} is ${said(given[name])}, expected a word`);
  }
  for (const name of NUMBERS) {
    const value = given[name];
    if (value === undefined || typeof value === "number" && value >= 0) continue;
    const kind = typeof value === "number" ? InputRangeError : InputTypeError;
    throw new kind(`${doing}: ${name} is ${said(value)}, expected a number >= 0`);
  }
}

/** @throws {TypeError | RangeError} where a number of runs is none. */
export function expectRuns(doing: string, name: string, count: unknown): void {
  if (Number.isSafeInteger(count) && (count as number) >= 1) return;
  const kind = typeof count === "number" ? InputRangeError : InputTypeError;
  throw new kind(`${doing}: ${name} is ${said(count)}, expected a whole number >= 1`);
}

import { BALANCES, SCHEDULE_FIELDS, SCHEDULE_NUMBERS } from "../algorithms/schedule.ts";
import { MATHS } from "../algorithms/request.ts";
import { InputRangeError, InputTypeError } from "../errors.ts";
import { expectObject, expectWord, said } from "../expect.ts";
import { GpuDevice } from "../gpu/gpu_device.ts";
import { FILTER_LAYOUTS, LAYOUTS } from "../tensor/layout.ts";

const WORDS = { math: MATHS, layout: LAYOUTS, filterLayout: FILTER_LAYOUTS };
const TEXTS = ["algorithm", "tile", "pair"];
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
  expectSchedule(doing, given.schedule);
  const outside = SCHEDULE_FIELDS.find((name) => given[name] !== undefined);
  if (outside !== undefined) {
    throw new InputTypeError(
      `${doing}: ${outside} is a field of the schedule: options.schedule.${outside}`,
    );
  }
  for (const name of NUMBERS) {
    const value = given[name];
    if (value === undefined || typeof value === "number" && value >= 0) continue;
    const kind = typeof value === "number" ? InputRangeError : InputTypeError;
    throw new kind(`${doing}: ${name} is ${said(value)}, expected a number >= 0`);
  }
}

/** What types of values are called. */
const KINDS: Readonly<Record<string, string>> = {
  string: "a word",
  number: "a number",
  boolean: "true or false",
};

/** Refuses what is no schedule; numbers are looked into by planners. */
function expectSchedule(doing: string, schedule: unknown): void {
  if (schedule === undefined) return;
  expectObject(doing, "schedule", schedule, "how kernels run");
  for (const [name, value] of Object.entries(schedule as object)) {
    expectWord(doing, "a field of the schedule", name, SCHEDULE_FIELDS);
    if (value === undefined) continue;
    if (name === "balance") expectWord(doing, name, value, BALANCES);
    const expected = name === "policy" || name === "balance"
      ? "a word"
      : SCHEDULE_NUMBERS.includes(name)
      ? "a number"
      : "true or false";
    if (KINDS[typeof value] === expected) continue;
    throw new InputTypeError(`${doing}: ${name} is ${said(value)}, expected ${expected}`);
  }
}

/** @throws {TypeError | RangeError} where a number of runs is none. */
export function expectRuns(doing: string, name: string, count: unknown): void {
  if (Number.isSafeInteger(count) && (count as number) >= 1) return;
  const kind = typeof count === "number" ? InputRangeError : InputTypeError;
  throw new kind(`${doing}: ${name} is ${said(count)}, expected a whole number >= 1`);
}

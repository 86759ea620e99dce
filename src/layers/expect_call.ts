import { BALANCES, SCHEDULE_FIELDS, SCHEDULE_NUMBERS } from "../algorithms/schedule.ts";
import { MATHS } from "../algorithms/request.ts";
import { InputRangeError, InputTypeError } from "../errors.ts";
import { expectFields, expectObject, expectWord, said } from "../expect.ts";
import { GpuDevice } from "../gpu/gpu_device.ts";

/** What an option may be: one of some words, or what is said; planners look into objects. */
type OptionKind = readonly string[] | "a word" | "a number" | "true or false" | "an object";

/** Options of all that is planned, beside the element types. */
export const PLANNING = {
  math: MATHS,
  schedule: "an object",
  matrixUnits: "an object",
  device: "an object",
  tuning: "an object",
} as const;

/**
 * Refuses what is no device, or no options, before anything looks into them.
 *
 * @param kinds The call's options.
 * @throws {TypeError | RangeError} which says what was expected.
 */
export function expectCall(
  doing: string,
  gpu: unknown,
  options: object,
  kinds: Readonly<Record<string, OptionKind>>,
): void {
  if (!(gpu instanceof GpuDevice)) {
    throw new InputTypeError(
      `${doing}: the device is ${said(gpu)}, expected what openDevice() gives; ` +
        "openDevice({ device }) opens one on a GPUDevice",
    );
  }
  expectObject(doing, "options", options, "options");
  const given: Readonly<Record<string, unknown>> = { ...options };
  const outside = SCHEDULE_FIELDS.find((name) => given[name] !== undefined);
  if (outside !== undefined) {
    throw new InputTypeError(
      `${doing}: ${outside} is a field of the schedule: options.schedule.${outside}`,
    );
  }
  expectFields(doing, "option", given, Object.keys(kinds), "");
  for (const [name, kind] of Object.entries(kinds)) {
    const value = given[name];
    if (value === undefined) continue;
    if (typeof kind !== "string") expectWord(doing, name, value, kind);
    else expectKind(doing, name, value, kind);
    if (kind !== "a number" || (value as number) >= 0) continue;
    throw new InputRangeError(`${doing}: ${name} is ${said(value)}, expected a number >= 0`);
  }
  expectSchedule(doing, given.schedule);
}

/** What types of values are called. */
const KINDS: Readonly<Record<string, string>> = {
  string: "a word",
  number: "a number",
  boolean: "true or false",
  object: "an object",
};

function expectKind(doing: string, name: string, value: unknown, expected: string): void {
  if (value !== null && KINDS[typeof value] === expected) return;
  throw new InputTypeError(`${doing}: ${name} is ${said(value)}, expected ${expected}`);
}

/** Refuses what is no schedule; numbers are looked into by planners. */
function expectSchedule(doing: string, schedule: unknown): void {
  if (schedule === undefined) return;
  expectObject(doing, "schedule", schedule, "how kernels run");
  expectFields(doing, "field of schedule", schedule as object, SCHEDULE_FIELDS);
  for (const [name, value] of Object.entries(schedule as object)) {
    if (value === undefined) continue;
    if (name === "balance") expectWord(doing, name, value, BALANCES);
    const expected = name === "policy" || name === "balance"
      ? "a word"
      : SCHEDULE_NUMBERS.includes(name)
      ? "a number"
      : "true or false";
    expectKind(doing, name, value, expected);
  }
}

/** @throws {TypeError | RangeError} where a number of runs is none. */
export function expectRuns(doing: string, name: string, count: unknown): void {
  if (Number.isSafeInteger(count) && (count as number) >= 1) return;
  const kind = typeof count === "number" ? InputRangeError : InputTypeError;
  throw new kind(`${doing}: ${name} is ${said(count)}, expected a whole number >= 1`);
}

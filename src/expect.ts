/** What is said of a value of the wrong type: programs without types reach these, web pages above all. */
import { InputRangeError, InputTypeError } from "./errors.ts";

/** A value in a message: words in quotes, arrays in brackets, other objects by their class. */
export function said(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(said).join(",")}]`;
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null) return String(value);
  return `an object of ${value.constructor?.name ?? "no class"}`;
}

/**
 * Refuses what is none of some words.
 *
 * @throws {RangeError} for another word, {TypeError} for what is no word.
 */
export function expectWord(
  doing: string,
  what: string,
  value: unknown,
  words: readonly string[],
): void {
  if (typeof value === "string" && words.includes(value)) return;
  const kind = typeof value === "string" ? InputRangeError : InputTypeError;
  throw new kind(`${doing}: ${what} is ${said(value)}, expected ${words.join(", ")}`);
}

/**
 * Refuses what is given and nothing reads.
 *
 * @param names What is read.
 * @param others What is said of these; empty where there are more.
 * @throws {TypeError} that names it.
 */
export function expectFields(
  doing: string,
  what: string,
  given: object,
  names: readonly string[],
  others: string = `, only ${names.join(", ")}`,
): void {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || names.includes(name)) continue;
    throw new InputTypeError(`${doing}: nothing reads the ${what} ${name}${others}`);
  }
}

/** @throws {TypeError} for what is no array. */
export function expectArray(
  doing: string,
  what: string,
  value: unknown,
  of = "numbers, one a spatial axis",
): void {
  if (Array.isArray(value)) return;
  throw new InputTypeError(`${doing}: ${what} is ${said(value)}, expected an array of ${of}`);
}

/** @throws {TypeError} for what is no object, or an array. */
export function expectObject(doing: string, what: string, value: unknown, of: string): void {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return;
  throw new InputTypeError(`${doing}: ${what} is ${said(value)}, expected an object of ${of}`);
}

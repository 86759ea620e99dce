import { InvalidArgumentError } from "#cli-types";
import { parseSizes } from "./values.ts";

/** Parses the shape of a tensor: sizes, or `scalar` for none. */
export function parseShape(text: string): number[] {
  return text === "scalar" ? [] : parseSizes(text);
}

/** Parses a number >= 0 such as `1e-5`. */
export function parseNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || Number.isNaN(value) || value < 0) {
    throw new InvalidArgumentError("expected a number >= 0 such as 1e-5.");
  }
  return value;
}

/** Parses two numbers, the smaller first, such as `0,1`. */
export function parseRange(text: string): [min: number, max: number] {
  const parts = text.split(",");
  const [min, max] = parts.map((part) => part.trim() === "" ? NaN : Number(part));
  if (parts.length !== 2 || !(min! < max!) || !Number.isFinite(max! - min!)) {
    throw new InvalidArgumentError("expected two numbers, the smaller first, such as 0,1.");
  }
  return [min!, max!];
}

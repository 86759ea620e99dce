import { InvalidArgumentError } from "#cli-types";
import { suggestion } from "../problem/closest.ts";

/** Parses `3,3` or `3x3`: whole numbers >= 0. */
export function parseSizes(text: string): number[] {
  return text.split(/[,x]/).map((part) => {
    if (!/^\s*\d+\s*$/.test(part)) {
      throw new InvalidArgumentError(`expected whole numbers >= 0 such as 3 or 3,3.`);
    }
    return Number(part);
  });
}

/** Makes a parser of one whole number of at least `minimum`. */
export function wholeNumber(minimum: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < minimum) {
      throw new InvalidArgumentError(`expected a whole number >= ${minimum}.`);
    }
    return value;
  };
}

/** Parses a finite number above 0. */
export function positiveNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value <= 0) {
    throw new InvalidArgumentError("expected a number > 0.");
  }
  return value;
}

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
};

/** Parses `64MB`, `1.5GiB` or `4096`: bytes. */
export function parseBytes(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim());
  const unit = match === null ? undefined : UNITS[match[2]!.toLowerCase()];
  if (match === null || unit === undefined) {
    throw new InvalidArgumentError("expected bytes such as 65536, 64MB or 1GiB.");
  }
  return Math.floor(Number(match[1]) * unit);
}

/** Makes a parser of one of `choices`, some of which have other names too. */
export function oneOf<T extends string>(
  choices: readonly T[],
  aliases: Readonly<Record<string, string>> = {},
): (text: string) => T {
  return (text) => {
    const name = Object.hasOwn(aliases, text) ? aliases[text] : text;
    const found = choices.find((choice) => choice === name);
    if (found !== undefined) return found;
    throw new InvalidArgumentError(`expected ${choices.join(", ")}${suggestion(text, choices)}`);
  };
}

/** Makes a parser of a comma list of `choices`; `all` stands for every one. */
export function someOf<T extends string>(
  choices: readonly T[],
  aliases: Readonly<Record<string, string>> = {},
): (text: string) => T[] {
  const one = oneOf(choices, aliases);
  return (text) => text === "all" ? [...choices] : text.split(",").map((part) => one(part.trim()));
}

/** Gathers the values of an option that may be given several times. */
export function gather(text: string, gathered: readonly string[] | undefined): string[] {
  return [...gathered ?? [], text];
}

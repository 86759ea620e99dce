import { compilePattern, type Pattern } from "../bench/pattern.ts";
import { CONV_POLICY_NAMES, isTile, PRODUCT_POLICY_NAMES } from "../algorithms/choices.ts";
import { InvalidArgumentError } from "#cli-types";
import { InputTypeError } from "../errors.ts";
import { PADDING_MODES, type PaddingMode } from "../problem/padding.ts";
import { meant } from "./other_words.ts";

/** Parses `3,3` or `3x3`: whole numbers >= 0. */
export function parseSizes(text: string): number[] {
  return text.split(/[,x]/).map((part) => {
    if (!/^\s*\d+\s*$/.test(part)) {
      throw new InvalidArgumentError(`expected whole numbers >= 0 such as 3 or 3,3.`);
    }
    return Number(part);
  });
}

/** Parses `same`, `same-lower`, `valid`, or sizes as {@linkcode parseSizes} does. */
function paddingValues(text: string): number[] | PaddingMode {
  const word = text.trim().toLowerCase();
  const mode = PADDING_MODES.find((one) => one === word);
  if (mode !== undefined) return mode;
  if (/^[\d\s,x]+$/.test(text)) return parseSizes(text);
  throw new InvalidArgumentError(
    `expected ${PADDING_MODES.join(", ")}, or whole numbers >= 0 such as 1 or 1,2` +
      meant(text, PADDING_MODES),
  );
}

/** {@linkcode paddingValues} that tells completions its words; numbers go too. */
export const parsePadding = Object.assign(paddingValues, {
  choices: PADDING_MODES,
  list: false,
});

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

function autoOrCount(text: string): number | "auto" {
  if (text.toLowerCase() === "auto") return "auto";
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < 1) {
    throw new InvalidArgumentError("expected auto or a whole number >= 1.");
  }
  return value;
}

/** {@linkcode autoOrCount} that tells completions its word. */
export const parseSegments = Object.assign(autoOrCount, { choices: ["auto"], list: false });

/** Parses a finite number above 0. */
export function positiveNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value <= 0) {
    throw new InvalidArgumentError("expected a number > 0.");
  }
  return value;
}

/** Parses a number that is not less than `minimum`. */
export function leastNumber(minimum: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isFinite(value) || value < minimum) {
      throw new InvalidArgumentError(`expected a number >= ${minimum}.`);
    }
    return value;
  };
}

/** Parses `5%`, `5` (percent) or `0.05%`. */
export function fraction(text: string): number {
  const value = Number(text.replace(/%$/, "")) / 100;
  if (!/^\d+(\.\d+)?%?$/.test(text) || !Number.isFinite(value)) {
    throw new InvalidArgumentError("expected a percentage such as 5%.");
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
    throw new InvalidArgumentError(
      "expected bytes such as 65536, 64MB or 1GiB, or a share such as 0.5x.",
    );
  }
  return Math.floor(Number(match[1]) * unit);
}

/** Most workspace, as bytes or as a share of the tensors. */
export type WorkspaceLimit = { readonly maxWorkspaceBytes: number } | {
  readonly maxWorkspaceShare: number;
};

/** Reads bytes, or a share of a problem's tensors such as `0.5x`. */
export function parseWorkspace(text: string): WorkspaceLimit {
  const share = /^(\d+(?:\.\d+)?)\s*x$/i.exec(text.trim());
  return share === null
    ? { maxWorkspaceBytes: parseBytes(text) }
    : { maxWorkspaceShare: Number(share[1]) };
}

/** A parser that tells what it accepts, for completions: one of `choices`, or a comma list of them. */
export interface ChoiceParser<T> {
  (text: string): T;
  readonly choices: readonly string[];
  readonly list: boolean;
}

/** Whether a parser is one of {@linkcode oneOf} or {@linkcode someOf}. */
export function isChoiceParser(parser: unknown): parser is ChoiceParser<unknown> {
  return typeof parser === "function" && "choices" in parser && "list" in parser;
}

const MOST_LISTED = 12;
/** Choices that stand for the others where there are more. */
const SHOWN = 4;

/**
 * What is expected in place of a word: all choices, or some of many, those that hold the word first, and where all are listed.
 *
 * @param where What lists them: help of the command unless it is given.
 */
function expectedChoices(
  word: string,
  choices: readonly string[],
  where = "--help",
): string {
  if (choices.length <= MOST_LISTED) return choices.join(", ");
  const lower = word.trim().toLowerCase();
  const holding = lower.length < 2 ? [] : choices.filter((one) => one.includes(lower));
  const shown = [...new Set([...holding, ...choices])].slice(0, SHOWN);
  return `${shown.join(", ")} or another that ${where} lists`;
}

/** Makes a parser of one of `choices`, in letters of any case, some of which have other names too. */
export function oneOf<T extends string>(
  choices: readonly T[],
  aliases: Readonly<Record<string, string>> = {},
): ChoiceParser<T> {
  const parse = (text: string): T => {
    const lower = text.toLowerCase();
    const name = Object.hasOwn(aliases, lower) ? aliases[lower] : lower;
    const found = choices.find((choice) => choice === name);
    if (found !== undefined) return found;
    throw new InvalidArgumentError(
      `expected ${expectedChoices(text, choices)}${meant(text, choices)}`,
    );
  };
  return Object.assign(parse, { choices, list: false });
}

/** Makes a parser of a comma list of different `choices`; `all` stands for every one. */
export function someOf<T extends string>(
  choices: readonly T[],
  aliases: Readonly<Record<string, string>> = {},
): ChoiceParser<T[]> {
  const one = oneOf(choices, aliases);
  const parse = (text: string) => {
    if (text.toLowerCase() === "all") return [...choices];
    const words = text.split(",").map((part) => part.trim());
    const found = words.map((word) => {
      try {
        return one(word);
      } catch (error) {
        const single = words.length > 1 && error instanceof InvalidArgumentError;
        throw single ? new InvalidArgumentError(`"${word}" is none, ${error.message}`) : error;
      }
    });
    const twice = found.find((word, place) => found.indexOf(word) < place);
    if (twice !== undefined) throw new InvalidArgumentError(`"${twice}" is there twice`);
    return found;
  };
  return Object.assign(parse, { choices: [...choices, "all"], list: true });
}

/** Parses a regular expression. */
export function parsePattern(text: string): Pattern {
  try {
    return compilePattern(text);
  } catch (error) {
    throw error instanceof SyntaxError ? new InvalidArgumentError(error.message) : error;
  }
}

/** Parses `2/4`: part 2 of 4. */
export function parseShard(text: string): { index: number; count: number } {
  const match = /^(\d{1,6})\/(\d{1,6})$/.exec(text);
  const [index, count] = [Number(match?.[1]), Number(match?.[2])];
  if (match === null || index < 1 || index > count) {
    throw new InvalidArgumentError("expected i/n with i from 1 to n, such as 2/4.");
  }
  return { index, count };
}

/** Parses a share of 1: `0.01` or `1%`. */
export function parseShare(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(%?)$/.exec(text.trim());
  const value = Number(match?.[1]) / (match?.[2] === "%" ? 100 : 1);
  if (match === null || value > 1) {
    throw new InvalidArgumentError("expected a share from 0 to 1, such as 0.01 or 1%.");
  }
  return value;
}

/** Parses a list of tiles, whose own commas stand in brackets: `auto,F(2x2,3x3)`. */
export function splitTiles(text: string): string[] {
  return text.split(/,(?![^(]*\))/).map((part) => part.trim());
}

/** Parses the policy of a product: `auto`, `gemv`, a name of the main loop's, or a tile such as `128x32x8_8x4`. */
export function parseProductPolicy(said: string): string {
  const text = said.toLowerCase();
  const names = ["auto", ...PRODUCT_POLICY_NAMES];
  if (names.includes(text) || isTile(text)) return text;
  throw new InvalidArgumentError(
    /^\d+x\d/.test(text)
      ? "expected a tile such as 128x32x8_8x4: rows x columns x depth of a workgroup, rows x " +
        "columns of a thread (up to 256 in all), multiples of 4 that divide the workgroup's, with " +
        "whole warps of 32; or 128x256x32_64x64m: rows x columns of a subgroup, on matrix units"
      : `expected ${expectedChoices(text, names)}, or a tile such as 128x32x8_8x4${
        meant(text, names)
      }`,
  );
}

/** Parses a tile policy: `auto`, a name of the main loop's, or a tile such as `64x32x8_8x8`. */
export function parsePolicy(text: string): string {
  const names = ["auto", ...CONV_POLICY_NAMES];
  const word = text.trim().toLowerCase();
  if (names.includes(word) || /^\d+x\d/.test(word)) return word;
  throw new InvalidArgumentError(
    `expected ${expectedChoices(word, names, "wgconv help gemm")}, or a tile such as 64x32x8_8x8${
      meant(word, names)
    }`,
  );
}

/** Parses a list of tile policies, each as {@linkcode parsePolicy} does. */
export function parsePolicies(text: string): string[] {
  return text.split(",").map(parsePolicy);
}

/** Words between commas, without empty ones. */
export function commaList(text: string): string[] {
  return text.split(",").map((word) => word.trim()).filter((word) => word !== "");
}

/** Makes a parser of a path, or of a word in letters of any case that stands for something else. */
export function pathOr(...words: readonly string[]): (text: string) => string {
  return (text) => words.find((word) => word === text.toLowerCase()) ?? text;
}

/**
 * Reads what a path names.
 *
 * @throws what `read` throws; of a file that is not there, with the word that the path is spelt like.
 */
export function readPathOr<T>(
  words: readonly string[],
  path: string,
  read: (path: string) => T,
): T {
  try {
    return read(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) error.message += meant(path, words);
    throw error;
  }
}

/** Gathers the values of an option that may be given several times. */
export function gather(text: string, gathered: readonly string[] | undefined): string[] {
  return [...gathered ?? [], text];
}

/**
 * The values of `--tag name=value` by their names.
 *
 * @throws {TypeError} for another form, or a name that is given twice.
 */
export function parseTags(
  texts: readonly string[] | undefined,
): Readonly<Record<string, string>> | undefined {
  if (texts === undefined) return undefined;
  const tags = new Map<string, string>();
  for (const text of texts) {
    const [, name = "", value] = /^([\w.-]+)=(.+)$/s.exec(text) ?? [];
    if (value === undefined) {
      throw new InputTypeError(`Cannot tag: --tag is "${text}", expected a name=value`);
    }
    if (tags.has(name)) throw new InputTypeError(`Cannot tag: --tag ${name} is given twice`);
    tags.set(name, value);
  }
  return Object.fromEntries(tags);
}

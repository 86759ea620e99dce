/** Refusals of options that contradict each other, have no effect, or stand alone. */
import type { CommandUnknownOpts } from "#cli-types";
import { InputTypeError } from "../errors.ts";

/**
 * Refuses options that would have no effect.
 *
 * @param given By name: whether each is given.
 * @throws {TypeError} that begins with `why` and names them.
 */
export function refuseOptions(why: string, given: Readonly<Record<string, unknown>>): void {
  const names = Object.entries(given).flatMap(([name, value]) => value ? [`--${name}`] : []);
  if (names.length > 0) throw new InputTypeError(`${why}, ${names.join(", ")} must go`);
}

/**
 * Refuses options that say the same in two ways.
 *
 * @param given By name: whether each is given.
 * @throws {TypeError} that begins with `doing` and names them.
 */
export function refuseTogether(doing: string, given: Readonly<Record<string, unknown>>): void {
  const names = Object.entries(given).flatMap(([name, value]) => value ? [`--${name}`] : []);
  if (names.length < 2) return;
  throw new InputTypeError(`${doing}: ${names.join(" and ")} contradict each other, one must go`);
}

/**
 * Which options a command line has, for {@linkcode refuseOptions}.
 *
 * @param attributes Their attributes, as `filterLayout`.
 */
export function givenOptions(
  command: Pick<CommandUnknownOpts, "getOptionValueSource">,
  attributes: readonly string[],
): Record<string, boolean> {
  return Object.fromEntries(
    attributes.map((name) => [
      name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
      command.getOptionValueSource(name) === "cli",
    ]),
  );
}

/**
 * Refuses words that stand alone, where a command takes what it reads by options.
 *
 * @param words What is left of the command line.
 * @param options Those that the words may have been meant for, in that order.
 * @throws {TypeError} that says the command line's options.
 */
export function refuseWords(doing: string, words: readonly string[], options: readonly string[]) {
  if (words.length === 0) return;
  const asOptions = words.every((word) => /^(g\d+)?(mb\d+)?ic\d/.test(word))
    ? words.map((word) => `--problem ${word}`)
    : options.includes("--a") && words.every((word) => /^\d[\d,x]*$/.test(word))
    ? [`--size ${words.join().replaceAll("x", ",")}`]
    : words.flatMap((word, place) => place < options.length ? [`${options[place]} ${word}`] : []);
  throw new InputTypeError(
    `${doing}: ${words[0]} stands without an option, did you mean ${asOptions.join(" ")}?`,
  );
}

/** Options that choose among kernels and GPUs, as attributes. */
const OF_GPUS = [
  ...["algorithm", "math", "policy", "splits", "tile", "pair", "segments", "flush", "balance"],
  ...[
    "backend",
    "cache",
    "maxWorkspace",
    "deviceModel",
    "adapter",
    "exact",
    "maxBoundRatio",
    "tuning",
    "tuneBudget",
  ],
  ...["without", "with", "raster", "kernel"],
];
/** Values that choose nothing. */
const NO_CHOICE = ["undefined", "auto", "hot", "none", "wgpu"];

/** @throws {TypeError} for options that choose among kernels or GPUs, where the CPU computes with the reference. */
export function refuseOnCpu(
  doing: string,
  command: Pick<CommandUnknownOpts, "options" | "getOptionValue">,
  more: readonly string[] = [],
): void {
  const given = command.options.filter((option) => {
    const name = option.attributeName();
    return [...OF_GPUS, ...more].includes(name) &&
      !NO_CHOICE.includes(String(command.getOptionValue(name)));
  });
  const names = given.map(({ long = "" }) => [long.slice(2), true]);
  refuseOptions(`${doing}: the CPU computes with the reference itself`, Object.fromEntries(names));
}

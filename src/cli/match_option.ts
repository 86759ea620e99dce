import { InvalidArgumentError, Option } from "#cli-types";
import { compilePattern, type Pattern } from "../bench/pattern.ts";
import { InputTypeError } from "../errors.ts";
import { reporter } from "./output.ts";

/** Parses a regular expression. */
export function parsePattern(text: string): Pattern {
  try {
    return compilePattern(text);
  } catch (error) {
    throw error instanceof SyntaxError ? new InvalidArgumentError(error.message) : error;
  }
}

/** `--filter`, what `--match` was called while `conv` called its weights the same. */
export function oldMatch() {
  return new Option("--filter <regex>", "the old name of --match").argParser(parsePattern)
    .hideHelp();
}

/**
 * The pattern of problems; says how its old name is called now.
 *
 * @throws {InputTypeError} for both names.
 */
export function matchOption(
  { match, filter }: {
    readonly match?: Pattern | undefined;
    readonly filter?: Pattern | undefined;
  },
): Pattern | undefined {
  if (filter === undefined) return match;
  if (match !== undefined) {
    throw new InputTypeError("--filter is the old name of --match, give one");
  }
  reporter("stderr").message("wgconv: --filter is called --match now");
  return filter;
}

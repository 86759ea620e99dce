import { Option } from "#cli-types";
import { InputTypeError } from "../errors.ts";
import { reporter } from "./output.ts";
import { parsePattern } from "./values.ts";

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
  { match, filter }: { readonly match?: RegExp | undefined; readonly filter?: RegExp | undefined },
): RegExp | undefined {
  if (filter === undefined) return match;
  if (match !== undefined) {
    throw new InputTypeError("--filter is the old name of --match, give one");
  }
  reporter("stderr").message("wgconv: --filter is called --match now");
  return filter;
}

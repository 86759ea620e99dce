import { dirname, isAbsolute, join } from "#path";
import type { ConvProblem, Operation } from "../problem/conv_problem.ts";
import { readText } from "../read_text.ts";
import { parseSuite, type SuiteText } from "./suite.ts";

/**
 * Reads a suite file and those that it includes, each found beside the one that names it.
 *
 * @throws {Deno.errors.NotFound} and its like with the file's name.
 * @throws as {@linkcode parseSuite}.
 */
export function readSuite(path: string, op: Operation = "fwd"): ConvProblem[] {
  const { text, source } = readFile(path);
  return parseSuite(
    text,
    source,
    op,
    (inner, from) => readFile(isAbsolute(inner) ? inner : join(dirname(from), inner)),
  );
}

function readFile(path: string): SuiteText {
  return { source: path, text: readText(path) };
}

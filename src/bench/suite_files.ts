import { dirname, isAbsolute, join } from "node:path";
import type { ConvProblem, Operation } from "../problem/conv_problem.ts";
import { readText } from "../read_text.ts";
import { parseSuite, type SuiteText } from "./suite.ts";

/**
 * Reads a suite file and those that it includes, each found beside the one that names it.
 *
 * @param onFile Gets the path of each file that is read.
 * @throws {Deno.errors.NotFound} and its like with the file's name.
 * @throws as {@linkcode parseSuite}.
 */
export function readSuite(
  path: string,
  onFile: (path: string) => void = () => {},
  op: Operation = "fwd",
): ConvProblem[] {
  const read = (file: string) => {
    onFile(file);
    return readFile(file);
  };
  const { text, source } = read(path);
  return parseSuite(
    text,
    source,
    op,
    (inner, from) => read(isAbsolute(inner) ? inner : join(dirname(from), inner)),
  );
}

function readFile(path: string): SuiteText {
  return { source: path, text: readText(path) };
}

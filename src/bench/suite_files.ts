import { dirname, isAbsolute, join } from "#path";
import type { ConvProblem, Operation } from "../problem/conv_problem.ts";
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
  try {
    return { source: path, text: Deno.readTextFileSync(path) };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) {
      throw new Deno.errors.NotFound(`Cannot read ${path}: there is no such file`);
    }
    if (error instanceof Error) {
      error.message = `Cannot read ${path}: ${error.message.split(": ")[0]}`;
    }
    throw error;
  }
}

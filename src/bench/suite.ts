import type { ConvProblem, Operation } from "../problem/conv_problem.ts";
import { parseDescriptors } from "../problem/descriptor.ts";

/**
 * Problems of a suite file's text: a descriptor a line, `#` starts a comment, blank lines are skipped.
 * Lists and ranges of a line make several problems.
 *
 * @param source The file's name, for messages.
 * @throws {SyntaxError} with file, line, column and a caret.
 * @throws {RangeError} with file and line where the values do not fit together.
 */
export function parseSuite(text: string, source: string, op: Operation = "fwd"): ConvProblem[] {
  return text.split(/\r?\n/).flatMap((line, index) => {
    const descriptor = withoutComment(line).trim();
    if (descriptor === "") return [];
    const place = `${source}:${index + 1}`;
    if (descriptor.startsWith("-")) {
      throw new SyntaxError(`${place}: options are not part of a suite, expected a descriptor`);
    }
    try {
      return parseDescriptors(descriptor, op);
    } catch (error) {
      if (error instanceof SyntaxError) throw new SyntaxError(`${place}: ${error.message}`);
      if (error instanceof RangeError) throw new RangeError(`${place}: ${error.message}`);
      throw error;
    }
  });
}

/** A line up to the `#` that starts a comment; one inside a quoted name does not. */
function withoutComment(line: string): string {
  return /^(?:[^"#]|"[^"]*"?)*/.exec(line)![0];
}

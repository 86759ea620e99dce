import { RE2JS, RE2JSException } from "re2js";
import { InputSyntaxError } from "../errors.ts";

/** A compiled `--match`. */
export interface Pattern {
  /** Whether it matches anywhere in a text. */
  test(text: string): boolean;
  /** Its source, for messages. */
  toString(): string;
}

/**
 * Compiles a regular expression in RE2's syntax. RE2 matches in time linear in the text; JavaScript's own engine backtracks
 * for hours on expressions such as `(a+)+$`.
 *
 * @throws {SyntaxError} with the reason.
 */
export function compilePattern(text: string): Pattern {
  try {
    const compiled = RE2JS.compile(text);
    return { test: (name) => compiled.test(name), toString: () => `/${text}/` };
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    const reason = error.message.replace(/^error parsing regexp: /, "");
    throw new InputSyntaxError(
      `expected a regular expression (RE2, which has no lookaround and no backreferences): ${reason}`,
    );
  }
}

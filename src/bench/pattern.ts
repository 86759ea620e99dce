import { RE2JS, RE2JSException } from "re2js";
import { InputSyntaxError } from "../errors.ts";

/** What names are looked through for. */
export interface Pattern {
  /** Whether it is found anywhere in a text. */
  test(text: string): boolean;
  /** As messages show it. */
  toString(): string;
}

/**
 * Compiles a regular expression of RE2's syntax: matching takes time that grows with the text, whatever the expression, which
 * JavaScript's own does not promise.
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

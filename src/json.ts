/** Texts in JSON that people wrote: what is wrong with them, in their words. */
import * as v from "valibot";

/** Numbers that Python and others write, and JSON lacks. */
const FOREIGN = /-?\b(?:NaN|Infinity)\b/;

/** What is wrong with a text that would be JSON if more followed. */
export const CUT_OFF = "ends in the middle";

/**
 * The value of a text in JSON.
 *
 * @param refuse Makes an error of what is wrong, a clause such as `is no JSON`, and the line that is.
 * @throws what `refuse` makes.
 */
export function parseJson(text: string, refuse: (what: string, line: number) => Error): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const lineOf = (offset: number) => text.slice(0, offset).split("\n").length;
    if (isCutOff(text, error)) throw refuse(CUT_OFF, lineOf(text.trimEnd().length));
    const bare = text.replace(/"(?:[^"\\]|\\.)*"/g, (quoted) => " ".repeat(quoted.length));
    const foreign = FOREIGN.exec(bare);
    if (foreign === null) throw refuse("is no JSON", lineOf(faultOffset(text)));
    throw refuse(`has ${foreign[0]}, which JSON lacks`, lineOf(foreign.index));
  }
}

/** Whether the parser missed nothing but what would have followed. */
function isCutOff(text: string, error: unknown): boolean {
  const said = (error as Error).message;
  return /^(Unexpected end|Unterminated)/.test(said) ||
    Number(/position (\d+)/.exec(said)?.[1]) >= text.trimEnd().length;
}

/** Characters of the longest beginning that JSON might have. */
function faultOffset(text: string): number {
  let [good, bad] = [0, text.length];
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (mayBegin(text.slice(0, middle))) good = middle;
    else bad = middle;
  }
  return good;
}

function mayBegin(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    return isCutOff(text, error);
  }
}

/** What of a value is not as its schema has it: a clause, and the field where it is one that the schema lacks. */
export interface SchemaFault {
  /** `time_ms.median is "x", expected a number`. */
  readonly what: string;
  /** Of the whole value where it is absent. */
  readonly field?: string;
  readonly unknown: boolean;
}

/**
 * The first thing that a schema has against a value.
 *
 * @param whole What the value is called where it is no object at all.
 */
export function schemaFault(issue: v.BaseIssue<unknown>, whole: string): SchemaFault {
  const field = v.getDotPath(issue) ?? undefined;
  const { type, received, expected } = issue;
  const of = { ...(field === undefined ? {} : { field }), unknown: expected === "never" };
  const name = field ?? whole;
  if (of.unknown) return { ...of, what: `${name} is unknown` };
  if (received === "undefined") return { ...of, what: `${name} is missing` };
  if (/length$/.test(type)) {
    return { ...of, what: `${name} has ${received} entries, expected ${words(expected)}` };
  }
  return { ...of, what: `${name} is ${words(clipped(received))}, expected ${wanted(issue)}` };
}

const TYPES: Readonly<Record<string, string>> = {
  Object: "an object",
  Array: "a list",
  number: "a number",
  string: "a text",
  boolean: "true or false",
};

function wanted({ type, expected, message }: v.BaseIssue<unknown>): string {
  if (/integer$/.test(type)) return "a whole number";
  // A schema with a pattern says in words what it is.
  return type === "regex" ? message : words(expected);
}

/** Words of the library's: types, values and bounds, `|` between them. */
function words(expected: string | null): string {
  return (expected ?? "another").replace(/^\((.*)\)$/, "$1")
    .split(" | ").map(word).join(", ").replace(/, ([^,]*)$/, " or $1");
}

function word(one: string): string {
  const [, sign, bound] = /^(>=|<=|>|<)(.*)$/.exec(one) ?? [];
  if (sign === undefined) return TYPES[one] ?? one;
  if (Math.abs(Number(bound)) === Number.MAX_VALUE) return "a finite number";
  return `${
    { ">=": "at least", "<=": "at most", ">": "more than", "<": "less than" }[sign]
  } ${bound}`;
}

/** A value's text, of which a sentence has room for so much. */
function clipped(text: string): string {
  return text.length <= 60 ? text : `${text.slice(0, 60)}…`;
}

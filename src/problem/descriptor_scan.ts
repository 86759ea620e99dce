import { InputSyntaxError } from "../errors.ts";
import { suggestion } from "./closest.ts";

/** A key of a descriptor with its values: several where the text holds a list or a range. */
export interface Entry {
  readonly key: string;
  readonly values: readonly number[];
  /** Where the key stands in the text, from 0. */
  readonly column: number;
}

const KEYS = [
  ...["g", "mb", "ic", "oc"],
  ...["id", "ih", "iw", "kd", "kh", "kw", "od", "oh", "ow"],
  ...["sd", "sh", "sw", "pd", "ph", "pw", "dd", "dh", "dw"],
];
/** More values than this in one list is a slip of the pen. */
const MAX_VALUES = 100_000;

/** A `SyntaxError` about `column` (from 0) of a line: the sentence, then the line and a caret. */
export function syntaxError(text: string, column: number, what: string): InputSyntaxError {
  return new InputSyntaxError(
    `Cannot parse problem: ${what}, at column ${column + 1}\n  ${text}\n  ${" ".repeat(column)}^`,
  );
}

/**
 * Splits a descriptor into its keys and values, and its name.
 *
 * @param text What ends with the descriptor: the line it stands in, for messages.
 * @param start Where in `text` it begins.
 * @throws {SyntaxError} at the first thing that is no key, no value or twice there.
 */
export function scanDescriptor(text: string, start = 0): { entries: Entry[]; name?: string } {
  const entries: Entry[] = [];
  let at = start;
  while (at < text.length) {
    if (text[at] === "_") {
      at++;
      continue;
    }
    const word = /^[a-z]*/.exec(text.slice(at))![0];
    if (word.startsWith("n") || word === "") {
      if (word === "") throw syntaxError(text, at, `unexpected ${JSON.stringify(text[at])}`);
      if (at === start && text[at + 1] === '"') {
        throw syntaxError(text, at, "a name stands right behind its descriptor, without a space");
      }
      return { entries, name: scanName(text, at + 1) };
    }
    if (!KEYS.includes(word)) {
      const behind = at === start && text.slice(0, start).trim() !== ""
        ? ", words that follow a descriptor are descriptors too, a comment begins with #"
        : "";
      const next = suggestion(word, KEYS) || behind;
      throw syntaxError(text, at, `unknown key "${word}"${next}`);
    }
    if (entries.some(({ key }) => key === word)) {
      throw syntaxError(text, at, `"${word}" is given twice`);
    }
    const list = /^[0-9:,]*/.exec(text.slice(at + word.length))![0];
    entries.push({ key: word, values: scanValues(text, word, at + word.length, list), column: at });
    at += word.length + list.length;
  }
  return { entries };
}

/** The name after `n`: quoted, or all the rest. */
function scanName(text: string, start: number): string {
  if (text[start] !== '"') {
    if (start === text.length) throw syntaxError(text, start, "the name after n is missing");
    const quote = text.indexOf('"', start);
    if (quote >= 0) throw syntaxError(text, quote, "a quote inside the name");
    return text.slice(start);
  }
  const end = text.indexOf('"', start + 1);
  if (end < 0) throw syntaxError(text, start, "the name's closing quote is missing");
  // Shape files say how often a network has the layer inside the quotes, or behind them.
  const often = /^\*\d+$/.exec(text.slice(end + 1))?.[0] ?? "";
  if (end + often.length !== text.length - 1) {
    throw syntaxError(text, end + 1, "the name ends a descriptor, expected nothing behind it");
  }
  return text.slice(start + 1, end) + often;
}

/** Values of a key's `list`, which starts at column `start`: numbers and `first:last[:step]` ranges. */
function scanValues(text: string, key: string, start: number, list: string): number[] {
  const values: number[] = [];
  let column = start;
  for (const item of list.split(",")) {
    const match = /^(\d+)(?::(\d+)(?::(\d+))?)?$/.exec(item);
    if (!match) throw syntaxError(text, column, "expected a number >= 0");
    const first = Number(match[1]);
    const last = match[2] === undefined ? first : Number(match[2]);
    const step = match[3] === undefined ? 1 : Number(match[3]);
    // A descriptor counts dilation from 0.
    const most = key.startsWith("d") ? Number.MAX_SAFE_INTEGER - 1 : Number.MAX_SAFE_INTEGER;
    if (Math.max(first, last) > most) {
      throw syntaxError(text, column, `${key} is too large, expected ${most} or less`);
    }
    if (step === 0) throw syntaxError(text, column, "the range's step is 0, expected 1 or more");
    if (last < first) throw syntaxError(text, column, `the range ${item} is empty`);
    if ((last - first) / step > MAX_VALUES) {
      throw syntaxError(text, column, `the range ${item} holds more than ${MAX_VALUES} values`);
    }
    for (let value = first; value <= last; value += step) values.push(value);
    column += item.length + 1;
  }
  return values;
}

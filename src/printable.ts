/**
 * What may reach a terminal. Names of files, values of options and fields of records are anyone's: they may hold
 * control characters, which move the cursor or hide text, and be as long as they like.
 */

/** Most characters of a message. */
export const MAX_MESSAGE = 300;
/** Most characters of a table's cell. */
const MAX_CELL = 200;
/** What is left of names and values in a message that is too long: as much as there is room for. */
const MAX_WORDS = [120, 90, 60];
/** What is shown of a line on either side of a caret. */
const AROUND = 40;

// C0 but the line break and the tab, DEL and C1, then what turns the direction of text or separates lines.
const CONTROL = /(?![\n\t])[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\ufeff]/gu;

/** Text with its control characters as `\u001b`, which in JSON are the same; line breaks and tabs stay. */
export function printable(text: string): string {
  return text.replace(CONTROL, escaped);
}

/** {@linkcode printable} text of one line, of a length that a table can show. */
export function printableCell(text: string): string {
  return shorten(oneLine(text), MAX_CELL);
}

/**
 * A message as it is printed: {@linkcode printable}, and at most {@linkcode MAX_MESSAGE} characters. Long names and values
 * lose their middle. Only a caret under what a message is about makes further lines.
 */
export function printableMessage(message: string): string {
  const [, sentence, line, indent] = /^([^\n]*)\n {2}([^\n]*)\n {2}( *)\^$/.exec(message) ?? [];
  if (sentence === undefined) return shortSentence(oneLine(message), MAX_MESSAGE);
  const [shown, column] = around(line!, indent!.length);
  const pointed = `\n  ${shown}\n  ${" ".repeat(column)}^`;
  return shortSentence(oneLine(sentence), MAX_MESSAGE - pointed.length) + pointed;
}

/** One line of text as a terminal shows it in at most `columns` columns: what is longer loses its middle. */
export function printableLine(text: string, columns: number): string {
  const line = oneLine(text);
  let most = Math.max(1, columns);
  let shown = shorten(line, most);
  while (most > 1 && columnsOf(shown) > columns) shown = shorten(line, --most);
  return shown;
}

/** Columns that text takes at most: those of East Asia and pictures take two. */
function columnsOf(text: string): number {
  return [...text].reduce((sum, one) => sum + (one >= "\u1100" && one !== "…" ? 2 : 1), 0);
}

/** The part of a line around a column, control characters escaped, and where the column then is. */
function around(line: string, column: number): [shown: string, column: number] {
  const [before, after] = [oneLine(line.slice(0, column)), oneLine(line.slice(column))];
  const left = before.length <= AROUND ? before : `…${before.slice(-AROUND)}`;
  const right = after.length <= AROUND ? after : `${after.slice(0, AROUND)}…`;
  return [left + right, left.length];
}

function shortSentence(text: string, most: number): string {
  const shorter = MAX_WORDS.map((length) => text.replace(/\S+/g, (word) => shorten(word, length)));
  return [text, ...shorter].find(({ length }) => length <= most) ?? shorten(shorter.at(-1)!, most);
}

/** Leaves out the middle of what is longer than `most`. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const kept = most - 1;
  return `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`;
}

function oneLine(text: string): string {
  return printable(text).replace(/[\n\t]/g, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

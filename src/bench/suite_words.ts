import { withoutComment } from "../problem/gemm_suite.ts";

/** A word of a suite file and where it stands. */
export interface SuiteWord {
  readonly text: string;
  /** From 1. */
  readonly line: number;
  /** Of the first character, from 0. */
  readonly column: number;
  /** The line up to the word's end; of a word that goes on in the next line, the word alone. */
  readonly shown: string;
}

/**
 * Splits a suite's text as benchdnn does: at white space, several words to a line; `#` starts a comment, and a
 * backslash at a word's end glues the next word to it. Quotes hold a name with spaces or `#` together. A line that begins
 * with a number is one word, a product.
 */
export function suiteWords(text: string): SuiteWord[] {
  const words: SuiteWord[] = [];
  let open: SuiteWord | undefined;
  text.replace(/^\uFEFF/, "").split(/\r?\n/).forEach((line, index) => {
    if (open === undefined && /^\s*\d+(\s|$)/.test(line)) {
      const text = withoutComment(line);
      words.push({ text: text.trimStart(), line: index + 1, column: 0, shown: text });
      return;
    }
    for (const match of line.matchAll(/#.*|(?:[^\s"#]|"[^"]*"?)+/g)) {
      if (match[0].startsWith("#")) break;
      const goesOn = match[0].endsWith("\\");
      const own = goesOn ? match[0].slice(0, -1) : match[0];
      // A backslash that stands alone glues its neighbours.
      if (goesOn && own === "" && open === undefined) open = words.pop();
      const shown = line.slice(0, match.index + own.length);
      const word = open === undefined
        ? { text: own, line: index + 1, column: match.index, shown }
        : { ...open, text: open.text + own, column: 0, shown: open.text + own };
      open = goesOn ? word : undefined;
      if (!goesOn) words.push(word);
    }
  });
  if (open !== undefined && open.text !== "") words.push(open);
  return words;
}

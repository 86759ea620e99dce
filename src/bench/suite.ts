import { InputSyntaxError, placedError } from "../errors.ts";
import { closest } from "../problem/closest.ts";
import type { ConvProblem, Operation } from "../problem/conv_problem.ts";
import { parseDescriptors, printDescriptor } from "../problem/descriptor.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import { parseGemm, printGemm, withoutComment } from "../problem/gemm_suite.ts";
import type { Layout } from "../tensor/layout.ts";
import {
  DIRECTION_NAMES,
  type OptionValues,
  readDirections,
  readTags,
  readTypes,
  type SuiteRun,
  WITHOUT_EFFECT,
} from "./benchdnn.ts";
import { compilePattern, type Pattern } from "./pattern.ts";

/** A word of a suite file and where it stands. */
interface SuiteWord {
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
function suiteWords(text: string): SuiteWord[] {
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

/** A suite file's name and text. */
export interface SuiteText {
  /** What messages call it, and what tells it from the others. */
  readonly source: string;
  readonly text: string;
}

/** Gives the file that `path` names inside the file `from`. */
type IncludeSuite = (path: string, from: string) => SuiteText;

/** A problem, and how its suite runs it. */
export interface SuiteProblem extends ConvProblem {
  /** Absent where the suite leaves all of it to the command line. */
  readonly run?: SuiteRun;
}

/** A product of a suite, and the types that it runs in. */
export interface SuiteProduct extends GemmProblem {
  readonly run?: Pick<SuiteRun, "types">;
}

/** What a suite tells beside its convolutions. */
export interface SuiteListener {
  /** Gets each option of benchdnn, or part of its value, that has no effect here. */
  readonly onSkip?: (what: string) => void;
  /** Gets each product; without it they are refused. */
  readonly onProduct?: ((product: SuiteProduct) => void) | undefined;
}

/** State of the options that apply to the problems below them. */
interface Settings {
  /** Takes the place of each batch; 0 leaves it. */
  readonly batch: number;
  readonly match: Pattern | undefined;
  readonly run: SuiteRun;
  /** Layouts of input and output. */
  readonly tags: { readonly [tag in "--stag" | "--dtag"]?: readonly Layout[] | undefined };
}

const DEFAULTS: Settings = { batch: 0, match: undefined, run: {}, tags: {} };
/** More files or problems than this of one suite is no suite, but files that include each other over and over. */
const MAX_FILES = 1000;
const MAX_PROBLEMS = 100_000;
/** A longer line is no text of people. */
const MAX_LINE = 100_000;
const OPTIONS = "--batch --mb --match --reset --dir --dt --cfg --stag --dtag".split(" ");

/**
 * Problems of a suite file's text, in benchdnn's grammar: descriptors, whose lists and ranges make several;
 * `#` starts a comment. `--batch=FILE` stands for another file's problems, `--mb=N` replaces the batch,
 * `--match=REGEX` keeps problems whose descriptor it matches, `--dir`, `--dt`, `--stag` and `--dtag` set operations, types
 * and layouts, `--reset` ends all of them. A line such as `128 256 64 n t n"fc"` is a product.
 *
 * @param source The file's name, for messages.
 * @param include Finds the files of `--batch`; without it they are refused.
 * @throws {SyntaxError} with file, line, column and a caret; also where a file includes itself, or there are too many.
 * @throws {RangeError} with file and line where the values do not fit together.
 */
export function parseSuite(
  text: string,
  source: string,
  op: Operation = "fwd",
  include?: IncludeSuite,
  { onSkip = () => {}, onProduct }: SuiteListener = {},
): SuiteProblem[] {
  let files = 0;
  let count = 0;
  return parseFile({ text, source }, [source], DEFAULTS);

  function parseFile(file: SuiteText, open: readonly string[], outer: Settings): SuiteProblem[] {
    let settings = outer;
    return wordsOf(file).flatMap((word) => {
      try {
        if (!word.text.startsWith("-")) {
          const isProduct = /^\d+(\s|$)/.test(word.text);
          const problems = isProduct ? [] : chosen(parseWord(word, op), settings);
          if (isProduct) tellProduct(word, settings, onProduct);
          count += isProduct ? 1 : problems.length;
          if (count <= MAX_PROBLEMS) return problems;
          throw wordError(word, `there are more than ${MAX_PROBLEMS} problems`);
        }
        const { name, value } = splitOption(word);
        if (name !== "--batch") {
          settings = applyOption(word, name, value, settings, onSkip);
          return [];
        }
        if (!include) throw wordError(word, "--batch is not known here");
        if (++files > MAX_FILES) throw wordError(word, `more than ${MAX_FILES} files are included`);
        const inner = include(value, file.source);
        if (open.includes(inner.source)) {
          throw wordError(
            word,
            `the files include each other: ${[...open, inner.source].join(", ")}`,
          );
        }
        return parseFile(inner, [...open, inner.source], settings);
      } catch (error) {
        throw placed(error, `${file.source}:${word.line}`);
      }
    });
  }
}

/** The words of a file. */
function wordsOf({ text, source }: SuiteText): SuiteWord[] {
  const long = text.split("\n").findIndex((line) => line.length > MAX_LINE);
  if (long < 0) return suiteWords(text);
  throw new InputSyntaxError(
    `${source}:${long + 1}: Cannot read the suite: the line has more than ${MAX_LINE} characters`,
  );
}

function parseWord({ shown, column }: SuiteWord, op: Operation): ConvProblem[] {
  return parseDescriptors(shown, op, column);
}

/** Parses a product and hands it on where the settings keep it. */
function tellProduct(
  word: SuiteWord,
  { match, run: { types } }: Settings,
  onProduct: SuiteListener["onProduct"],
): void {
  const product = parseGemm(word.shown);
  if (onProduct === undefined) {
    throw wordError(word, "it is a product, which wgconv bench and wgconv gemm run");
  }
  if (match !== undefined && !match.test(printGemm(product))) return;
  onProduct(types === undefined ? product : { ...product, run: { types } });
}

/** The problems that the settings keep, with the settings' batch and run. */
function chosen(
  problems: readonly ConvProblem[],
  { batch, match, run }: Settings,
): SuiteProblem[] {
  const says = Object.values(run).some((list) => list !== undefined);
  return problems
    .map((problem) => batch === 0 ? problem : { ...problem, batch })
    .filter((problem) => match === undefined || match.test(printDescriptor(problem)))
    .map((problem) => says ? { ...problem, run } : problem);
}

function splitOption(word: SuiteWord): { name: string; value: string } {
  const [, name = "", value = ""] = /^(-[^=]*)=?(.*)$/s.exec(word.text)!;
  if ([...OPTIONS, ...WITHOUT_EFFECT].includes(name.replace(/^-v\d+$/, "-v"))) {
    return { name, value };
  }
  const near = closest(name, OPTIONS);
  throw wordError(
    word,
    `the option ${name} is not part of a suite` +
      (near === undefined ? "" : `, did you mean ${near}?`) +
      "; choose algorithms, checks and the like on the command line",
  );
}

function applyOption(
  word: SuiteWord,
  name: string,
  value: string,
  settings: Settings,
  skip: (what: string) => void,
): Settings {
  const { run } = settings;
  const valuesOf = <T>(read: OptionValues<T> | undefined, expected: string): readonly T[] => {
    if (read === undefined) throw wordError(word, `expected ${expected}`);
    read.ignored.forEach((part) => skip(`${part} (${name})`));
    return read.values;
  };
  switch (name) {
    case "--reset":
      return DEFAULTS;
    case "--dir": {
      const ops = valuesOf(
        readDirections(value),
        `--dir=FWD_B, a list of ${DIRECTION_NAMES.join(", ")}`,
      );
      return { ...settings, run: { ...run, ops } };
    }
    case "--dt":
    case "--cfg": {
      // Older versions of benchdnn write --cfg=f16f16f32.
      const names = name === "--dt" ? value : value.replaceAll(/(\d)(?=[a-z])/gi, "$1:");
      const types = valuesOf(readTypes(names), "--dt=f32, a list of types");
      return { ...settings, run: { ...run, types } };
    }
    case "--stag":
    case "--dtag":
      return applyTag(settings, name, valuesOf(readTags(value), "a layout"), skip);
    case "--mb":
    case "--match":
      return applyChoice(word, name, value, settings);
    default:
      skip(word.text);
      return settings;
  }
}

/** The settings with the layouts of --stag or --dtag: input and output share a layout here, so the input's wins. */
function applyTag(
  settings: Settings,
  name: "--stag" | "--dtag",
  layouts: readonly Layout[],
  skip: (what: string) => void,
): Settings {
  const tags = { ...settings.tags, [name]: layouts.length === 0 ? undefined : layouts };
  const { "--stag": stag, "--dtag": dtag } = tags;
  if (stag && dtag && stag.join() !== dtag.join()) skip(`outputs in ${dtag.join()} (--dtag)`);
  return { ...settings, tags, run: { ...settings.run, layouts: stag ?? dtag } };
}

/** The settings with --mb or --match. */
function applyChoice(word: SuiteWord, name: string, value: string, settings: Settings): Settings {
  if (name === "--mb") {
    if (!/^\d{1,9}$/.test(value)) throw wordError(word, "expected --mb=N, a whole number");
    return { ...settings, batch: Number(value) };
  }
  const pattern = value.replace(/^(['"])(.*)\1$/s, "$2");
  try {
    return { ...settings, match: pattern === "" ? undefined : compilePattern(pattern) };
  } catch (error) {
    throw error instanceof SyntaxError ? wordError(word, `--match: ${error.message}`) : error;
  }
}

function wordError({ shown, column }: SuiteWord, what: string): InputSyntaxError {
  return new InputSyntaxError(
    `Cannot read the suite: ${what}, at column ${column + 1}\n  ${shown}\n  ${" ".repeat(column)}^`,
  );
}

/** Where an error has no place yet, the same with one. */
function placed(error: unknown, place: string): unknown {
  if (!(error instanceof Error) || /^[^\n]*:\d+: Cannot /.test(error.message)) return error;
  const better = placedError(error, place);
  if (better === error) error.message = `${place}: ${error.message}`;
  return better;
}

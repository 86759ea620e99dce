import { basename, dirname, isAbsolute, join } from "node:path";
import { InputTypeError } from "../errors.ts";
import { suggestion } from "../problem/closest.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import { parseGemmSuite } from "../problem/gemm_suite.ts";
import { readText } from "../read_text.ts";
import { OWN_SUITES, type SuiteKind } from "./own_suites.ts";
import { parseSuite, type SuiteListener, type SuiteProblem, type SuiteText } from "./suite.ts";

/** Callbacks of reading a suite. */
interface SuiteHooks extends SuiteListener {
  /** Gets the path of each file that is read. */
  readonly onFile?: (path: string) => void;
}

/**
 * Reads a suite and those that it includes, each found beside the one that names it. A path without a file may name a built-in
 * suite.
 *
 * @throws {Deno.errors.NotFound} and its like with the file's name.
 * @throws as {@linkcode parseSuite}.
 */
export function readSuite(
  path: string,
  { onFile, ...listener }: SuiteHooks = {},
): SuiteProblem[] {
  const { text, source } = suiteText(path, "convolutions", onFile);
  const include = (inner: string, from: string) => {
    const beside = isAbsolute(inner) ? inner : join(dirname(from), inner);
    return suiteText(isOwn(inner) && !isFile(beside) ? inner : beside, "convolutions", onFile);
  };
  return parseSuite(text, source, "fwd", include, listener);
}

/** Reads a suite of products, as {@linkcode readSuite} does one of convolutions. */
export function readGemmSuite(path: string, { onFile }: SuiteHooks = {}): GemmProblem[] {
  const { text, source } = suiteText(path, "products", onFile);
  return parseGemmSuite(text, source);
}

/** The text of a file, or of a built-in suite where there is no such file. */
function suiteText(path: string, of: SuiteKind, onFile: SuiteHooks["onFile"]): SuiteText {
  const own = OWN_SUITES.find(({ name }) => name === path);
  if (own !== undefined && !isFile(path)) {
    if (own.of === of) return { source: path, text: own.text };
    const command = own.of === "products" ? "gemm" : "bench";
    throw new InputTypeError(
      `Cannot read ${path}: it is a suite of ${own.of}, wgconv ${command} --suite ${path} runs it`,
    );
  }
  onFile?.(path);
  try {
    return { source: path, text: readText(path) };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) error.message += ownHint(path, of);
    throw error;
  }
}

/** A suggestion for a path without a file, as the end of a sentence. */
function ownHint(path: string, of: SuiteKind): string {
  const names = OWN_SUITES.flatMap((suite) => suite.of === of ? [suite.name] : []);
  const near = suggestion(basename(path, ".txt"), names);
  if (near !== "" || /[/\\.]/.test(path)) return near;
  return `, and no suite of that name: there are ${names.join(", ")}`;
}

function isOwn(name: string): boolean {
  return OWN_SUITES.some((own) => own.name === name);
}

function isFile(path: string): boolean {
  try {
    return !Deno.statSync(path).isDirectory;
  } catch {
    return false;
  }
}

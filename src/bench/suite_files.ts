import convnextTiny from "../../bench/suites/convnext_tiny.txt" with { type: "text" };
import efficientnetB0 from "../../bench/suites/efficientnet_b0.txt" with { type: "text" };
import gemm from "../../bench/suites/gemm.txt" with { type: "text" };
import gemmThin from "../../bench/suites/gemm_thin.txt" with { type: "text" };
import im2win12 from "../../bench/suites/im2win12.txt" with { type: "text" };
import mobilenetV3 from "../../bench/suites/mobilenet_v3.txt" with { type: "text" };
import moreNetworks from "../../bench/suites/more_networks.txt" with { type: "text" };
import networks from "../../bench/suites/networks.txt" with { type: "text" };
import r3d18 from "../../bench/suites/r3d_18.txt" with { type: "text" };
import resnet3x3 from "../../bench/suites/resnet3x3.txt" with { type: "text" };
import resnet50 from "../../bench/suites/resnet50.txt" with { type: "text" };
import unet from "../../bench/suites/unet.txt" with { type: "text" };
import vgg16 from "../../bench/suites/vgg16.txt" with { type: "text" };
import whisperBase from "../../bench/suites/whisper_base.txt" with { type: "text" };
import winrsBfc from "../../bench/suites/winrs_bfc.txt" with { type: "text" };
import yolov8s from "../../bench/suites/yolov8s.txt" with { type: "text" };
import { basename, dirname, isAbsolute, join } from "node:path";
import { InputTypeError } from "../errors.ts";
import { suggestion } from "../problem/closest.ts";
import type { ConvProblem } from "../problem/conv_problem.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import { parseGemmSuite } from "../problem/gemm_suite.ts";
import { readText } from "../read_text.ts";
import { parseSuite, type SuiteListener, type SuiteProblem, type SuiteText } from "./suite.ts";

/** Kind of problems in a suite. */
type SuiteKind = "convolutions" | "products";

/** A built-in suite. */
interface OwnSuite {
  readonly name: string;
  readonly of: SuiteKind;
  readonly text: string;
}

/** All built-in suites. */
export const OWN_SUITES: readonly OwnSuite[] = [
  { name: "resnet3x3", of: "convolutions", text: resnet3x3 },
  { name: "vgg16", of: "convolutions", text: vgg16 },
  { name: "im2win12", of: "convolutions", text: im2win12 },
  { name: "winrs_bfc", of: "convolutions", text: winrsBfc },
  { name: "networks", of: "convolutions", text: networks },
  { name: "more_networks", of: "convolutions", text: moreNetworks },
  { name: "resnet50", of: "convolutions", text: resnet50 },
  { name: "mobilenet_v3", of: "convolutions", text: mobilenetV3 },
  { name: "efficientnet_b0", of: "convolutions", text: efficientnetB0 },
  { name: "convnext_tiny", of: "convolutions", text: convnextTiny },
  { name: "unet", of: "convolutions", text: unet },
  { name: "yolov8s", of: "convolutions", text: yolov8s },
  { name: "whisper_base", of: "convolutions", text: whisperBase },
  { name: "r3d_18", of: "convolutions", text: r3d18 },
  { name: "gemm", of: "products", text: gemm },
  { name: "gemm_thin", of: "products", text: gemmThin },
];

/** A suite's title: its first line. */
export function suiteSubject({ text }: OwnSuite): string {
  return /^# (.*)/.exec(text)?.[1] ?? "";
}

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

/** The problems of a suite, without what it says of operations and types that they run in; as {@linkcode readSuite}. */
export function readProblems(path: string): ConvProblem[] {
  return readSuite(path).map(({ run: _, ...problem }) => problem);
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

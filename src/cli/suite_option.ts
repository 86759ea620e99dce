import type { CommandUnknownOpts } from "#cli-types";
import type { SuiteRun } from "../bench/benchdnn.ts";
import {
  parseSuite,
  type SuiteProblem,
  type SuiteProduct,
  type SuiteText,
} from "../bench/suite.ts";
import { OWN_SUITES, readSuite, suiteSubject } from "../bench/suite_files.ts";
import { InputTypeError } from "../errors.ts";
import type { ModelLayers, ModelOptions } from "../models/layer.ts";
import { printableMessage } from "../printable.ts";
import { parseGemmSuite } from "../problem/gemm_suite.ts";
import { counted } from "../report/format.ts";
import { textTable } from "../report/table.ts";
import { printer, reporter } from "./output.ts";
import { gather, parsePattern, wholeNumber } from "./values.ts";

/** What names problems by files, as `option()` has it. */
export const SUITE = {
  suite: [
    "--suite <file|name>",
    "file of problems in benchdnn's grammar, or a built-in suite (bench --list-suites); repeatable",
    gather,
  ],
  model: [
    "--model <source>",
    "layers of an .onnx file, or a log (wgconv layers); repeatable",
    gather,
  ],
  match: [
    "--match <regex>",
    "only problems whose descriptor or name matches",
    parsePattern,
  ],
  batch: ["--batch <n>", "batch of the model's inputs", wholeNumber(1)],
  inputShape: [
    "--input-shape <name=sizes>",
    "sizes of an input: x=1x3x224x224; repeatable",
    gather,
  ],
  training: ["--training", "with a training step's gradients"],
} as const;

/** Options that choose and complete models. */
export interface ModelChoice {
  readonly batch?: number | undefined;
  readonly inputShape?: readonly string[] | undefined;
  readonly training?: boolean | undefined;
}

/**
 * Parses `x=1x3x224x224`, once an input.
 *
 * @throws {TypeError} for what is none, or of an input that was there.
 */
export function inputShapesOf(
  texts: readonly string[] | undefined,
): Map<string, readonly number[]> | undefined {
  if (texts === undefined) return undefined;
  return namedValues("--input-shape", texts, "x=1x3x224x224", (value) => {
    return /^\d+([x,]\d+)*$/.test(value) ? value.split(/[x,]/).map(Number) : undefined;
  });
}

/**
 * The values of an option such as `x=x.npy` by their names.
 *
 * @throws {TypeError} for what is none, and for a name that is there twice.
 */
export function namedValues<T>(
  option: string,
  texts: readonly string[],
  example: string,
  parse: (value: string) => T | undefined,
): Map<string, T> {
  const values = new Map<string, T>();
  for (const text of texts) {
    const [, name = "", said = ""] = /^(.+?)=(.+)$/s.exec(text) ?? [];
    const value = name === "" ? undefined : parse(said);
    if (value === undefined) {
      throw new InputTypeError(
        `Cannot read a model: ${option} ${text}, expected a name and a value such as ${example}`,
      );
    }
    if (values.has(name)) {
      throw new InputTypeError(`Cannot read a model: ${option} names ${name} twice, one must go`);
    }
    values.set(name, value);
  }
  return values;
}

/** The suites of models: what `wgconv layers` prints. What is no layer is said on stderr. */
async function modelSuites(
  paths: readonly string[],
  { batch, inputShape, training }: ModelChoice,
): Promise<SuiteText[]> {
  if (paths.length === 0 && (batch !== undefined || inputShape !== undefined || training)) {
    throw new InputTypeError(
      "Cannot read a model: --batch, --input-shape and --training go with --model; " +
        "a descriptor says its own batch, as in mb32ic64ih56oc64kh3ph1",
    );
  }
  const options: ModelOptions = { batch, inputShapes: inputShapesOf(inputShape), training };
  const suites: SuiteText[] = [];
  for (const path of paths) suites.push(await modelSuite(path, options));
  return suites;
}

/** The suite of one model. */
export async function modelSuite(path: string, options: ModelOptions): Promise<SuiteText> {
  const [{ networkName, readModel }, { suiteText }] = await Promise.all([
    import("../models/read_model.ts"),
    import("../models/read_model.ts"),
  ]);
  const found = await readModel(path, options);
  sayLeft(path, found);
  if (found.layers.length === 0) {
    throw new InputTypeError(`Cannot read ${path}: it holds no convolution or product to list`);
  }
  const network = networkName(path);
  return {
    source: path,
    text: suiteText(found.layers, { title: `Layers of ${network}`, network }),
  };
}

/** Says what is not listed, by name, and what runs in another type. */
function sayLeft(path: string, { layers, left, notes = [] }: ModelLayers): void {
  const note = reporter("stderr");
  const say = (text: string) => note.message(printableMessage(`wgconv: ${text}`));
  for (const one of notes) say(`${path}: ${one}`);
  for (const { name, why } of left) say(`${path}: not listed: ${name}: ${why}`);
  const others = Map.groupBy(layers.filter(({ said }) => said !== undefined), ({ said }) => said);
  for (const [said, { length }] of others) {
    say(`${path}: ${counted(length, "layer")} of ${said} listed as f32`);
  }
}

export interface ReadSuites {
  readonly problems: readonly SuiteProblem[];
  readonly products: readonly SuiteProduct[];
  readonly files: readonly string[];
  /** A line that counts what has no effect here; empty where all has. */
  readonly ignored: string;
}

/** Files of problems: suites, and models with what completes them. */
interface SuiteChoice extends ModelChoice {
  readonly suite?: readonly string[] | undefined;
  readonly model?: readonly string[] | undefined;
}

/**
 * Reads the suites that `--suite` names and the models of `--model`.
 *
 * @param command Its --op, --dtype (or --out-dtype) and --layout take the place of the suites' where the user gives them.
 * @param runsProducts Whether products are kept; else they count as ignored.
 */
export async function readSuites(
  { suite: paths = [], model = [], ...choice }: SuiteChoice,
  command: Pick<CommandUnknownOpts, "getOptionValueSource">,
  runsProducts = false,
): Promise<ReadSuites> {
  const given = (...names: readonly string[]) =>
    names.some((name) => command.getOptionValueSource(name) === "cli");
  const [op, dtype, layout] = [given("op"), given("dtype", "outDtype"), given("layout")];
  const files: string[] = [];
  const skips: string[] = [];
  const allProducts: SuiteProduct[] = [];
  const hooks = {
    onFile: (file: string) => void files.push(file),
    onSkip: (what: string) => void skips.push(what),
    onProduct: ({ run, ...product }: SuiteProduct) => {
      if (!runsProducts) skips.push("a product, which wgconv bench runs");
      else allProducts.push(run === undefined || dtype ? product : { ...product, run });
    },
  };
  const models = await modelSuites(model, choice);
  files.push(...model);
  const read = [
    ...paths.flatMap((path) => readSuite(path, hooks)),
    ...models.flatMap(({ text, source }) => parseSuite(text, source, "fwd", undefined, hooks)),
  ];
  const all: SuiteProblem[] = read
    .map(({ run, ...problem }) =>
      run === undefined ? problem : {
        ...problem,
        run: {
          ...(op ? {} : { ops: run.ops }),
          ...(dtype ? {} : { types: run.types }),
          ...(layout ? {} : { layouts: run.layouts }),
        },
      }
    );
  const runs = ({ run }: { readonly run?: SuiteRun }) => run?.types?.length !== 0;
  const [problems, products] = [all.filter(runs), allProducts.filter(runs)];
  const leftOut = all.length + allProducts.length - problems.length - products.length;
  return { problems, products, files, ignored: ignoredLine(skips, leftOut) };
}

/** {@linkcode ReadSuites.ignored} as the end of a sentence. */
export function ignoredClause({ ignored }: Pick<ReadSuites, "ignored">): string {
  return ignored === "" ? "" : `; ${ignored}`;
}

/** Counts what suites say without an effect here. */
function ignoredLine(skips: readonly string[], leftOut: number): string {
  const times = [...Map.groupBy(skips, (what) => what)]
    .map(([what, { length }]) => length === 1 ? what : `${what} (${length} times)`);
  return [
    ...(times.length === 0 ? [] : [`ignored in suites: ${times.join(", ")}`]),
    ...(leftOut === 0 ? [] : [`${counted(leftOut, "problem")} of unsupported types left out`]),
  ].join("; ");
}

/** Prints {@linkcode ReadSuites.ignored} to stderr. */
export function noteIgnored({ ignored }: Pick<ReadSuites, "ignored">): void {
  if (ignored !== "") reporter("stderr").message(`wgconv: ${ignored}`);
}

/**
 * Refuses files and suites where descriptors stand.
 *
 * @throws {TypeError} that says what reads them.
 */
export function refuseFiles(doing: string, words: readonly string[]): void {
  for (const word of words) {
    if (/\.(np[yz]|safetensors)(:|$)/i.test(word)) {
      throw new InputTypeError(
        `${doing}: ${word} is a tensor, conv takes it as --input ${word}; ` +
          "here a descriptor such as mb1ic3ih32oc8kh3 says the sizes",
      );
    }
    if (/\.onnx$/i.test(word)) {
      throw new InputTypeError(`${doing}: ${word} is a model, did you mean --model ${word}?`);
    }
    const own = OWN_SUITES.some(({ name }) => name === word);
    if (own || /[/\\]|\.[a-z]+$/i.test(word)) {
      const kind = own ? "suite" : "file";
      throw new InputTypeError(`${doing}: ${word} is a ${kind}, did you mean --suite ${word}?`);
    }
  }
}

/** Prints the built-in suites: a line each, or JSON. */
export function printSuites(json: boolean): void {
  const suites = OWN_SUITES.map((suite) => {
    const { name, of, text } = suite;
    const products = of === "products";
    let beside = 0;
    const onProduct = () => void beside++;
    const { length } = products
      ? parseGemmSuite(text, name)
      : parseSuite(text, name, "fwd", undefined, { onProduct });
    return {
      name,
      command: products ? "gemm" : "bench",
      problems: length + beside,
      about: suiteSubject(suite),
    };
  });
  const out = printer("stdout");
  if (json) return out.line(JSON.stringify(suites));
  const rows = suites.map(({ name, command, problems, about }) => [
    name,
    command,
    `${problems}`,
    about,
  ]);
  const columns = [
    { title: "suite" },
    { title: "command" },
    { title: "problems", align: "right" as const },
    { title: "what" },
  ];
  for (const line of textTable(columns, rows).split("\n")) out.line(line.trimEnd());
}

import type { SuiteText } from "../bench/suite.ts";
import { InputTypeError } from "../errors.ts";
import type { ModelLayers, ModelOptions } from "../models/layer.ts";
import { printableMessage } from "../printable.ts";
import { reporter } from "./output.ts";

export const MODEL_HELP = "layers of an .onnx file, or a log (wgconv layers); repeatable";
export const BATCH_HELP = "batch of the model's inputs";
export const INPUT_SHAPE_HELP = "sizes of an input: x=1x3x224x224; repeatable";
export const TRAINING_HELP = "with a training step's gradients";

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
export async function modelSuites(
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
    import("../models/suite_text.ts"),
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
    say(`${path}: ${length} ${length === 1 ? "layer" : "layers"} of ${said} listed as f32`);
  }
}

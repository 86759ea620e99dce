import { unreadable } from "../read_text.ts";
import { InputSyntaxError, isInputError } from "../errors.ts";
import { type Layer, layerType, type ModelLayers, type ModelOptions } from "./layer.ts";
import { type ConditionsOf, expandModel } from "./onnx_expand.ts";
import {
  DamagedMessage,
  damageOf,
  fieldsOf,
  type OnnxGraph,
  type OnnxNode,
  parseGraph,
  textsOf,
} from "./onnx_format.ts";
import { LAYER_OPS, PRODUCTS_INSIDE } from "./onnx_ops.ts";
import {
  fixedInputs,
  foldedConditions,
  inferredShapes,
  type KnownValue,
  ofThoseThatLoad,
  statedShapes,
} from "./onnx_shapes.ts";

/** ONNX's numbers of element types. */
const TYPES: Readonly<Record<number, string>> = {
  1: "f32",
  2: "u8",
  3: "i8",
  10: "f16",
  11: "f64",
  16: "bf16",
};

/** Domains whose operators are those of the standard, or known here. */
const DOMAINS = ["", "ai.onnx", "com.microsoft"];

/** A layer and the node that it is. */
export interface OnnxLayer extends Layer {
  readonly node: OnnxNode;
}

/** What is read of a model. */
export interface OnnxModel extends ModelLayers {
  readonly layers: readonly OnnxLayer[];
  /** The file, in which layers within branches and loops stand in the main graph. */
  readonly model: Uint8Array;
  /** Inputs with their sizes fixed. */
  readonly inputs: ReadonlyMap<string, KnownValue>;
}

/** Gives conditions of branches, for a model of these inputs. */
export type ConditionsFor = (inputs: ReadonlyMap<string, KnownValue>) => ConditionsOf;

/**
 * Layers of an ONNX model.
 *
 * @param conditionsFor Which branches are taken; those whose condition is constant, where absent.
 * @throws {SyntaxError} where the file is damaged or no model, {RangeError} where sizes are left to fix.
 * @throws {UnsupportedError} where onnxruntime is needed and cannot be had.
 */
export async function readOnnx(
  path: string,
  options: ModelOptions,
  conditionsFor: ConditionsFor = (inputs) => (model, names) =>
    foldedConditions(model, inputs, names, path),
): Promise<OnnxModel> {
  const file = await Deno.readFile(path).catch((error) => {
    throw unreadable(error, path);
  });
  const { inputs, sizes } = fixedInputs(parseModel(file, path).graph, options, path);
  const { model, notes, copied } = await expandModel(file, isLayer, conditionsFor(inputs));
  const { graph, functions } = parseModel(model, path);
  const known = statedShapes(graph, inputs, sizes);
  const wanted = graph.nodes.flatMap((node) => {
    const operands = operandsOf(node);
    return operands?.filter((name) => name !== "" && !known.has(name)) ?? [];
  });
  if (wanted.length > 0) {
    const infer = (names: readonly string[]) => inferredShapes(model, inputs, names, path);
    const names = [...new Set(wanted)];
    const inferred = notes.length === 0 ? await infer(names) : await ofThoseThatLoad(names, infer);
    for (const [name, value] of inferred) known.set(name, value);
  }
  const facts = graphFacts(graph, inputs);
  const layers: OnnxLayer[] = [];
  const left: { name: string; why: string }[] = [];
  for (const node of graph.nodes) {
    const name = node.name || node.outputs[0] || node.op;
    const taken = takeNode(node, known, facts, functions);
    if (typeof taken === "string") left.push({ name, why: taken });
    else if (taken !== undefined) layers.push({ ...taken, name, node });
  }
  return { layers, left: [...left, ...withinGraphs(graph, copied)], notes, model, inputs };
}

function isLayer(node: OnnxNode): boolean {
  return operandsOf(node) !== undefined;
}

/** @throws {SyntaxError} where the bytes are no model. */
function parseModel(model: Uint8Array, path: string) {
  try {
    const fields = [...fieldsOf(model)];
    const graph = fields.find(({ no }) => no === 7);
    const parsed = graph && parseGraph(graph.bytes);
    if (parsed !== undefined && parsed.nodes.length > 0) {
      const functions = fields.filter(({ no }) => no === 25)
        .map(({ bytes }) => textsOf(bytes, 1)[0] ?? "");
      // Graphs inside it may be what is damaged.
      withinGraphs(parsed);
      return { graph: parsed, functions };
    }
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    // What the library throws of numbers that are none says no more.
    const what = error instanceof DamagedMessage ? damageOf(model, error) : "it is damaged";
    throw new InputSyntaxError(`Cannot read ${path}: ${what}`);
  }
  throw new InputSyntaxError(`Cannot read ${path}: it is no ONNX model, it has no graph of nodes`);
}

/** The names of the two operands of a node that is a layer. */
function operandsOf({ op, domain, inputs }: OnnxNode): [string, string] | undefined {
  if (!DOMAINS.includes(domain) || !Object.hasOwn(LAYER_OPS, op)) return undefined;
  // Of one operand, or of three, it is no product.
  if (op === "Einsum" && inputs.length !== 2) return undefined;
  const [first, second] = LAYER_OPS[op]!.operands;
  return [inputs[first] ?? "", inputs[second] ?? ""];
}

/** Who makes and who reads the tensors of a graph. */
interface GraphFacts {
  readonly makers: ReadonlyMap<string, OnnxNode>;
  readonly readers: ReadonlyMap<string, readonly OnnxNode[]>;
  readonly constants: ReadonlySet<string>;
  /** Tensors that come from the network's inputs through nothing that learns. */
  readonly given: ReadonlySet<string>;
}

/** Operators through which a network's input stays what was given. */
const WITHOUT_WEIGHTS = [
  ...["Cast", "Identity", "Transpose", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Pad"],
  ...["Slice", "Resize", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"],
  ...["Sub", "Div"],
];

function graphFacts(graph: OnnxGraph, inputs: ReadonlyMap<string, unknown>): GraphFacts {
  const makers = new Map<string, OnnxNode>();
  const readers = new Map<string, OnnxNode[]>();
  const constants = new Set(graph.constants.keys());
  const given = new Set(inputs.keys());
  for (const node of graph.nodes) {
    for (const name of node.outputs) makers.set(name, node);
    for (const name of node.inputs) readers.set(name, [...readers.get(name) ?? [], node]);
    if (node.op === "Constant") node.outputs.forEach((name) => constants.add(name));
    if (WITHOUT_WEIGHTS.includes(node.op) && given.has(node.inputs[0]!)) {
      node.outputs.forEach((name) => given.add(name));
    }
  }
  return { makers, readers, constants, given };
}

/** The layer of a node, or why it is none; undefined of what has no products. */
function takeNode(
  node: OnnxNode,
  known: ReadonlyMap<string, KnownValue>,
  facts: GraphFacts,
  functions: readonly string[],
): Omit<Layer, "name"> | string | undefined {
  const { op, domain, inputs } = node;
  if (functions.includes(op) && !DOMAINS.slice(0, 2).includes(domain)) {
    return `it calls the model's function ${op}`;
  }
  if (!DOMAINS.includes(domain)) return `${op} is of the domain ${domain}`;
  if (PRODUCTS_INSIDE.includes(op) || (op === "Einsum" && inputs.length > 2)) {
    return `${op} has products inside, which are not listed`;
  }
  const names = operandsOf(node);
  if (names === undefined) return undefined;
  const values = names.map((name) => known.get(name));
  const open = values.findIndex((value) => value === undefined);
  if (open >= 0) return `the shape of ${names[open] || "an operand"} depends on data`;
  const { bias, make } = LAYER_OPS[op]!;
  const [input, filter] = values as [KnownValue, KnownValue];
  const quantised = names.every((name) => facts.makers.get(name)?.op === "DequantizeLinear");
  const said = quantised ? "i8" : TYPES[filter.type] ?? TYPES[input.type] ?? "f32";
  const follows = [
    ...(bias !== undefined && (inputs[bias] ?? "") !== "" ? ["bias"] : []),
    ...followers(node, facts),
  ];
  try {
    return {
      ...make(node, [input.shape, filter.shape]),
      ...layerType(said),
      ...(follows.length === 0 ? {} : { follows }),
      ...(facts.given.has(names[0]) ? { first: true } : {}),
    };
  } catch (error) {
    if (isInputError(error)) return error.message;
    throw error;
  }
}

/** ONNX's activations by the names that they have here; a clip is mostly ReLU6. */
const ACTIVATIONS: Readonly<Record<string, string>> = {
  Relu: "relu",
  LeakyRelu: "leaky-relu",
  PRelu: "prelu",
  Sigmoid: "sigmoid",
  Tanh: "tanh",
  Gelu: "gelu",
  Clip: "clip",
  HardSwish: "hard-swish",
  HardSigmoid: "hard-sigmoid",
  Elu: "elu",
};

/** What follows a node before anything else reads its result: a normalisation, a bias, an activation. */
function followers(node: OnnxNode, { readers, constants }: GraphFacts): string[] {
  const words: string[] = [];
  const fused = node.attributes.get("activation")?.text;
  if (fused !== undefined) words.push(ACTIVATIONS[fused] ?? fused.toLowerCase());
  let at = node.outputs[0] ?? "";
  for (;;) {
    const next = readers.get(at) ?? [];
    const [one, two] = next;
    // x · sigmoid(x)
    if (next.length === 2 && next.some(({ op }) => op === "Mul")) {
      const sigmoid = [one!, two!].find(({ op }) => op === "Sigmoid");
      const mul = [one!, two!].find(({ op }) => op === "Mul")!;
      if (sigmoid && mul.inputs.includes(sigmoid.outputs[0]!)) words.push("silu");
    }
    if (next.length !== 1 || one === undefined) return words;
    const activation = ACTIVATIONS[one.op];
    if (activation !== undefined) return [...words, activation];
    if (one.op === "Add" && one.inputs.some((name) => constants.has(name))) words.push("bias");
    else if (one.op === "BatchNormalization") words.push("batch-norm");
    else return words;
    at = one.outputs[0] ?? "";
  }
}

/** Convolutions and products within branches and loops, but for nodes whose copies are listed. */
function withinGraphs(
  { nodes }: OnnxGraph,
  copied: ReadonlySet<string> = new Set(),
): { name: string; why: string }[] {
  return nodes.filter(({ outputs }) => !copied.has(outputs[0] ?? "")).flatMap((node) =>
    [...node.attributes.values()].flatMap(({ graphs }) => graphs).flatMap((bytes) => {
      const inner = parseGraph(bytes);
      const own = inner.nodes
        .filter((one) => operandsOf(one) !== undefined || PRODUCTS_INSIDE.includes(one.op))
        .map((one) => ({
          name: one.name || one.outputs[0] || one.op,
          why: `it is within ${node.op} ${node.name || node.outputs[0] || ""}`.trimEnd(),
        }));
      return [...own, ...withinGraphs(inner)];
    })
  );
}

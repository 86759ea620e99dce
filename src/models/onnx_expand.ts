/** Layers within branches and loops, brought into a model's main graph, where they can be listed and fetched like any other. */
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import {
  fieldsOf,
  graphBytes,
  message,
  nodeField,
  type OnnxGraph,
  type OnnxNode,
  parseGraph,
  parseNode,
  rewritten,
  textsOf,
} from "./onnx_format.ts";

/**
 * Says which of the conditions of a model are known, and what they are: those that it folds to constants where the model is listed, all
 * where it runs.
 */
export type ConditionsOf = (
  model: Uint8Array,
  names: readonly string[],
) => Promise<ReadonlyMap<string, boolean>>;

/** A model whose main graph has the layers of branches and loops. */
interface ExpandedModel {
  readonly model: Uint8Array;
  /** What was chosen, in words. */
  readonly notes: readonly string[];
  /** First outputs of the nodes that stay in the graph beside copies of what is inside them. */
  readonly copied: ReadonlySet<string>;
}

/** What is still within a branch or a loop after so many steps stays there. */
const MAX_ROUNDS = 64;

const SUBGRAPHS: Readonly<Record<string, readonly string[]>> = {
  If: ["then_branch", "else_branch"],
  Loop: ["body"],
  Scan: ["body"],
};

/**
 * Brings layers within If, Loop and Scan into the main graph. A branch whose condition is known takes its node's place. Else both do,
 * and what follows reads the results of the first; of a loop's body the first iteration stands before the node.
 *
 * @param isLayer Which nodes are wanted; a model in whose inner graphs there are none stays as it is.
 */
export async function expandModel(
  model: Uint8Array,
  isLayer: (node: OnnxNode) => boolean,
  conditionsOf: ConditionsOf,
): Promise<ExpandedModel> {
  const notes: string[] = [];
  /** Nodes that stay, by their first outputs: loops whose bodies were copied, branches without layers that may both be taken. */
  const kept = new Set<string>();
  const copied = new Set<string>();
  const inside = (node: OnnxNode) => canExpand(node) && holds(node, isLayer);
  if (!parseGraph(graphBytes(model)).nodes.some(inside)) return { model, notes, copied };
  let expanded = model;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const graph = graphBytes(expanded);
    const next = nextNodes(
      parseGraph(graph).nodes,
      (node) => !kept.has(node.outputs[0]!) && (node.op === "If" ? canExpand(node) : inside(node)),
    );
    if (next.size === 0) break;
    const known = constantConditions(graph);
    const open = [...next.values()].filter(({ op, inputs }) =>
      op === "If" && !known.has(inputs[0]!)
    );
    if (open.length > 0) {
      const names = new Set(open.map(({ inputs }) => inputs[0]!));
      for (const [name, value] of await conditionsOf(expanded, [...names])) known.set(name, value);
    }
    const parts: Uint8Array[] = [];
    for (const field of fieldsOf(graph)) {
      const first = field.no === 1 ? parseNode(field.bytes).outputs[0] : undefined;
      const node = first === undefined ? undefined : next.get(first);
      if (node === undefined) {
        parts.push(field.raw);
        continue;
      }
      const condition = node.op === "If" ? known.get(node.inputs[0]!) : undefined;
      const layers = holds(node, isLayer);
      if (layers) notes.push(noteOf(node, condition));
      if (condition !== undefined || layers) parts.push(...expandNode(node, condition));
      if (node.op === "If" && (condition !== undefined || layers)) continue;
      parts.push(field.raw);
      kept.add(first!);
      if (layers) copied.add(first!);
    }
    expanded = withGraph(expanded, parts);
  }
  return { model: expanded, notes, copied };
}

/** Nodes to expand by their first outputs, but for branches whose conditions depend on one of them. */
function nextNodes(
  nodes: readonly OnnxNode[],
  wanted: (node: OnnxNode) => boolean,
): Map<string, OnnxNode> {
  const next = new Map<string, OnnxNode>();
  const later = new Set<string>();
  for (const node of nodes) {
    const takes = wanted(node);
    if (takes && !(node.op === "If" && later.has(node.inputs[0]!))) {
      next.set(node.outputs[0]!, node);
    }
    if (takes || node.inputs.some((name) => later.has(name))) {
      node.outputs.forEach((name) => later.add(name));
    }
  }
  return next;
}

function noteOf({ op, name, outputs: [output] }: OnnxNode, condition?: boolean): string {
  const own = `${op} ${name || output}`;
  if (op !== "If") return `${own}: layers of its body are listed once, each iteration runs them`;
  return condition === undefined
    ? `${own}: layers of both branches are listed, a run takes one`
    : `${own}: its condition is ${condition}, the ${condition ? "then" : "else"} branch is listed`;
}

/** The model with a graph of other fields. */
function withGraph(model: Uint8Array, parts: readonly Uint8Array[]): Uint8Array {
  const writer = new BinaryWriter();
  let seen = false;
  for (const { no, raw } of fieldsOf(model)) {
    if (no !== 7 || seen) writer.raw(raw);
    else {
      seen = true;
      const length = parts.reduce((sum, part) => sum + part.length, 0);
      writer.tag(7, WireType.LengthDelimited).uint32(length);
      parts.forEach((part) => writer.raw(part));
    }
  }
  return writer.finish();
}

function canExpand({ op, inputs, attributes, outputs }: OnnxNode): boolean {
  const names = Object.hasOwn(SUBGRAPHS, op) ? SUBGRAPHS[op]! : [];
  const graphs = names.map((name) => attributes.get(name)?.graphs[0]);
  if (graphs.length === 0 || graphs.includes(undefined) || outputs[0] === undefined) return false;
  if (op === "If") return inputs.length === 1;
  // Scan of opset 8 has a batch of sequences, and an input more.
  const { length } = parseGraph(graphs[0]!).inputs;
  return length === inputs.length && length >= (op === "Loop" ? 2 : 1);
}

function holds(node: OnnxNode, isLayer: (node: OnnxNode) => boolean): boolean {
  return [...node.attributes.values()].flatMap(({ graphs }) => graphs)
    .flatMap((bytes) => parseGraph(bytes).nodes)
    .some((inner) => isLayer(inner) || holds(inner, isLayer));
}

/** Fields of the main graph that stand for a branch, or before a loop. */
function expandNode(node: OnnxNode, condition: boolean | undefined): Uint8Array[] {
  if (node.op !== "If") return bodyFields(node);
  const names = condition === undefined ? SUBGRAPHS.If! : [SUBGRAPHS.If![condition ? 0 : 1]!];
  return names.flatMap((name) => {
    const { fields, outputs } = inlined(
      node.attributes.get(name)!.graphs[0]!,
      prefixOf(node, name),
      new Map(),
    );
    if (name !== names[0]) return fields;
    const identities = node.outputs.map((output, at) =>
      nodeField("Identity", [outputs[at] ?? ""], output)
    );
    return [...fields, ...identities];
  });
}

/** A loop's body in its first iteration. */
function bodyFields(node: OnnxNode): Uint8Array[] {
  const body = node.attributes.get("body")!.graphs[0]!;
  const { inputs } = parseGraph(body);
  const prefix = prefixOf(node, "body");
  const fields: Uint8Array[] = [];
  const names = new Map<string, string>();
  if (node.op === "Loop") {
    const constants = [["iteration", INT64], ["condition", BOOL]] as const;
    for (const [at, [what, type]] of constants.entries()) {
      fields.push(scalarField(`${prefix}${what}`, type, type === BOOL ? 1 : 0));
      names.set(inputs[at]!.name, `${prefix}${what}`);
    }
    inputs.slice(2).forEach(({ name }, at) => names.set(name, node.inputs[at + 2]!));
  } else {
    const scans = node.attributes.get("num_scan_inputs")?.int ?? 0;
    const states = inputs.length - scans;
    const ints = (name: string, at: number) => node.attributes.get(name)?.ints[at] ?? 0;
    for (const [at, { name }] of inputs.entries()) {
      const from = node.inputs[at]!;
      if (at < states) names.set(name, from);
      else {
        const scan = at - states;
        const index = `${prefix}index/${scan}`;
        fields.push(
          scalarField(index, INT64, ints("scan_input_directions", scan) === 0 ? 0 : -1),
          nodeField("Gather", [from, index], `${prefix}${name}`, ints("scan_input_axes", scan)),
        );
        names.set(name, `${prefix}${name}`);
      }
    }
  }
  return [...fields, ...inlined(body, prefix, names).fields];
}

/** Outputs have names of their own, so what begins with one is of no other node. */
function prefixOf({ outputs: [output] }: OnnxNode, graph: string): string {
  return `${output}/${graph}/`;
}

/** A graph's nodes, constants and shapes as fields of the main graph, with names of their own, and what its outputs are called then. */
function inlined(
  graph: Uint8Array,
  prefix: string,
  outside: ReadonlyMap<string, string>,
): { fields: Uint8Array[]; outputs: string[] } {
  const parsed: OnnxGraph = parseGraph(graph);
  const names = new Map(outside);
  const own = [...parsed.constants.keys(), ...parsed.nodes.flatMap(({ outputs }) => outputs)];
  for (const name of own) if (name !== "") names.set(name, `${prefix}${name}`);
  const fields: Uint8Array[] = [];
  for (const { no, bytes } of fieldsOf(graph)) {
    if (no === 1) fields.push(message(1, renamedNode(bytes, names)));
    else if (no === 5) fields.push(message(5, renamedTexts(bytes, [8], names)));
    else if (no === 13) fields.push(message(13, renamedTexts(bytes, [1], names)));
  }
  return { fields, outputs: parsed.outputs.map(({ name }) => names.get(name) ?? name) };
}

/** A node with its tensors renamed, and what graphs inside it read. */
function renamedNode(node: Uint8Array, names: ReadonlyMap<string, string>): Uint8Array {
  return rewritten(node, (no, bytes) => {
    if (no === 1 || no === 2) return encoder.encode(renamed(bytes, names));
    if (no !== 5) return undefined;
    return rewritten(
      bytes,
      (no, graph) => no === 6 || no === 11 ? renamedGraph(graph, names) : undefined,
    );
  });
}

function renamedGraph(graph: Uint8Array, names: ReadonlyMap<string, string>): Uint8Array {
  return rewritten(graph, (no, bytes) => {
    if (no === 1) return renamedNode(bytes, names);
    return no === 12 ? renamedTexts(bytes, [1], names) : undefined;
  });
}

function renamedTexts(
  bytes: Uint8Array,
  fields: readonly number[],
  names: ReadonlyMap<string, string>,
): Uint8Array {
  return rewritten(
    bytes,
    (no, text) => fields.includes(no) ? encoder.encode(renamed(text, names)) : undefined,
  );
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function renamed(bytes: Uint8Array, names: ReadonlyMap<string, string>): string {
  const name = decoder.decode(bytes);
  return names.get(name) ?? name;
}

/** ONNX's numbers of element types. */
const INT64 = 7;
const BOOL = 9;

/** A field with a constant of no axes. */
function scalarField(name: string, type: number, value: number): Uint8Array {
  const writer = new BinaryWriter().tag(2, WireType.Varint).int32(type);
  writer.tag(8, WireType.LengthDelimited).string(name);
  if (type === BOOL) writer.tag(5, WireType.Varint).int32(value);
  else writer.tag(7, WireType.Varint).int64(value);
  return message(5, writer.finish());
}

/** Constants of one truth value, by their names: those of the graph, and of its Constant nodes. */
export function constantConditions(graph: Uint8Array): Map<string, boolean> {
  const values = new Map<string, boolean>();
  const take = (name: string, tensor: Uint8Array) => {
    const value = truthOf(tensor);
    if (value !== undefined) values.set(name, value);
  };
  for (const { no, bytes } of fieldsOf(graph)) {
    if (no === 5) take(textsOf(bytes, 8)[0] ?? "", bytes);
    if (no !== 1) continue;
    const { op, outputs: [output = ""] } = parseNode(bytes);
    if (op !== "Constant") continue;
    for (const attribute of fieldsOf(bytes)) {
      if (attribute.no !== 5) continue;
      for (const part of fieldsOf(attribute.bytes)) if (part.no === 5) take(output, part.bytes);
    }
  }
  return values;
}

/** The value of a tensor of one truth value. */
function truthOf(tensor: Uint8Array): boolean | undefined {
  let [type, elements] = [0, 1];
  let value: boolean | undefined;
  for (const { no, int, bytes } of fieldsOf(tensor)) {
    if (no === 1) elements *= bytes.length === 0 ? int : bytes.length === 1 ? bytes[0]! : 0;
    else if (no === 2) type = int;
    else if (no === 5) value = bytes.length === 0 ? int !== 0 : bytes[0] !== 0;
    else if (no === 9) value = bytes[0] !== 0;
  }
  return type === BOOL && elements === 1 ? value : undefined;
}

import { basename } from "node:path";
import { InputTypeError } from "../errors.ts";
import { shorten } from "../printable.ts";
import type { Operation } from "../problem/conv_problem.ts";
import { printDescriptor } from "../problem/descriptor.ts";
import { printGemm } from "../problem/gemm_suite.ts";
import { readText } from "../read_text.ts";
import {
  groupLayers,
  type Layer,
  type LayerGroup,
  type ModelLayers,
  type ModelOptions,
  withGradients,
} from "./layer.ts";
import { isMiopenLog, isOnednnLog, miopenLayers, onednnLayers } from "./logs.ts";

/**
 * Reads the layers of a model or a log.
 *
 * @throws {Deno.errors.NotFound} and kin where the file cannot be read.
 * @throws {TypeError | RangeError | SyntaxError} where it is no source of layers, or is damaged.
 */
export async function readModel(path: string, options: ModelOptions = {}): Promise<ModelLayers> {
  if (/\.onnx$/i.test(path)) {
    const { readOnnx } = await import("./onnx.ts");
    const found = await readOnnx(path, options);
    return options.training
      ? { ...found, layers: found.layers.flatMap((layer) => withGradients(layer)) }
      : found;
  }
  refuseForeign(path);
  const text = readText(path);
  const found = isOnednnLog(text)
    ? onednnLayers(text)
    : isMiopenLog(text)
    ? miopenLayers(text)
    : undefined;
  if (found === undefined) {
    throw new InputTypeError(
      `Cannot read ${path}: it is no .onnx file and holds neither lines of ONEDNN_VERBOSE nor ` +
        "commands of MIOpenDriver",
    );
  }
  if (options.batch !== undefined || options.inputShapes !== undefined || options.training) {
    throw new InputTypeError(
      `Cannot read ${path}: a log says its sizes and operations, ` +
        "--batch, --input-shape and --training are for models",
    );
  }
  return found;
}

/** @throws {TypeError} that says how to convert a file of another framework. */
function refuseForeign(path: string): void {
  const [, ending] = /\.(pt|pth|pt2|tflite|pb|h5|keras|safetensors)$/i.exec(path) ?? [];
  if (ending === undefined) return;
  throw new InputTypeError(
    `Cannot read ${path}: .${ending} is not read, export the model as ONNX, ` +
      "or use tools/wgconv_torch.py where PyTorch is",
  );
}

/** What a suite calls the network of a source: its file's name without its ending. */
export function networkName(path: string): string {
  return path === "-" ? "stdin" : basename(path).replace(/\.[^.]+$/, "") || "network";
}

const DIRECTIONS: Readonly<Record<Operation, string>> = {
  "fwd": "FWD_D",
  "bwd-data": "BWD_D",
  "bwd-filter": "BWD_W",
};
/** benchdnn's names. */
const TYPES = { f32: "f32", f16: "f16", bf16: "bf16", i8: "s8" } as const;
/** Most characters of a layer's name in its descriptor. */
const MAX_NAME = 60;
/** Characters of a line of comments. */
const LINE = 100;

/** A suite of layers: a line for each size with its count and first name, the other names in comments above it. */
export function suiteText(
  layers: readonly Layer[],
  { title, network }: { readonly title: string; readonly network: string },
): string {
  const groups = groupLayers(layers);
  const lines = [comment(`${title}: ${counted(layers, groups)}`)];
  let [dir, types] = ["FWD_D", "f32"];
  for (const group of groups) {
    const own = group.ops.map((op) => DIRECTIONS[op]).join();
    if ("conv" in group.problem && own !== dir) lines.push(`--dir=${dir = own}`);
    if (TYPES[group.dtype] !== types) lines.push(`--dt=${types = TYPES[group.dtype]}`);
    lines.push(...namesOf(group), named(group, `${plain(network).replaceAll("_", "-")}`));
  }
  return `${lines.join("\n")}\n`;
}

function counted({ length }: readonly Layer[], groups: readonly LayerGroup[]): string {
  return `${length} ${length === 1 ? "layer" : "layers"} of ${groups.length} ${
    groups.length === 1 ? "size" : "sizes"
  }`;
}

/** The descriptor with the network's name, the first layer's, and how many there are. */
function named({ problem, members }: LayerGroup, network: string): string {
  const own = plain(members[0]!.name) || "layer";
  const count = members.length === 1 ? "" : `*${members.length}`;
  const name = `${network}_${shorten(own, MAX_NAME)}${count}`;
  return "gemm" in problem
    ? printGemm({ ...problem.gemm, name })
    : printDescriptor({ ...problem.conv, name });
}

/** What a name may hold within a descriptor's quotes. */
function plain(name: string): string {
  return name.replace(/^\/+/, "").replace(/["#*\\\s\p{C}]/gu, "-");
}

/** Comments that name all layers of a size and what follows them; none where the descriptor says it all. */
function namesOf({ members, said }: LayerGroup): string[] {
  const plainOne = members.length === 1 && (members[0]!.follows ?? []).length === 0;
  const type = said === undefined ? [] : [comment(`${said}, run as f32`)];
  if (plainOne && members[0]!.name.length <= MAX_NAME) return type;
  const words = members.map(({ name, follows = [] }) =>
    [shorten(name, LINE), ...follows.map((one) => `+${one}`)].join(" ")
  );
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length + 4 <= LINE) {
      lines[lines.length - 1] = `${last}, ${word}`;
    } else lines.push(word);
  }
  return [...type, ...lines.map(comment)];
}

function comment(text: string): string {
  return `# ${text.replace(/\p{C}/gu, "-")}`;
}

import { basename } from "node:path";
import { InputTypeError } from "../errors.ts";
import { readText } from "../read_text.ts";
import { type ModelLayers, type ModelOptions, withGradients } from "./layer.ts";
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

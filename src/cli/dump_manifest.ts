/** The manifest of a model's tensors, as `wgconv layers --dump` writes it. */
import { dirname, join } from "node:path";
import * as v from "valibot";
import { defined } from "../defined.ts";
import { InputSyntaxError, InputTypeError, placedError } from "../errors.ts";
import { parseJson, schemaFault } from "../json.ts";
import { openNpy, type TensorSource } from "../npy/mod.ts";
import { broadcastSource } from "../npy/views.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { parseGemm } from "../problem/gemm_suite.ts";
import { readText } from "../read_text.ts";
import { convSubject } from "../run/conv_subject.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import type { Subject } from "../run/subject.ts";

const BYTE = v.picklist(["i8", "u8"]);

/** Of a convolution of bytes: tensors lie as nhwc and krsc, of scaled results the archive has a scale for each channel. */
const BYTES = v.object({
  inputDtype: BYTE,
  filterDtype: BYTE,
  inputZeroPoint: v.number(),
  /** `channel`: the archive has one for each. */
  filterZeroPoint: v.union([v.number(), v.literal("channel")]),
  outDtype: v.picklist(["i32", "i8", "u8"]),
  outputZeroPoint: v.optional(v.number()),
});

const LAYER = v.object({
  name: v.string(),
  /** An archive beside the manifest. */
  file: v.pipe(v.string(), v.regex(/^[\w.-]+\.npz$/, "an .npz file beside the manifest")),
  /** An operation, or `gemm`. */
  op: v.picklist(["fwd", "bwd-data", "bwd-filter", "gemm"]),
  /** A descriptor, or what a line of a suite says of a product. */
  problem: v.string(),
  alpha: v.optional(v.number()),
  beta: v.optional(v.number()),
  /** Whether a convolution's result has a bias. */
  bias: v.optional(v.boolean()),
  bytes: v.optional(BYTES),
});

const MANIFEST = v.object({
  schema: v.literal(1),
  kind: v.literal("dump"),
  model: v.string(),
  runtime: v.string(),
  feeds: v.record(v.string(), v.string()),
  layers: v.array(LAYER),
});

/** A layer of a manifest. */
export type DumpedLayer = v.InferOutput<typeof LAYER>;
/** What a manifest says. */
export type DumpManifest = v.InferOutput<typeof MANIFEST>;

/**
 * Reads a manifest, and gives the folder of its archives.
 *
 * @throws {SyntaxError} where it is none. {Deno.errors.NotFound} and kin.
 */
export function readManifest(path: string): { manifest: DumpManifest; folder: string } {
  const refuse = (what: string) =>
    new InputSyntaxError(`Cannot read ${path}: it is no manifest of wgconv layers --dump: ${what}`);
  const parsed = v.safeParse(
    MANIFEST,
    parseJson(readText(path), (what, line) => refuse(`line ${line} ${what}`)),
  );
  if (!parsed.success) throw refuse(schemaFault(parsed.issues[0], "the text").what);
  parsed.output.layers.forEach((layer, index) => {
    try {
      problemOf(layer);
    } catch (error) {
      throw placedError(error, `Cannot read ${path}: layers.${index}.problem`);
    }
  });
  return { manifest: parsed.output, folder: dirname(path) };
}

/** A layer's tensors, opened. */
interface OpenedLayer extends Disposable {
  readonly subject: Subject;
  readonly files: Readonly<Record<string, TensorSource>>;
  /** What the runtime computed. */
  readonly result: TensorSource;
}

/**
 * Opens a layer's archive.
 *
 * @param dtype In which the layer is computed.
 * @throws {TypeError} where a tensor has another shape than the layer says. {Deno.errors.NotFound} and kin.
 */
export async function openLayer(
  layer: DumpedLayer,
  folder: string,
  dtype: "f32" | "f16" | "bf16",
  doing: string,
): Promise<OpenedLayer> {
  const subject = subjectOf(layer, dtype);
  using opened = new DisposableStack();
  const open = async (part: string, expected: readonly number[]) => {
    const file = opened.use(await openNpy(`${join(folder, layer.file)}:${part}`));
    if (file.shape.join() === expected.join()) return file;
    // A product's C is stored as the model has it.
    if (part === "c") return broadcastSource(file, expected);
    throw new InputTypeError(
      `${doing}: ${file.path} has shape [${file.shape.join(", ")}], expected [${
        expected.join(", ")
      }]`,
    );
  };
  const files: Record<string, TensorSource> = {};
  for (const { role, shape } of subject.operands) files[role] = await open(role, shape);
  const result = await open("result", subject.result.shape);
  const kept = opened.move();
  return { subject, files, result, [Symbol.dispose]: () => kept.dispose() };
}

/** @throws {SyntaxError | RangeError} where its text is none. */
function problemOf({ op, problem, alpha = 1, beta = 0, name }: DumpedLayer) {
  return op === "gemm"
    ? { gemm: gemmProblem({ ...parseGemm(problem), alpha, beta, name }) }
    : { conv: { ...parseDescriptor(problem, op), name } };
}

function subjectOf(layer: DumpedLayer, dtype: "f32" | "f16" | "bf16"): Subject {
  const { bias = false, bytes } = layer;
  const { gemm, conv } = problemOf(layer);
  if (gemm !== undefined) return gemmSubject(gemm, { dtype });
  if (bytes !== undefined) {
    const { outDtype, outputZeroPoint, ...integers } = bytes;
    const scaled = outDtype === "i32"
      ? {}
      : { scale: "channel", zeroPoint: outputZeroPoint } as const;
    return convSubject({
      problem: conv,
      layout: "nhwc",
      filterLayout: "krsc",
      ...{ dtype: "i8", outDtype, integers },
      epilogue: { bias, activation: "none", ...defined(scaled) },
    });
  }
  return convSubject({
    problem: conv,
    layout: "nchw",
    filterLayout: "kcrs",
    dtype,
    epilogue: { bias, activation: "none" },
  });
}

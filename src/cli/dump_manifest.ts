/** The manifest of a model's tensors, as `wgconv layers --dump` writes it. */
import { dirname } from "node:path";
import * as v from "valibot";
import { InputSyntaxError } from "../errors.ts";
import { readText } from "../read_text.ts";

const LAYER = v.object({
  name: v.string(),
  /** An archive beside the manifest. */
  file: v.pipe(v.string(), v.regex(/^[\w.-]+\.npz$/)),
  /** An operation, or `gemm`. */
  op: v.picklist(["fwd", "bwd-data", "bwd-filter", "gemm"]),
  /** A descriptor, or what a line of a suite says of a product. */
  problem: v.string(),
  alpha: v.optional(v.number()),
  beta: v.optional(v.number()),
  /** Whether a convolution's result has a bias. */
  bias: v.optional(v.boolean()),
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
  let json: unknown;
  try {
    json = JSON.parse(readText(path));
  } catch (error) {
    if (error instanceof SyntaxError) throw refuse(error.message);
    throw error;
  }
  const parsed = v.safeParse(MANIFEST, json);
  if (!parsed.success) {
    const { message } = parsed.issues[0];
    const at = v.getDotPath(parsed.issues[0]);
    throw refuse(at === null ? message : `${at}: ${message}`);
  }
  return { manifest: parsed.output, folder: dirname(path) };
}

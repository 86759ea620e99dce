import { InputTypeError } from "../errors.ts";
import { printableMessage } from "../printable.ts";
import { formatError } from "../report/format.ts";
import { type CaseRecord, isUnproved } from "../report/record.ts";
import { defaultFill } from "../run/operands.ts";
import { type DumpedLayer, openLayer, readManifest } from "./dump_manifest.ts";
import { reporter, sayFailed } from "./output.ts";
import { verifyFiles } from "./verify_files.ts";
import type { ClaimOptions } from "./verify_options.ts";

const DOING = "Cannot verify";

/**
 * Verifies every layer of a manifest, a line each, and names those that are off.
 *
 * @param onRecord Gets each layer's record.
 * @returns Whether all are right.
 */
export async function verifyManifest(
  path: string,
  options: ClaimOptions,
  onRecord: (record: CaseRecord) => void,
): Promise<boolean> {
  const { manifest: { layers, model, runtime }, folder } = readManifest(path);
  if (layers.length === 0) throw new InputTypeError(`${DOING} ${path}: it has no layer`);
  const out = reporter(options.json ? "stderr" : "stdout");
  const provider = options.provider === "other" ? runtime : options.provider;
  let off = 0;
  for (const [place, layer] of layers.entries()) {
    const record = await verifyLayer(layer, folder, { ...options, provider });
    onRecord(record);
    const { verdict, message, arithmetic = "", accuracy } = record;
    const where = `layer ${place + 1} of ${layers.length}, ${layer.name}`;
    const said = verdict === "pass"
      ? `${arithmetic}, MARE ${formatError(accuracy?.mare ?? null)}`
      : `${record.problem}: ${message ?? "not said why"}`;
    const line = printableMessage(`${verdict}: ${where}: ${said}`);
    out.line(line);
    if (!isUnproved(record)) continue;
    off++;
    sayFailed(line);
  }
  out.line(`${layers.length - off} of ${layers.length} layers of ${model} by ${runtime} pass`);
  return off === 0;
}

async function verifyLayer(
  layer: DumpedLayer,
  folder: string,
  options: ClaimOptions,
): Promise<CaseRecord> {
  using opened = await openLayer(layer, folder, "f32", DOING);
  const { subject, files, result } = opened;
  const source = { files, fill: defaultFill("f32"), seed: options.seed };
  // A runtime's f32 is f32, with Winograd at most: `auto` would take an error for a coarser type.
  const { arithmetic: asked } = options;
  const arithmetic = asked === "auto" && result.dtype === "f32" ? "f32-any" : asked;
  const claim = { ...options, arithmetic };
  const { record } = await verifyFiles(subject, source, { output: result, result }, claim);
  return record;
}

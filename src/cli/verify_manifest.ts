import { join } from "node:path";
import { InputTypeError } from "../errors.ts";
import { openNpy, type TensorSource } from "../npy/mod.ts";
import { broadcastSource } from "../npy/views.ts";
import { printableMessage } from "../printable.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { parseGemm } from "../problem/gemm_suite.ts";
import { formatError } from "../report/format.ts";
import { type CaseRecord, isUnproved } from "../report/record.ts";
import { convSubject } from "../run/conv_subject.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import { defaultFill } from "../run/operands.ts";
import type { Subject } from "../run/subject.ts";
import { type DumpedLayer, readManifest } from "./dump_manifest.ts";
import { reporter, sayFailed } from "./output.ts";
import { verifyFiles } from "./verify_files.ts";
import type { ClaimOptions } from "./verify_options.ts";

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
  if (layers.length === 0) throw new InputTypeError(`Cannot verify ${path}: it has no layer`);
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
  const subject = subjectOf(layer);
  using opened = new DisposableStack();
  const open = async (part: string) =>
    opened.use(await openNpy(`${join(folder, layer.file)}:${part}`));
  const files: Record<string, TensorSource> = {};
  for (const { role, shape } of subject.operands) {
    const file = await open(role);
    const same = file.shape.join() === shape.join();
    files[role] = role === "c" && !same ? broadcastSource(file, shape) : file;
    if (!same && role !== "c") refuseShape(file, shape);
  }
  const result = await open("result");
  if (result.shape.join() !== subject.result.shape.join()) {
    refuseShape(result, subject.result.shape);
  }
  const source = { files, fill: defaultFill("f32"), seed: options.seed };
  // A runtime's f32 is f32, with Winograd at most: `auto` would take an error for a coarser type.
  const { arithmetic: asked } = options;
  const arithmetic = asked === "auto" && result.dtype === "f32" ? "f32-any" : asked;
  const claim = { ...options, arithmetic };
  const { record } = await verifyFiles(subject, source, { output: result, result }, claim);
  return record;
}

function refuseShape({ path, shape }: TensorSource, expected: readonly number[]): never {
  throw new InputTypeError(
    `Cannot verify: ${path} has shape [${shape.join(", ")}], expected [${expected.join(", ")}]`,
  );
}

function subjectOf({ op, problem, alpha = 1, beta = 0, bias = false, name }: DumpedLayer): Subject {
  if (op === "gemm") {
    return gemmSubject(gemmProblem({ ...parseGemm(problem), alpha, beta }), { dtype: "f32" });
  }
  return convSubject({
    problem: { ...parseDescriptor(problem, op), name },
    layout: "nchw",
    filterLayout: "kcrs",
    dtype: "f32",
    epilogue: { bias, activation: "none" },
  });
}

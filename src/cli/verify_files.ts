/** Operands and results of other programs, as they are verified. */
import { join } from "node:path";
import { failureFile, quoted } from "../bench/failures.ts";
import { defined } from "../defined.ts";
import { InputTypeError } from "../errors.ts";
import { refuseWrite } from "../npy/atomic_write.ts";
import { type TensorSource, writeNpz } from "../npy/mod.ts";
import { permutedSource, reshapedSource } from "../npy/views.ts";
import { printableMessage } from "../printable.ts";
import { formatError } from "../report/format.ts";
import { type CaseRecord, isUnproved } from "../report/record.ts";
import { caseRecord } from "../run/case_record.ts";
import { defaultFill, type OperandSource, readWidest } from "../run/operands.ts";
import { type HostData, isIntegral, type Subject, titleOf } from "../run/subject.ts";
import { type DType, dtypeOf } from "../tensor/dtype.ts";
import { type Tensor, tensor } from "../tensor/tensor.ts";
import { claimDtype } from "../verify/claims.ts";
import { diagnose, diagnosisText } from "../verify/diagnose.ts";
import { type SmallCase, smallestCase } from "../verify/smallest.ts";
import { verifySubject } from "../verify/verify.ts";
import { formShape, type ResultForm } from "./conv_files.ts";
import { type DumpedLayer, openLayer, readManifest } from "./dump_manifest.ts";
import { progress, reporter, sayFailed } from "./output.ts";
import type { ClaimOptions } from "./verify_options.ts";

const DOING = "Cannot verify";

/** In what a subject is made: others than these are rounded on the way. */
type SubjectDType = "f32" | "f64" | "i8";

type Files = { readonly [role: string]: TensorSource | undefined };

/** How it is found out what operands are opened as. */
interface Opening {
  readonly output: TensorSource;
  readonly claim: string;
  readonly inputs: readonly (string | undefined)[];
  /** Whether they are a product's, which has a reference of its own for f64. */
  readonly products?: boolean;
}

/**
 * Opens operands as what the claim says they are. Of `auto` they are i8 where they are bytes and the result is of whole numbers,
 * and f64 where a product and its operands are; what comes from stdin, which is opened once, is f32.
 */
export async function openAs<T extends Disposable & { readonly files: Files }>(
  open: (dtype: SubjectDType) => Promise<T>,
  { output, claim, inputs, products = false }: Opening,
): Promise<T & { readonly dtype: SubjectDType }> {
  const named = claimDtype(claim.trim());
  const said = named === "f64" && !products ? "f32" : named;
  const opened = await open(said);
  const types = Object.values(opened.files).flatMap((file) => file === undefined ? [] : file.dtype);
  const isByte = (dtype: DType) => dtype === "i8" || dtype === "u8";
  const found = claim.trim() !== "auto" || inputs.includes("-") || types.length < 2
    ? said
    : isWhole(output.dtype) && types.slice(0, 2).every(isByte)
    ? "i8"
    : products && [output.dtype, ...types].every((dtype) => dtype === "f64")
    ? "f64"
    : said;
  if (found === said) return { ...opened, dtype: said };
  opened[Symbol.dispose]();
  return { ...await open(found), dtype: found };
}

function isWhole(dtype: string): boolean {
  return /^[iu]/.test(dtype);
}

/**
 * The result of a convolution as the subject has it, of a file that lies as `conv` would write it, or with a batch of one.
 *
 * @throws {TypeError} where its shape is another.
 */
export function convResultSource(
  output: TensorSource,
  { result: { shape } }: Subject,
  form: ResultForm,
): TensorSource {
  const { dropped, axes } = form;
  if (dropped !== undefined && isShape(output, shape)) return output;
  expectShape(output, formShape(form, shape));
  if (dropped !== undefined) return reshapedSource(output, shape);
  return axes === undefined ? output : permutedSource(output, shape.map((_, i) => axes.indexOf(i)));
}

/**
 * The result of a product, whose batch may be of several axes.
 *
 * @throws {TypeError} where its shape is another.
 */
export function productSource(
  output: TensorSource,
  { result }: Subject,
  shape: readonly number[],
): TensorSource {
  expectShape(output, shape);
  return reshapedSource(output, result.shape);
}

function isShape({ shape: own }: TensorSource, shape: readonly number[]): boolean {
  return own.length === shape.length && own.every((size, axis) => size === shape[axis]);
}

function expectShape(output: TensorSource, shape: readonly number[]): void {
  if (isShape(output, shape)) return;
  throw new InputTypeError(
    `${DOING}: ${output.path} has shape [${output.shape.join(", ")}], the result of these ` +
      `operands has [${shape.join(", ")}]`,
  );
}

/** A result of files, verified. */
export interface VerifiedFiles {
  readonly record: CaseRecord;
  /** Saves the smallest part that is wrong, where that is wanted; gives lines that say where, and how to check it again. */
  save(): Promise<readonly string[]>;
}

/** Reads operands and result, and makes the record of what the gate says. */
export async function verifyFiles(
  subject: Subject,
  source: OperandSource,
  { output, result }: { readonly output: TensorSource; readonly result: TensorSource },
  { arithmetic, provider, saveFailures }: ClaimOptions,
): Promise<VerifiedFiles> {
  const { seed, fill, files } = source;
  const stored = output.dtype;
  if (isIntegral(subject) && !isWhole(stored)) {
    throw new InputTypeError(
      `${DOING}: ${output.path} is ${stored}, sums of i8 are whole numbers, as of i32`,
    );
  }
  const narrow = stored === "f16" || stored === "bf16" || stored === "f32";
  const as = isIntegral(subject) ? subject.result.dtype : narrow ? "f32" : "f64";
  const shown = progress();
  try {
    const operands = await readWidest(subject, source);
    const data = (await result.readAs(as)).data as HostData;
    const asked = {
      ...{ arithmetic, seed },
      results: stored === "f16" || stored === "bf16" ? stored : undefined,
    };
    const verified = await verifySubject(subject, operands, data, {
      ...asked,
      onProgress: (fraction) => shown.update(`checking ${(100 * fraction).toFixed(0)} %`),
    });
    const found = verified.verdict === "fail"
      ? await diagnose({ subject, operands, result: data, verified, ...asked })
      : undefined;
    const given = Object.values(files).find((file) => file !== undefined);
    const dtype = given === undefined ? subject.traits.dtype : given.dtype;
    const setup = {
      ...subject.traits,
      ...{ algorithm: "other", device: "", provider, dtype },
      ...defined({ outDtype: stored === dtype ? undefined : stored }),
      ...(given === undefined ? { made: { fill, seed } } : {}),
      claimed: {
        ...(["auto", dtype].includes(arithmetic) ? {} : { math: arithmetic }),
        arithmetic: verified.arithmetic,
        ...(found && { diagnosis: diagnosisText(found) }),
      },
    };
    const small = saveFailures === undefined || found?.worst === undefined
      ? undefined
      : smallestCase(subject, operands, data, found.worst);
    const save = async () =>
      small === undefined ? [] : await saveSmall(small, {
        folder: saveFailures!,
        name: `${provider} ${titleOf(subject)}`,
        arithmetic,
        half: stored === "f16",
        gemm: "gemm" in subject.asked,
      });
    return { record: caseRecord(setup, verified), save };
  } finally {
    shown.done();
  }
}

/** How a small case is saved. */
interface Saving {
  readonly folder: string;
  readonly name: string;
  readonly arithmetic: string;
  /** Whether the result's file is of f16, as `got` is to be. */
  readonly half: boolean;
  readonly gemm: boolean;
}

/** Saves operands, `got` and `ref` of a small case; gives lines that say so. */
async function saveSmall(
  { subject, operands, got, options }: SmallCase,
  { folder, name, arithmetic, half, gemm }: Saving,
): Promise<string[]> {
  await Deno.mkdir(folder, { recursive: true }).catch((error) => refuseWrite(folder, error));
  const path = join(folder, failureFile(name));
  const tensors = Object.fromEntries(
    subject.operands.map(({ role, shape }) => [role, asTensor(operands[role]!, shape)]),
  );
  const { shape } = subject.result;
  const { values } = await subject.reference.of(operands, {});
  const ref = tensor("f64", shape, Float64Array.from(values));
  const stored = asTensor(half ? Float16Array.from(got) : got, shape);
  await writeNpz(path, { ...tensors, got: stored, ref });
  const flags = Object.keys(tensors).flatMap((role) => [
    `--${role === "output" ? "grad-output" : role}`,
    `${path}:${role}`,
  ]);
  const words = [
    ...["wgconv", "verify", ...(gemm ? ["gemm"] : [])],
    ...[...flags, ...options, "--output", `${path}:got`, "--arithmetic", arithmetic],
  ];
  return [`saved       ${path}`, `repeat      ${words.map(quoted).join(" ")}`];
}

function asTensor(data: HostData, shape: readonly number[]): Tensor {
  return tensor(dtypeOf(data), shape, data);
}

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
  const arithmetic = asked === "auto" && ["f32", "bf16"].includes(result.dtype) ? "f32-any" : asked;
  const claim = { ...options, arithmetic };
  const { record } = await verifyFiles(subject, source, { output: result, result }, claim);
  return record;
}

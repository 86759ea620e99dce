import { InputTypeError } from "../errors.ts";
import { expectFields, expectObject } from "../expect.ts";
import type { TensorSource } from "../npy/mod.ts";
import { convertDType, convertValues } from "../tensor/convert.ts";
import { arrayConstructor, type DType } from "../tensor/dtype.ts";
import { type FillKind, fillTensor } from "../tensor/fill.ts";
import { permute } from "../tensor/layout.ts";
import { elementCount, tensor } from "../tensor/tensor.ts";
import {
  type HostData,
  type HostOperands,
  isIntegral,
  type OperandData,
  type PlanOperands,
  type Subject,
  type SubjectTensor,
} from "./subject.ts";

/** The fill of made data where none is named: of integers all that int8 holds. */
export function defaultFill(dtype: string): FillKind {
  return dtype === "i8" ? "int8" : "uniform01";
}

/** What the output's gradient is multiplied by. */
interface LossScale {
  /**
   * Loss scaling: before it is rounded to its type, the gradient is multiplied by this, and the result is so many times as
   * large. 1 where absent.
   */
  readonly lossScale?: number;
}

/** How operands are made that no file holds. */
interface MadeData extends LossScale {
  readonly fill: FillKind;
  readonly seed: number;
}

/** What is read of an operand's file. */
type OperandFile = Pick<TensorSource, "dtype" | "readAs" | "chunksAs">;

/** Where operands come from: their files, or made. */
export interface OperandSource extends MadeData {
  readonly files: { readonly [role in keyof HostOperands]?: OperandFile };
}

/** What is added to a run's seed, so that no two of its tensors are alike. */
const SEED_OFFSET: Readonly<Record<string, number>> = {
  input: 0,
  filter: 1,
  output: 2,
  a: 0,
  b: 1,
  c: 2,
  bias: 3,
  scale: 3,
  filterZeroPoint: 3,
  residual: 4,
};
/** Of what activations read. */
const OTHER_OFFSET = 5;

/** Fills one operand: the same bits for the same shape, dtype, kind and seed everywhere. */
export function fillOperand(one: SubjectTensor, made: MadeData): HostData {
  const { role, dtype, shape } = one;
  const factor = factorOf(one, made);
  const filled = <D extends DType>(as: D) =>
    fillTensor(as, shape, made.fill, made.seed + (SEED_OFFSET[role] ?? OTHER_OFFSET)).data;
  return factor === 1 ? filled(dtype) as HostData : scaledTo(dtype, filled("f32"), factor);
}

function factorOf({ role }: SubjectTensor, { lossScale = 1 }: LossScale): number {
  return role === "output" ? lossScale : 1;
}

function scaledTo(dtype: DType, values: Float32Array, factor: number): HostData {
  const scaled = new (arrayConstructor(dtype))(values.length) as HostData;
  for (let i = 0; i < values.length; i++) scaled[i] = values[i]! * factor;
  return dtype === "bf16" ? rounded(scaled) : scaled;
}

/** A copy of values as bf16 has them. */
function rounded(values: HostData): HostData {
  const copy = new Float32Array(values.length);
  convertValues(values, "f32", copy, "bf16");
  return copy;
}

/** Fills all operands that a subject reads. */
export function fillOperands(subject: Subject, fill: FillKind, seed: number): HostOperands {
  return Object.fromEntries(
    subject.operands.map((one) => [one.role, fillOperand(one, { fill, seed })]),
  );
}

/** The operands in memory: read from their files, or made. */
export async function readOperands(subject: Subject, from: OperandSource): Promise<HostOperands> {
  const operands: Record<string, HostData> = {};
  for (const one of subject.operands) {
    const file = from.files[one.role];
    const factor = factorOf(one, from);
    operands[one.role] = file === undefined
      ? fillOperand(one, from)
      : factor === 1
      ? (await file.readAs(one.dtype, { shared: true })).data as HostData
      : scaledTo(one.dtype, (await file.readAs("f32")).data, factor);
  }
  return operands;
}

/**
 * The operands in memory as their files have them: in f32 where it holds their type, in f64 otherwise. Of a subject that is exact, or
 * in f64, they are in its own types.
 */
export async function readWidest(subject: Subject, from: OperandSource): Promise<HostOperands> {
  const own = isIntegral(subject) || subject.result.dtype === "f64";
  const operands = subject.operands.map((one) => {
    const dtype = from.files[one.role]?.dtype;
    const narrow = dtype === undefined || NARROW.includes(dtype);
    return own || narrow ? one : { ...one, dtype: "f64" as const };
  });
  return await readOperands({ ...subject, operands }, from);
}

/** Types whose values f32 holds. */
const NARROW: readonly DType[] = ["f16", "bf16", "f32", "i8", "u8", "i16", "u16", "bool"];

/** The operands as streams of chunks; made ones whole. */
export function chunkedOperands(subject: Subject, from: OperandSource): PlanOperands {
  return Object.fromEntries(
    subject.operands.map((one) => {
      const file = from.files[one.role];
      return [one.role, file ? () => chunksOf(file, one, from) : fillOperand(one, from)];
    }),
  );
}

async function* chunksOf(file: OperandFile, one: SubjectTensor, from: LossScale) {
  const factor = factorOf(one, from);
  if (factor === 1) return yield* file.chunksAs(one.dtype);
  for await (const values of file.chunksAs("f32")) yield scaledTo(one.dtype, values, factor);
}

/**
 * The operands that a subject reads, of those that a caller gives; of bf16 rounded to it. Where they are looked into before they are on their way to the
 * device, as integers are (`admit`), they are copies.
 *
 * @param copied Whether they are in any event.
 *
 * @throws {TypeError} where one is missing, or of another size or type, and for one that the subject does not read.
 */
export function usedOperands(
  doing: string,
  subject: Subject,
  operands: HostOperands,
  copied = false,
): HostOperands {
  expectObject(doing, "operands", operands, "arrays");
  expectFields(doing, "operand", operands, subject.operands.map(({ role }) => role));
  return Object.fromEntries(subject.operands.map(({ role, dtype, shape }) => {
    const data = operands[role];
    const count = elementCount(shape);
    if (data === undefined) throw new InputTypeError(`${doing}: ${role} is missing`);
    if (!(data instanceof arrayConstructor(dtype))) {
      throw new InputTypeError(`${doing}: ${role} is no ${dtype} data`);
    }
    if (data.length === count) {
      if (dtype === "bf16") return [role, rounded(data)];
      return [role, copied || subject.planner.admit ? data.slice() : data];
    }
    throw new InputTypeError(
      `${doing}: ${role} has ${data.length} elements, its shape [${shape}] has ${count}`,
    );
  }));
}

/** Values of a result in canonical order, rounded to its type and laid out as it lies in memory. */
export function fromCanonical(
  { shape, axes, result }: Subject,
  values: Float64Array,
): HostData {
  const rounded = convertDType(
    tensor("f64", shape, new Float64Array(values)),
    result.dtype,
  );
  return permute(rounded, axes).data as HostData;
}

/** Operands that are being read: taken once, and done with before their files are closed. */
export interface OperandsAhead extends AsyncDisposable {
  readonly operands: PlanOperands;
}

/** Begins to read operands that come in chunks: the first ones are there, or on their way, when they are asked for. */
export function aheadOf(operands: PlanOperands): OperandsAhead {
  const begun: AsyncIterableIterator<unknown>[] = [];
  const own = Object.entries(operands).map(([role, data]: [string, OperandData]) => {
    if (typeof data !== "function") return [role, data];
    const chunks = begin(data());
    begun.push(chunks);
    return [role, () => chunks];
  });
  return {
    operands: Object.fromEntries(own),
    async [Symbol.asyncDispose]() {
      await Promise.all(begun.map((chunks) => chunks.return!()));
    },
  };
}

/** The same chunks, of which the first one is asked for now. */
function begin<T>(chunks: AsyncIterable<T>): AsyncIterableIterator<T> {
  const iterator = chunks[Symbol.asyncIterator]();
  let first: Promise<IteratorResult<T>> | undefined = iterator.next();
  // What fails of it is thrown where it is taken.
  first.catch(() => {});
  return {
    next() {
      const next = first ?? iterator.next();
      first = undefined;
      return next;
    },
    async return() {
      await iterator.return?.();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

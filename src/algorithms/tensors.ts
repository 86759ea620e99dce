import {
  biasOf,
  type ElementChoice,
  type Elements,
  elementsOf,
  sumOf,
} from "../elements/elements.ts";
import { type Scalar, scalarBytes, type Stored } from "../elements/scalar.ts";
import {
  type ModuleBuilder,
  moduleBuilder,
  type SizeMode,
  splitTensor,
  splitTrait,
  type TensorSplit,
} from "../kernels/module.ts";
import type { ReduceShape } from "../kernels/reduce.ts";
import {
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  resultTensor,
  tensorBytes,
  tensorShape,
} from "../problem/conv_problem.ts";
import { type ChannelOperand, channelOperands } from "../problem/epilogue.ts";
import { stridesInLayout } from "../tensor/layout.ts";
import { elementCount } from "../tensor/tensor.ts";
import type { BufferRole, DeviceLimits, Plan, PlanBinding, PlanBuffer } from "./plan.ts";
import { type Planned, type Refusal, refusal } from "./refusal.ts";
import type { PlanRequest } from "./request.ts";

/** Bytes of a buffer: whole words, and never too small for a binding of one vec4. */
export function bufferBytes(elements: number, element: Stored): number {
  const bytes = scalarBytes(element);
  return Math.max(4 * bytes, wholeBytes(bytes * elements));
}

/** What a buffer of so many bytes takes at least. */
export function wholeBytes(bytes: number): number {
  return Math.max(16, Math.ceil(bytes / 4) * 4);
}

/** Kernels count in 32 bits. */
function tooManyElements(name: string, elements: number): Refusal | undefined {
  return elements < 2 ** 32
    ? undefined
    : refusal("problem", `${name} has ${elements} elements, kernels count up to 2^32`);
}

function tooManyBytes(
  name: string,
  bytes: number,
  { maxBufferSize }: DeviceLimits,
): Refusal | undefined {
  if (bytes <= maxBufferSize) return undefined;
  return refusal(
    "limit",
    `${name} takes ${bytes} bytes, the device's maxBufferSize is ${maxBufferSize}`,
  );
}

/** Whether a buffer can be had of so many elements. */
export function fitsBuffer(elements: number, element: Stored, limits: DeviceLimits): boolean {
  return tooManyElements("", elements) === undefined &&
    tooManyBytes("", bufferBytes(elements, element), limits) === undefined;
}

/**
 * Refuses a problem whose tensors no plan can have, before anything is made of its sizes: of more elements than 32 bits
 * count, or than the device can hold.
 */
export function refuseHugeTensors(
  request: Pick<PlanRequest, "problem" | "limits" | "dtype" | "outDtype">,
): Refusal | undefined {
  const { problem, limits } = request;
  for (const which of [...operandTensors(problem.op), resultTensor(problem.op)]) {
    const elements = tensorElements(problem, which);
    const refused = tooManyElements(which, elements) ??
      tooManyBytes(which, bufferBytes(elements, tensorScalar(request, which)), limits);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

/** Collects a plan's buffers, and the first reason why the device cannot run what is made of them. */
export class BufferList {
  readonly list: PlanBuffer[] = [];
  #refused: Refusal | undefined;

  /** @param mode Where the plan's kernels have their sizes. */
  constructor(readonly limits: DeviceLimits, readonly mode: SizeMode = "constant") {}

  /** Why there is no plan; the first of several reasons. */
  get refused(): Refusal | undefined {
    return this.#refused;
  }

  /** Notes why there is no plan. Planning goes on, and is for nothing. */
  refuse(reason: Refusal | undefined): void {
    this.#refused ??= reason;
  }

  /** Adds a buffer and returns its place; refused if it exceeds the device's `maxBufferSize`. */
  add(name: string, role: PlanBuffer["role"], elements: number, element: Stored): number {
    const bytes = bufferBytes(elements, element);
    this.refuse(tooManyElements(name, elements) ?? tooManyBytes(name, bytes, this.limits));
    const packed = element === "bf16" ? { dtype: element } : {};
    return this.list.push({ name, role, bytes, ...packed }) - 1;
  }

  /** Adds a buffer that is allocated beside the tensors. */
  workspace(name: string, elements: number, element: Stored): number {
    return this.add(name, "workspace", elements, element);
  }

  /** How several buffers are spread, by the names that kernels bind. */
  splits<K extends string>(buffers: Readonly<Record<K, number>>): Record<K, TensorSplit> {
    const split = Object.entries<number>(buffers).map(([name, one]) => [name, this.split(one)]);
    return Object.fromEntries(split);
  }

  /** A module of kernels that bind these buffers by name. */
  module(buffers: Readonly<Record<string, number>>): ModuleBuilder {
    return moduleBuilder(this.mode, this.splits(buffers));
  }

  /** What stands in a kernel's name of buffers that are spread over several bindings. */
  splitTrait(...buffers: readonly (number | undefined)[]): string {
    return splitTrait(...buffers.flatMap((one) => one === undefined ? [] : [this.split(one)]));
  }

  /** How a buffer is spread over bindings; refused if a kernel cannot have as many. */
  split(buffer: number): TensorSplit {
    const { name, bytes } = this.list[buffer]!;
    const { maxStorageBufferBindingSize, maxStorageBuffersPerShaderStage: most } = this.limits;
    const split = splitTensor(bytes, maxStorageBufferBindingSize);
    if (split.parts > most) {
      this.refuse(
        refusal(
          "limit",
          `${name} takes ${split.parts} bindings of ${maxStorageBufferBindingSize} bytes, ` +
            `the device's maxStorageBuffersPerShaderStage is ${most}`,
        ),
      );
    }
    return split;
  }

  /** The bindings of a buffer, in order. */
  bindings(buffer: number): PlanBinding[] {
    const { bytes } = this.list[buffer]!;
    const { parts, partBytes } = this.split(buffer);
    if (parts === 1) return [{ buffer, offset: 0, size: bytes }];
    return Array.from({ length: parts }, (_, part) => ({
      buffer,
      offset: part * partBytes,
      size: Math.min(partBytes, bytes - part * partBytes),
    }));
  }

  /** The plan that has these buffers, or why there is none. */
  plan(plan: Omit<Plan, "buffers" | "workspaceBytes">): Planned<Plan> {
    return this.#refused ??
      { ...plan, buffers: this.list, workspaceBytes: this.workspaceBytes() };
  }

  workspaceBytes(): number {
    return this.list.reduce((sum, { role, bytes }) => role === "workspace" ? sum + bytes : sum, 0);
  }
}

/** What one of the problem's tensors is made of, as it lies: int8 one by one. */
export function tensorScalar(
  request: Pick<PlanRequest, "problem" | "dtype" | "outDtype">,
  which: ConvTensor,
): Scalar {
  const { storage, result } = elementsOf(request);
  if (which === resultTensor(request.problem.op)) return result;
  return request.dtype === "i8" ? "i8" : storage;
}

/** Bytes of a value of the operands, as kernels load it: of int8 a word of four. */
export function operandBytes(choice: ElementChoice): number {
  return scalarBytes(elementsOf(choice).storage);
}

export function partialBytes(choice: ElementChoice): number {
  return scalarBytes(sumOf(elementsOf(choice)));
}

export function resultBytes(choice: ElementChoice): number {
  return scalarBytes(elementsOf(choice).result);
}

export interface ProblemBuffers {
  readonly elements: Elements;
  readonly buffers: BufferList;
  readonly tensor: Readonly<Record<ConvTensor, number>>;
  /** What the epilogue reads. */
  readonly ends: Readonly<Partial<Record<ChannelOperand, number>>>;
}

/** The problem's tensors and what the epilogue reads as the first buffers of a plan, and what they are made of. */
export function problemBuffers(request: PlanRequest, mode?: SizeMode): ProblemBuffers {
  const { epilogue } = request;
  const problem = request.within ?? request.problem;
  const buffers = new BufferList(request.limits, mode);
  const tensor: Partial<Record<ConvTensor, number>> = {};
  for (const which of [...operandTensors(problem.op), resultTensor(problem.op)]) {
    tensor[which] = buffers.add(
      which,
      which,
      tensorElements(problem, which),
      tensorScalar(request, which),
    );
  }
  const elements = elementsOf(request);
  const ends = Object.fromEntries(
    channelOperands(epilogue).map((role) => {
      const element = role === "scale" ? "f32" : biasOf(elements);
      return [role, buffers.add(role, role, problem.outChannels, element)];
    }),
  );
  return { elements, buffers, tensor: tensor as Record<ConvTensor, number>, ends };
}

export function tensorElements(problem: ConvProblem, which: ConvTensor): number {
  return elementCount(tensorShape(problem, which));
}

export function resultElements(problem: ConvProblem): number {
  return tensorElements(problem, resultTensor(problem.op));
}

/** The problem as whose result partial results lie: of images with all channels, of a filter's gradient with a part's alone. */
export function partialsProblem(
  { problem, within = problem }: Pick<PlanRequest, "problem" | "within">,
): ConvProblem {
  return problem.op === "bwd-filter" ? problem : within;
}

/** Partial results that are summed as they lie: one long row takes the widest vectors. */
export function flatRow(elements: number, splits: number): ReduceShape {
  return { elements, splits, rows: 1, rowStride: elements, columns: elements, columnStride: 1 };
}

/**
 * How the partial results of a convolution lie: rows are the channels of its result, or filters; columns its places, of nchw those of
 * an image's channel, or the channels of a filter.
 *
 * @param placed Whether the epilogue asks for rows and columns; else what that takes decides.
 */
export function reduceShape(
  request: PlanRequest,
  splits: number,
  placed = channelOperands(request.epilogue).length > 0,
): ReduceShape {
  const { layout, filterLayout } = request;
  const problem = partialsProblem(request);
  const which = resultTensor(problem.op);
  const shape = tensorShape(problem, which);
  const elements = elementCount(shape);
  if (!placed || elements === 0) return flatRow(elements, splits);
  const [outer, channels] = shape as [number, number];
  const strides = stridesInLayout(shape, which === "filter" ? filterLayout : layout);
  const [outerStride, channelStride] = strides as [number, number];
  const lie = which === "filter"
    ? { rows: outer, rowStride: outerStride, columns: channels, columnStride: channelStride }
    : channelStride === 1
    ? { rows: channels, rowStride: 1, columns: elements / channels, columnStride: channels }
    : { rows: channels, rowStride: channelStride, columns: channelStride, columnStride: 1 };
  return { elements, splits, ...lie };
}

/** Bytes of device memory that a plan takes, uniforms (some tens of bytes a pass) not counted. */
export interface PlanMemory {
  /** Tensors that are read, the bias too. */
  readonly inputs: number;
  readonly output: number;
  /** What is allocated beside the tensors; chunks of the batch share it. */
  readonly workspace: number;
  /** All buffers: they live from the first pass to the last. */
  readonly peak: number;
}

/** Adds up a plan's buffers. `op`, an operation or `gemm`, says which of them is the result. */
export function planMemory({ buffers }: Pick<Plan, "buffers">, op: string): PlanMemory {
  const result = op === "bwd-data" ? "input" : op === "bwd-filter" ? "filter" : "output";
  const bytes = (kind: (role: BufferRole) => boolean) =>
    buffers.reduce((sum, { role, bytes }) => kind(role) ? sum + bytes : sum, 0);
  return {
    inputs: bytes((role) => role !== result && role !== "workspace"),
    output: bytes((role) => role === result),
    workspace: bytes((role) => role === "workspace"),
    peak: bytes(() => true),
  };
}

/** The request with its share of the tensors as bytes, or fewer where it allows fewer. */
export function withWorkspaceBytes(request: PlanRequest): PlanRequest {
  const { maxWorkspaceShare, maxWorkspaceBytes = Infinity, ...free } = request;
  if (maxWorkspaceShare === undefined) return request;
  const tensors = tensorBytes(request.problem, operandBytes(request), resultBytes(request));
  const allowed = Math.floor(maxWorkspaceShare * tensors);
  return { ...free, maxWorkspaceBytes: Math.min(maxWorkspaceBytes, allowed) };
}

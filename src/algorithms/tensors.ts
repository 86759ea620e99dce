import {
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { splitTensor, type TensorSplit } from "../kernels/module.ts";
import type { ReduceShape } from "../kernels/reduce.ts";
import {
  biasOf,
  type ElementChoice,
  type Elements,
  elementsOf,
  sumOf,
} from "../elements/elements.ts";
import { type Scalar, scalarBytes, type Stored } from "../elements/scalar.ts";
import { stridesInLayout } from "../tensor/layout.ts";
import { elementCount } from "../tensor/tensor.ts";
import type { DeviceLimits, Plan, PlanBinding, PlanBuffer } from "./plan.ts";
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
    const elements = elementCount(tensorShape(problem, which));
    const refused = tooManyElements(which, elements) ?? tooManyBytes(
      which,
      bufferBytes(elements, tensorScalar(request, which)),
      limits,
    );
    if (refused !== undefined) return refused;
  }
  return undefined;
}

/** Collects a plan's buffers, and the first reason why the device cannot run what is made of them. */
export class BufferList {
  readonly list: PlanBuffer[] = [];
  #refused: Refusal | undefined;
  readonly #limits: DeviceLimits;

  constructor(limits: DeviceLimits) {
    this.#limits = limits;
  }

  /** Why there is no plan; the first of several reasons. */
  get refused(): Refusal | undefined {
    return this.#refused;
  }

  /** Notes why there is no plan. Planning goes on, and is for nothing. */
  refuse(reason: Refusal | undefined): void {
    this.#refused ??= reason;
  }

  /** Adds a buffer and returns its place; refused if it exceeds the device's `maxBufferSize`. */
  add(
    name: string,
    role: PlanBuffer["role"],
    elements: number,
    element: Stored,
  ): number {
    const bytes = bufferBytes(elements, element);
    this.refuse(tooManyElements(name, elements) ?? tooManyBytes(name, bytes, this.#limits));
    return this.list.push({ name, role, bytes }) - 1;
  }

  /** How a buffer is spread over bindings; refused if a kernel cannot have as many. */
  split(buffer: number): TensorSplit {
    const { name, bytes } = this.list[buffer]!;
    const { maxStorageBufferBindingSize, maxStorageBuffersPerShaderStage: most } = this.#limits;
    const split = splitTensor(bytes, maxStorageBufferBindingSize);
    if (split.parts > most) {
      this.refuse(refusal(
        "limit",
        `${name} takes ${split.parts} bindings of ${maxStorageBufferBindingSize} bytes, ` +
          `the device's maxStorageBuffersPerShaderStage is ${most}`,
      ));
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

/** Bytes of a partial sum. */
export function partialBytes(choice: ElementChoice): number {
  return scalarBytes(sumOf(elementsOf(choice)));
}

/** Bytes of an element of the result. */
export function resultBytes(choice: ElementChoice): number {
  return scalarBytes(elementsOf(choice).result);
}

/** The problem's tensors (and the bias, and the scales of int8 results) as the first buffers of a plan, and what they are made of. */
export function problemBuffers(request: PlanRequest): {
  elements: Elements;
  buffers: BufferList;
  tensor: Readonly<Record<ConvTensor, number>>;
  bias: number | undefined;
  scale: number | undefined;
} {
  const { problem, epilogue } = request;
  const buffers = new BufferList(request.limits);
  const tensor: Partial<Record<ConvTensor, number>> = {};
  for (const which of [...operandTensors(problem.op), resultTensor(problem.op)]) {
    tensor[which] = buffers.add(
      which,
      which,
      elementCount(tensorShape(problem, which)),
      tensorScalar(request, which),
    );
  }
  const elements = elementsOf(request);
  const bias = epilogue.bias
    ? buffers.add("bias", "bias", problem.outChannels, biasOf(elements))
    : undefined;
  const scale = epilogue.scale === "channel"
    ? buffers.add("scale", "scale", problem.outChannels, "f32")
    : undefined;
  return { elements, buffers, tensor: tensor as Record<ConvTensor, number>, bias, scale };
}

/** Output elements of a problem's result. */
export function resultElements(problem: ConvProblem): number {
  return elementCount(tensorShape(problem, resultTensor(problem.op)));
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
  placed = request.epilogue.bias || request.epilogue.scale === "channel",
): ReduceShape {
  const { problem, layout, filterLayout } = request;
  const which = resultTensor(problem.op);
  const shape = tensorShape(problem, which);
  const elements = elementCount(shape);
  if (!placed || elements === 0) {
    // Nobody asks for rows: one long one takes the widest vectors.
    return { elements, splits, rows: 1, rowStride: elements, columns: elements, columnStride: 1 };
  }
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

/**
 * Convolutions of which a few result channels fill no tile, as two: one of the channels before them, by whatever is fastest, and one of
 * them by `depthwise`, which is for few channels. Both read and write parts of the same tensors.
 */
import { biasOf, elementsOf } from "../elements/elements.ts";
import { scalarBytes } from "../elements/scalar.ts";
import { defined } from "../defined.ts";
import {
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  resultTensor,
} from "../problem/conv_problem.ts";
import { channelOperands } from "../problem/epilogue.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { stridesOf } from "./geometry.ts";
import type { BufferRole, Plan } from "./plan.ts";
import type { PlanRequest } from "./request.ts";
import { bufferBytes, tensorElements, tensorScalar } from "./tensors.ts";

/** Channels that `depthwise` has at most. */
const MOST_REST = 8;
/** Those before them fill tiles: so many, or a multiple. */
const TILE = 32;
/** Bindings begin at multiples of so many bytes. */
const ALIGNMENT = 256;

/** A request as two. */
export interface ChannelParts {
  /** Of the channels before the rest. */
  readonly first: PlanRequest;
  /** Of the rest, by `depthwise`. */
  readonly rest: PlanRequest;
  /** The bytes at which the rest's parts of tensors begin, of those that are parts. */
  readonly begins: ReadonlyMap<BufferRole, number>;
}

/** A request's result channels in two parts, where so many fill tiles and a few do not; undefined where they are not, or bindings cannot begin at the rest. */
export function channelParts(request: PlanRequest): ChannelParts | undefined {
  const { problem, dtype, filterLayout, epilogue, limits } = request;
  const { op, groups } = problem;
  const side = op === "bwd-data" ? "inChannels" : "outChannels";
  const rest = problem[side] % TILE;
  const count = problem[side] - rest;
  if (groups > 1 || dtype === "i8" || count === 0 || rest === 0 || rest > MOST_REST) {
    return undefined;
  }
  // What is asked for is of all channels.
  if (request.tile !== undefined || request.pair !== undefined || request.math === "f16x3") {
    return undefined;
  }
  // Filters of a gradient are summed as they lie: together.
  if (op === "bwd-filter" && filterLayout === "crsk") return undefined;
  const elements = elementsOf(request);
  const tensors: readonly ConvTensor[] = [...operandTensors(op), resultTensor(op)];
  const parts: readonly (readonly [ConvTensor, 0 | 1])[] = op === "bwd-data"
    ? [["filter", 1], ["input", 1]]
    : [["filter", 0], ["output", 1]];
  const begins = new Map<BufferRole, number>([
    ...parts.map(([which, axis]) =>
      [
        which,
        count * stridesOf(request, which)[axis]! * scalarBytes(tensorScalar(request, which)),
      ] as const
    ),
    ...channelOperands(epilogue).map((role) =>
      [role, count * (role === "scale" ? 4 : scalarBytes(biasOf(elements)))] as const
    ),
  ]);
  const bound = tensors.every((which) =>
    bufferBytes(tensorElements(problem, which), tensorScalar(request, which)) <=
      limits.maxStorageBufferBindingSize
  );
  if (!bound || [...begins.values()].some((bytes) => bytes % ALIGNMENT !== 0)) return undefined;
  const part = (channels: number): PlanRequest => ({
    ...request,
    problem: { ...problem, [side]: channels } as ConvProblem,
    within: problem,
    ...(dtype === "f32" ? { math: "f32" } : {}),
  });
  return {
    first: part(count),
    rest: {
      ...part(rest),
      algorithm: "depthwise",
      // Partial results would be added up where those of the others lie, too.
      schedule: op === "bwd-filter" ? {} : { splits: 1 },
    },
    begins,
  };
}

/** The plan of both parts, of a plan of each. */
export function joinParts(
  { rest: { problem }, begins }: ChannelParts,
  first: Plan,
  rest: Plan,
): Plan {
  const buffers = [...first.buffers];
  const own = rest.buffers.map((buffer) => {
    const shared = buffer.role === "workspace"
      ? -1
      : buffers.findIndex(({ role }) => role === buffer.role);
    return shared >= 0 ? shared : buffers.push(buffer) - 1;
  });
  const passes = rest.passes.map((pass) => ({
    ...pass,
    bindings: pass.bindings.map(({ buffer, offset, size }) => {
      const begin = begins.get(rest.buffers[buffer]!.role) ?? 0;
      return { buffer: own[buffer]!, offset: offset + begin, size: size - begin };
    }),
  }));
  const channels = problem.op === "bwd-data" ? problem.inChannels : problem.outChannels;
  return {
    ...first,
    buffers,
    passes: [...first.passes, ...passes],
    workspaceBytes: first.workspaceBytes + rest.workspaceBytes,
    multiplications: first.multiplications + rest.multiplications,
    arithmetic: longestSums(first.arithmetic, rest.arithmetic),
    notes: [
      ...first.notes,
      `the last ${channels === 1 ? "channel" : `${channels} channels`} by depthwise`,
      ...rest.notes,
    ],
  };
}

/** How the first part sums, in chains that are as long as those of both. */
function longestSums(first: PlanArithmetic, rest: PlanArithmetic): PlanArithmetic {
  if (first.tiles !== undefined) return first;
  const longest = (key: "chain" | "segment") => {
    const [one, other] = [first[key], rest[key]];
    return one === undefined || other === undefined ? undefined : Math.max(one, other);
  };
  const { chain: _, segment: __, ...others } = first;
  return { ...others, ...defined({ chain: longest("chain"), segment: longest("segment") }) };
}

/**
 * A convolution whose last few result channels fill no tile, as two: one of the channels before them, by whatever is fastest, and one of
 * those few by `depthwise`. Both read and write parts of the same tensors.
 */
import { biasOf, elementsOf } from "../elements/elements.ts";
import { scalarBytes } from "../elements/scalar.ts";
import { defined } from "../defined.ts";
import {
  type ConvTensor,
  operandTensors,
  type Operation,
  resultTensor,
} from "../problem/conv_problem.ts";
import { channelOperands } from "../problem/epilogue.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { elementCount } from "../tensor/tensor.ts";
import { type JoinedRuns, joinRunsKernel } from "../kernels/pack.ts";
import { deviceOf } from "./device/h200.ts";
import { copyTime } from "./device/model.ts";
import { stridesOf } from "./geometry.ts";
import { pass } from "./passes.ts";
import type { BufferRole, Pass, Plan, PlanBuffer } from "./plan.ts";
import type { PlanRequest } from "./request.ts";
import { bufferBytes, BufferList, tensorElements, tensorScalar } from "./tensors.ts";

/** Channels of the rest: fewer than a vector. */
const MOST_REST = 3;
/** Those before them fill tiles: so many, or a multiple. */
const TILE = 32;
/** Bindings begin at multiples of so many bytes. */
const ALIGNMENT = 256;

/** A request as two. */
export interface ChannelParts {
  readonly whole: PlanRequest;
  /** Of the channels before the rest. */
  readonly first: PlanRequest;
  /** Of the rest, by `depthwise`. */
  readonly rest: PlanRequest;
  /** Channels of the rest. */
  readonly channels: number;
  /** The bytes at which the rest's parts of tensors begin, of those that are parts. */
  readonly begins: ReadonlyMap<BufferRole, number>;
  /** Of a filter's gradient of channels of the input: how the gradients of both lie in it. */
  readonly joined?: JoinedRuns | undefined;
}

type Side = "inChannels" | "outChannels";

const SIDES: Readonly<Record<Operation, readonly Side[]>> = {
  "fwd": ["outChannels"],
  "bwd-data": ["inChannels"],
  "bwd-filter": ["outChannels", "inChannels"],
};

/**
 * A request's result channels in two parts, where so many fill tiles and a few do not; undefined where they are not, or bindings cannot
 * begin at the rest. Of a filter's gradient channels of either side.
 */
export function channelParts(request: PlanRequest): ChannelParts | undefined {
  return SIDES[request.problem.op].map((side) => partsOf(request, side)).find(Boolean);
}

/**
 * Whether parts are of a kind that an H200 timed as faster where that is predicted. The rest reads the other operand again: with one
 * tap that takes most of the time, and in backward-data of nchw, or of channels that are no vectors, it takes several times what
 * `depthwise` predicts.
 */
function isWorth(
  { problem, dtype, outDtype = dtype, layout, filterLayout }: PlanRequest,
  side: Side,
) {
  const { op, groups, inChannels, outChannels } = problem;
  if (groups > 1 || outDtype !== dtype) return false;
  if (dtype !== "f32" && (dtype !== "f16" || layout !== "nhwc")) return false;
  // Filters of a gradient are summed as they lie: together.
  if (op === "bwd-filter") return side === "inChannels" ? dtype === "f32" : filterLayout !== "crsk";
  if (elementCount(problem.filterSize) === 1) return false;
  return layout === "nhwc"
    ? (op === "fwd" ? inChannels : outChannels) % 4 === 0
    : layout === "nchw" && op === "fwd";
}

function partsOf(request: PlanRequest, side: Side): ChannelParts | undefined {
  const { problem, dtype, epilogue, limits } = request;
  const { op } = problem;
  const rest = problem[side] % TILE;
  const count = problem[side] - rest;
  if (count === 0 || rest === 0 || rest > MOST_REST || !isWorth(request, side)) return undefined;
  // What is asked for is of all channels.
  if (request.tile !== undefined || request.pair !== undefined || request.math === "f16x3") {
    return undefined;
  }
  const joins = op === "bwd-filter" && side === "inChannels";
  const elements = elementsOf(request);
  const tensors: readonly ConvTensor[] = [...operandTensors(op), resultTensor(op)];
  const [images, axis] = side === "inChannels" ? ["input", 1] as const : ["output", 0] as const;
  const parts: readonly (readonly [ConvTensor, 0 | 1])[] = [
    [images, 1],
    ...joins ? [] : [["filter", axis]] as const,
  ];
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
    problem: { ...problem, [side]: channels },
    within: problem,
    ...(dtype === "f32" ? { math: "f32" } : {}),
  });
  const run = joins ? stridesOf(request, "filter")[1]! : 0;
  return {
    whole: request,
    first: part(count),
    rest: {
      ...part(rest),
      algorithm: "depthwise",
      // Partial results would be added up where those of the others lie, too.
      schedule: op === "bwd-filter" ? {} : { splits: 1 },
    },
    channels: rest,
    begins,
    joined: joins
      ? {
        lines: tensorElements(problem, "filter") / (problem[side] * run),
        first: count * run,
        rest: rest * run,
      }
      : undefined,
  };
}

/** Microseconds of joining the parts of a gradient; 0 of parts that lie where they belong. */
export function joiningTime({ whole, joined }: ChannelParts): number {
  if (joined === undefined) return 0;
  const device = deviceOf(whole);
  const bytes = 2 * scalarBytes(elementsOf(whole).result) * tensorElements(whole.problem, "filter");
  return copyTime(bytes, device.rates.filterStream, device);
}

/** The plan of both parts, of a plan of each. */
export function joinParts(
  { whole, channels, begins, joined }: ChannelParts,
  first: Plan,
  rest: Plan,
): Plan {
  const apart = (plan: Plan, name: string) =>
    plan.buffers.map((buffer): PlanBuffer =>
      joined !== undefined && buffer.role === "filter"
        ? { ...buffer, name, role: "workspace" }
        : buffer
    );
  const buffers = apart(first, "gradient of the first channels");
  const others = apart(rest, "gradient of the rest");
  const own = others.map((buffer) => {
    const shared = buffer.role === "workspace"
      ? -1
      : buffers.findIndex(({ role }) => role === buffer.role);
    return shared >= 0 ? shared : buffers.push(buffer) - 1;
  });
  const passes = rest.passes.map((pass) => ({
    ...pass,
    bindings: pass.bindings.map(({ buffer, offset, size }) => {
      const begin = begins.get(others[buffer]!.role) ?? 0;
      return { buffer: own[buffer]!, offset: offset + begin, size: size - begin };
    }),
  }));
  const joining: Pass[] = [];
  if (joined !== undefined) {
    const list = new BufferList(whole.limits, whole.sizes);
    list.list.push(...buffers);
    const { result } = elementsOf(whole);
    const at = (plan: Plan) => plan.buffers.findIndex(({ role }) => role === "filter");
    const places = {
      first: at(first),
      rest: own[at(rest)]!,
      joined: list.add("filter", "filter", tensorElements(whole.problem, "filter"), result),
    };
    joining.push(pass(joinRunsKernel(list.module(places), joined, result), list, places));
    buffers.push(list.list.at(-1)!);
  }
  const workspaceBytes = buffers.reduce(
    (sum, { role, bytes }) => role === "workspace" ? sum + bytes : sum,
    0,
  );
  return {
    ...first,
    buffers,
    passes: [...first.passes, ...passes, ...joining],
    workspaceBytes,
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

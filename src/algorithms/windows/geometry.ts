import { groupOf, packedShape, prefersSingleImages, spatialAxes, stridesOf } from "../geometry.ts";
import type { DeviceLimits } from "../plan.ts";
import { isRefusal, manyChunks, MOST_CHUNKS, type Planned, refusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import type { Axis } from "../../kernels/axes.ts";
import type { ColumnMatrix } from "../../kernels/im2col.ts";
import type { WindowShape } from "../../kernels/im2win.ts";
import type { PackShape } from "../../kernels/pack.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import type { LinearPlaces } from "../../kernels/reduce.ts";
import { elementCount } from "../../tensor/tensor.ts";

/** Forward convolution as a product: K/g rows, images · places columns, taps · C/g deep. */
export interface WindowGeometry {
  readonly axes: readonly Axis[];
  /** Four images to a vector, where the batch divides into fours and results are of many products. */
  readonly interleave: 1 | 4;
  /** Rows of a group. */
  readonly rows: number;
  readonly channels: number;
  readonly taps: number;
  readonly spots: number;
  /** Strides in elements, per canonical axis. */
  readonly input: readonly number[];
  readonly output: readonly number[];
}

/** @param fours Whether four images may be a vector. */
export function windowGeometry(request: PlanRequest, fours = true): WindowGeometry {
  const { problem } = request;
  const { inputs, outputs } = groupOf(request);
  const input = stridesOf(request, "input");
  const whole = fours && problem.batch > 0 && problem.batch % 4 === 0;
  return {
    axes: spatialAxes(problem, "forward", input),
    interleave: whole && !prefersSingleImages(request) ? 4 : 1,
    rows: outputs,
    channels: inputs,
    taps: elementCount(problem.filterSize),
    spots: elementCount(problem.outputSize),
    input,
    output: stridesOf(request, "output"),
  };
}

export function im2colGeometry(request: PlanRequest): WindowGeometry {
  return windowGeometry(request, request.layout !== "nhwc");
}

/** What both ways to write the input have in common. */
function written({ problem }: PlanRequest, geometry: WindowGeometry, images: number) {
  const { axes, interleave, channels, input } = geometry;
  const [batchStride, channelStride] = input as [number, number];
  return { axes, images, interleave, groups: problem.groups, channels, batchStride, channelStride };
}

/** The tensor in window order of so many images. */
export function windowShape(
  request: PlanRequest,
  geometry: WindowGeometry,
  images: number,
  chunked: boolean,
): WindowShape {
  const { inputSize, paddingBegin, paddingEnd } = request.problem;
  const width = inputSize.at(-1)! + paddingBegin.at(-1)! + paddingEnd.at(-1)!;
  return { ...written(request, geometry, images), width, chunked };
}

/** The matrix of so many images' windows: channels lie together where the images have them together. */
export function windowMatrix(
  request: PlanRequest,
  geometry: WindowGeometry,
  images: number,
  chunked: boolean,
): ColumnMatrix {
  const inner = request.layout === "nhwc" ? "rows" : "columns";
  return { ...written(request, geometry, images), inner, chunked };
}

/** The filter in window order, [group][depth][rows], padded to a policy's tiles. */
export function windowFilter(
  request: PlanRequest,
  { axes, taps, channels }: WindowGeometry,
  policy: TilePolicy,
  paddedChannels = channels,
): PackShape {
  const innerTaps = axes.at(-1)!.taps;
  const window = { outerTaps: taps / innerTaps, innerTaps };
  return { ...packedShape(request, policy, paddedChannels), window };
}

/** Where results go, from an image on. */
export function windowTarget(
  { output, rows, spots, interleave }: WindowGeometry,
): LinearPlaces & { readonly group: number } {
  return {
    row: output[1]!,
    outer: interleave * output[0]!,
    inner: output.at(-1)!,
    ...(interleave === 4 ? { interleave: output[0]! } : {}),
    period: interleave * spots,
    group: rows * output[1]!,
  };
}

/** A run of images that is transformed and multiplied at once; chunks share their workspace. */
export interface Chunk {
  readonly first: number;
  readonly images: number;
}

/** What chunks are cut by. */
interface ChunkNeeds {
  readonly batch: number;
  /** Images of a chunk are a multiple of this, which divides the batch. */
  readonly multiple: number;
  /** Bytes of the buffer of so many images. */
  bytes(images: number): number;
  /** Workspace beside it. */
  readonly fixedBytes: number;
  /** Most bytes of the buffer. */
  readonly maxBufferBytes: number;
  /** Most bytes of workspace in all. */
  readonly maxWorkspaceBytes?: number | undefined;
}

/**
 * The fewest chunks of the batch, as even as they can be, whose buffer stays below the limits. One empty chunk
 * for an empty batch. Refused if the user's limit, or the device's, is too small for the least chunk, or makes too many.
 */
export function batchChunks(algorithm: string, needs: ChunkNeeds): Planned<Chunk[]> {
  const { batch, multiple, bytes, fixedBytes, maxBufferBytes } = needs;
  const { maxWorkspaceBytes = Infinity } = needs;
  const fits = (images: number) =>
    bytes(images) <= maxBufferBytes && fixedBytes + bytes(images) <= maxWorkspaceBytes;
  const most = Math.max(1, batch / multiple);
  let low = 0;
  let high = most;
  // The most that fits: bytes grow with the images.
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(middle * multiple)) low = middle;
    else high = middle - 1;
  }
  if (low === 0) {
    const least = bytes(multiple);
    const images = multiple === 1 ? "one image" : `${multiple} images`;
    return least > maxBufferBytes
      ? refusal(
        "limit",
        `${algorithm} takes a buffer of ${least} bytes for ${images}, ` +
          `the device's limit is ${maxBufferBytes}`,
      )
      : refusal(
        "workspace",
        `${algorithm} takes at least ${fixedBytes + least} bytes of workspace, ` +
          `at most ${maxWorkspaceBytes} are allowed`,
      );
  }
  const count = Math.ceil(most / low);
  if (count > MOST_CHUNKS) return manyChunks(algorithm, count);
  const units = Math.ceil(most / count);
  return Array.from({ length: Math.ceil(most / units) }, (_, index) => {
    const first = index * units * multiple;
    return { first, images: Math.min(units * multiple, batch - first) };
  });
}

/** What is made of four images a vector; of single ones where chunks of four exceed a limit. */
export function fourElseOne<T>(
  interleave: 1 | 4,
  make: (interleave: 1 | 4) => Planned<T>,
): Planned<T> {
  const made = make(interleave);
  return interleave === 4 && isRefusal(made) ? make(1) : made;
}

/**
 * Most bytes of a chunk's buffer: what one binding holds, since kernels reach the parts of larger buffers slowly;
 * where the least chunk exceeds it, all that a buffer may have.
 */
export function chunkBufferBytes(limits: DeviceLimits, least: number): number {
  const binding = Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize);
  return least <= binding ? binding : limits.maxBufferSize;
}

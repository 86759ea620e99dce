import { loopIterations, type ModuleBuilder, type TensorSplit } from "./module.ts";
import type { TiledTensor } from "./winograd_tiles.ts";

/** What a result is a sum of, for those that are summed in f32 as they are: of stride 1, along two axes. */
export interface PlainSums {
  /** Of a filter's gradient that of the output. */
  readonly filter: TiledTensor;
  /** With all of its images. */
  readonly data: TiledTensor;
  /** What is computed: results of places, or taps of a filter. */
  readonly op: "fwd" | "bwd-data" | "bwd-filter";
  readonly splits: { readonly data: TensorSplit; readonly filter: TensorSplit };
}

/** Functions of WGSL, workgroup memory that they take, and the iterations of their loops. */
interface PlainText {
  /** `plain_sum(group, outer, channel, y, x, lane)`. */
  readonly text: string;
  readonly bytes: number;
  readonly iterations: number;
}

/**
 * The sum of one result, to which each of a workgroup's threads calls with the same place and its own `lane`, in uniform control flow.
 * Binds `data` and `filter`. `outer` is the image of all the batch, of a filter's gradient the output channel of the group; `channel` is
 * that of the result.
 */
export function plainSums(module: ModuleBuilder, sums: PlainSums, threads: number): PlainText {
  const { text, iterations } = sums.op === "bwd-filter"
    ? gradientSum(module, sums, threads)
    : placeSum(module, sums, threads);
  const halvings = Math.log2(threads);
  return {
    text: `
var<workgroup> shares: array<f32, ${threads}>;
${text}
fn plain_sum(group: u32, outer: u32, channel: u32, y: u32, x: u32, lane: u32) -> f32 {
  shares[lane] = plain_share(group, outer, channel, y, x, lane);
  workgroupBarrier();
  for (var half = ${threads / 2}u; half > 0u; half /= 2u) {
    if (lane < half) { shares[lane] += shares[lane + half]; }
    workgroupBarrier();
  }
  let sum = shares[0];
  workgroupBarrier();
  return sum;
}
`,
    bytes: 4 * threads,
    iterations: iterations + loopIterations(halvings),
  };
}

/** WGSL of a tensor's sizes. */
function sizesOf(module: ModuleBuilder, name: string, tensor: TiledTensor) {
  const size = (what: string, value: number) =>
    module.size(`${name}_${what}`, value < 0 ? value + 2 ** 32 : value);
  const [outer, inner] = tensor.axes;
  return {
    group: size("group_stride", tensor.groupStride),
    batch: size("batch_stride", tensor.batchStride),
    channel: size("channel_stride", tensor.channelStride),
    strides: [size("stride0", outer.stride), size("stride1", inner.stride)],
    sizes: [size("size0", outer.size), size("size1", inner.size)],
    origins: [size("origin0", outer.origin), size("origin1", inner.origin)],
  };
}

type ShareText = Pick<PlainText, "text" | "iterations">;

/** A thread's share of a result's sum: of every so many channels one. */
function placeSum(
  module: ModuleBuilder,
  { filter, data, op, splits }: PlainSums,
  threads: number,
): ShareText {
  const from = module.tensor("data", "read", 1, splits.data);
  const weights = module.tensor("filter", "read", 1, splits.filter);
  const [d, f] = [sizesOf(module, "data", data), sizesOf(module, "filter", filter)];
  const forward = op === "fwd";
  const [own, summed] = forward ? [f.batch, f.channel] : [f.channel, f.batch];
  const tap = (axis: 0 | 1, at: string) => forward ? at : `(${f.sizes[axis]} - 1u - ${at})`;
  const text = `
fn plain_share(group: u32, outer: u32, channel: u32, y: u32, x: u32, lane: u32) -> f32 {
  var sum = 0.0f;
  for (var i = 0u; i < ${f.sizes[0]}; i++) {
    for (var j = 0u; j < ${f.sizes[1]}; j++) {
      let from_y = y + i + ${d.origins[0]};
      let from_x = x + j + ${d.origins[1]};
      if (from_y >= ${d.sizes[0]} || from_x >= ${d.sizes[1]}) { continue; }
      let first = group * ${d.group} + outer * ${d.batch} + from_y * ${d.strides[0]} + from_x * ${
    d.strides[1]
  };
      let weight = group * ${f.group} + channel * ${own} + ${tap(0, "i")} * ${f.strides[0]} + ${
    tap(1, "j")
  } * ${f.strides[1]};
      for (var c = lane; c < ${module.size("depth", data.channels)}; c += ${threads}u) {
        sum = fma(${from.load(`first + c * ${d.channel}`)}, ${
    weights.load(`weight + c * ${summed}`)
  }, sum);
      }
    }
  }
  return sum;
}`;
  const channels = loopIterations(Math.ceil(data.channels / threads));
  const [rows, columns] = [filter.axes[0].size, filter.axes[1].size];
  return { text, iterations: loopIterations(rows, loopIterations(columns, channels)) };
}

/** The same of a filter's gradient: of every so many rows of places, of all images, one. */
function gradientSum(
  module: ModuleBuilder,
  { filter, data, splits }: PlainSums,
  threads: number,
): ShareText {
  const from = module.tensor("data", "read", 1, splits.data);
  const gradient = module.tensor("filter", "read", 1, splits.filter);
  const [d, g] = [sizesOf(module, "data", data), sizesOf(module, "filter", filter)];
  const rows = data.batch * filter.axes[0].size;
  const text = `
fn plain_share(group: u32, outer: u32, channel: u32, y: u32, x: u32, lane: u32) -> f32 {
  var sum = 0.0f;
  for (var row = lane; row < ${module.size("rows", rows)}; row += ${threads}u) {
    let image = row / ${g.sizes[0]};
    let p = row % ${g.sizes[0]};
    let from_y = p + y + ${d.origins[0]};
    if (from_y >= ${d.sizes[0]}) { continue; }
    let first = group * ${d.group} + image * ${d.batch} + channel * ${d.channel} + from_y * ${
    d.strides[0]
  };
    let to = group * ${g.group} + image * ${g.batch} + outer * ${g.channel} + p * ${g.strides[0]};
    var chain = 0.0f;
    for (var q = 0u; q < ${g.sizes[1]}; q++) {
      let from_x = q + x + ${d.origins[1]};
      let value = select(0.0f, ${from.load(`first + from_x * ${d.strides[1]}`)}, from_x < ${
    d.sizes[1]
  });
      chain = fma(value, ${gradient.load(`to + q * ${g.strides[1]}`)}, chain);
    }
    sum += chain;
  }
  return sum;
}`;
  const along = loopIterations(filter.axes[1].size);
  return { text, iterations: loopIterations(Math.ceil(rows / threads), along) };
}

import { SPLIT_ROUNDING } from "../problem/split_rounding.ts";
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

/** A function of WGSL and the iterations of its loops. */
interface PlainText {
  /** `plain_sum(group, outer, channel, y, x)`. */
  readonly text: string;
  readonly iterations: number;
}

const { chain: CHAIN } = SPLIT_ROUNDING;

/**
 * The sum of one result, in chains of f32. Binds `data` and `filter`. `outer` is the image of all the batch, of a filter's gradient the
 * output channel of the group; `channel` is that of the result.
 */
export function plainSums(module: ModuleBuilder, sums: PlainSums): PlainText {
  return sums.op === "bwd-filter" ? gradientSum(module, sums) : placeSum(module, sums);
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

function placeSum(module: ModuleBuilder, { filter, data, op, splits }: PlainSums): PlainText {
  const from = module.tensor("data", "read", 1, splits.data);
  const weights = module.tensor("filter", "read", 1, splits.filter);
  const [d, f] = [sizesOf(module, "data", data), sizesOf(module, "filter", filter)];
  const forward = op === "fwd";
  const [own, summed] = forward ? [f.batch, f.channel] : [f.channel, f.batch];
  const tap = (axis: 0 | 1, at: string) => forward ? at : `(${f.sizes[axis]} - 1u - ${at})`;
  const depth = module.size("depth", data.channels);
  const text = `
fn plain_sum(group: u32, outer: u32, channel: u32, y: u32, x: u32) -> f32 {
  var sum = 0.0f;
  for (var i = 0u; i < ${f.sizes[0]}; i++) {
    for (var j = 0u; j < ${f.sizes[1]}; j++) {
      let from_y = y + i + ${d.origins[0]};
      let from_x = x + j + ${d.origins[1]};
      if (from_y >= ${d.sizes[0]} || from_x >= ${d.sizes[1]}) { continue; }
      let first_value = group * ${d.group} + outer * ${d.batch} + from_y * ${
    d.strides[0]
  } + from_x * ${d.strides[1]};
      let weight = group * ${f.group} + channel * ${own} + ${tap(0, "i")} * ${f.strides[0]} + ${
    tap(1, "j")
  } * ${f.strides[1]};
      for (var first = 0u; first < ${depth}; first += ${CHAIN}u) {
        var chain = 0.0f;
        for (var c = first; c < min(first + ${CHAIN}u, ${depth}); c++) {
          chain = fma(${from.load(`first_value + c * ${d.channel}`)}, ${
    weights.load(`weight + c * ${summed}`)
  }, chain);
        }
        sum += chain;
      }
    }
  }
  return sum;
}
`;
  const chains = loopIterations(
    Math.ceil(data.channels / CHAIN),
    loopIterations(Math.min(CHAIN, data.channels)),
  );
  const [rows, columns] = [filter.axes[0].size, filter.axes[1].size];
  return { text, iterations: loopIterations(rows, loopIterations(columns, chains)) };
}

function gradientSum(module: ModuleBuilder, { filter, data, splits }: PlainSums): PlainText {
  const from = module.tensor("data", "read", 1, splits.data);
  const gradient = module.tensor("filter", "read", 1, splits.filter);
  const [d, g] = [sizesOf(module, "data", data), sizesOf(module, "filter", filter)];
  const text = `
fn plain_sum(group: u32, outer: u32, channel: u32, y: u32, x: u32) -> f32 {
  var sum = 0.0f;
  for (var image = 0u; image < ${module.size("images", data.batch)}; image++) {
    var all = 0.0f;
    for (var p = 0u; p < ${g.sizes[0]}; p++) {
      let from_y = p + y + ${d.origins[0]};
      if (from_y >= ${d.sizes[0]}) { continue; }
      let first_value = group * ${d.group} + image * ${d.batch} + channel * ${d.channel} + from_y * ${
    d.strides[0]
  };
      let to = group * ${g.group} + image * ${g.batch} + outer * ${g.channel} + p * ${g.strides[0]};
      var chain = 0.0f;
      for (var q = 0u; q < ${g.sizes[1]}; q++) {
        let from_x = q + x + ${d.origins[1]};
        let value = select(0.0f, ${from.load(`first_value + from_x * ${d.strides[1]}`)}, from_x < ${
    d.sizes[1]
  });
        chain = fma(value, ${gradient.load(`to + q * ${g.strides[1]}`)}, chain);
      }
      all += chain;
    }
    sum += all;
  }
  return sum;
}
`;
  const rows = loopIterations(filter.axes[0].size, loopIterations(filter.axes[1].size));
  return { text, iterations: loopIterations(data.batch, rows) };
}

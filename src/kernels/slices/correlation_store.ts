import type { ModuleBuilder, TensorAccess } from "../module.ts";
import { type CorrelationShape, correlationSizes } from "./correlation.ts";
import type { SliceStore } from "./exchange.ts";

/**
 * Stores n columns of ∇W for four input channels of an output channel: into ∇W itself for bucket 0, into the
 * workspace for the others.
 *
 * @param buckets Where buckets 1 and on lie one after the other, if there are any.
 * @param adding Whether a bucket already holds a part: `always` for a second kernel on the first one's buckets,
 *   `again` where the loop stores its sums in parts.
 */
export function correlationStore(
  module: ModuleBuilder,
  result: TensorAccess,
  buckets: TensorAccess | undefined,
  shape: CorrelationShape,
  elements: number,
  adding: "never" | "again" | "always",
): SliceStore {
  const size = correlationSizes(module);
  const { outer, width, n } = shape;
  const vector = result.vector;
  const text = (outputs: readonly string[]) => {
    const lines = outputs.map((value, j) => `      let out${j} = ${value};`);
    const base = [
      `(group * ${size("gradient_channels", shape.outChannels)} + row) * ${
        size("filter_out", shape.filterOutStride)
      }`,
      ...outer.map((axis, d) => `tap${d} * ${size(`filter_step${d}`, axis.filterStride)}`),
      `piece * ${size("filter_piece", n * width.filterStride)}`,
    ].join(" + ");
    lines.push(`      let base = ${base};`);
    const put = (tensor: TensorAccess, offset: string, value: string) => {
      const sum = tensor.store(offset, `${tensor.load(offset)} + ${value}`);
      if (adding === "always") return sum;
      const first = tensor.store(offset, value);
      return adding === "never" ? first : `if (again) { ${sum} } else { ${first} }`;
    };
    const each = Array.from({ length: n }, (_, j) => {
      const parts = vector === 4 ? [`out${j}`] : [..."xyzw"].map((c) => `out${j}.${c}`);
      return parts.map((value, x) => {
        const column = vector === 4 ? "column" : `(column + ${x}u)`;
        const offset = `base + ${j}u * ${size("filter_width", width.filterStride)} + ${column} * ${
          size("filter_in", shape.filterInStride)
        }`;
        const to = (shift: string) =>
          vector === 4 ? `(${offset}${shift}) / 4u` : `${offset}${shift}`;
        const rest = `(bucket - 1u) * ${size("filter_elements", elements)}`;
        const body = buckets === undefined
          ? put(result, to(""), value)
          : `if (bucket == 0u) { ${put(result, to(""), value)} } else { ${
            put(buckets, to(` + ${rest}`), value)
          } }`;
        const inside = [
          `${column} < ${size("input_channels", shape.inChannels)}`,
          ...(width.taps % n === 0
            ? []
            : [`piece * ${n}u + ${j}u < ${size("width_taps", width.taps)}`]),
        ].join(" && ");
        return `        if (${inside}) { ${body} }`;
      }).join("\n");
    });
    lines.push(
      `      if (row < ${size("gradient_channels", shape.outChannels)}) {`,
      ...each,
      "      }",
    );
    return lines.join("\n");
  };
  return { declarations: "", text };
}

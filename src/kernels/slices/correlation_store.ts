import { lines, range } from "../lists.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";
import { type CorrelationShape, correlationSizes, isTiled } from "./correlation.ts";
import type { SliceStore } from "./exchange.ts";

/** What is stored at once. */
interface Value {
  /** WGSL of the value, of a variable for what is there already, of its place in bucket 0, of what others lie behind, and of whether there is one. */
  readonly out: string;
  readonly there: string;
  readonly offset: string;
  readonly rest: string;
  readonly inside: string;
}

/**
 * Stores n columns of ∇W, of as many rows as patches yield, for four input channels of an output channel: into ∇W itself for bucket 0, into the
 * workspace for the others.
 *
 * @param buckets Where buckets 1 and on lie one after the other, if there are any.
 * @param adding Whether a bucket already holds a part: `always` for a second kernel on the first one's buckets,
 *   `again` where the loop stores its sums in parts.
 * @param early Whether all that is there is loaded before the first is stored, or each load waits for the store before it: on matrix
 *   units 1.01 to 1.03 times as fast, but of threads 0.97 to 1.00, whose registers are full.
 */
export function correlationStore(
  module: ModuleBuilder,
  result: TensorAccess,
  buckets: TensorAccess | undefined,
  shape: CorrelationShape,
  elements: number,
  adding: "never" | "again" | "always",
  early = false,
): SliceStore {
  return { declarations: "", text };

  function text(outputs: readonly string[]): string {
    const size = correlationSizes(module);
    const { outer, width, n, tiledRows } = shape;
    const { vector } = result;
    const base = [
      `(group * ${size("gradient_channels", shape.outChannels)} + row) * ${
        size("filter_out", shape.filterOutStride)
      }`,
      ...outer.map((axis, d) => {
        const tap = isTiled(shape, d) ? `tap${d} * ${tiledRows!.n}u` : `tap${d}`;
        return `${tap} * ${size(`filter_step${d}`, axis.filterStride)}`;
      }),
      `piece * ${size("filter_piece", n * width.filterStride)}`,
    ].join(" + ");
    const valueOf = (j: number, part: string, column: string): Value => {
      const place = j % n;
      const down = tiledRows === undefined
        ? ""
        : ` + ${Math.floor(j / n)}u * ${
          size(`filter_step${outer.length - 1}`, outer.at(-1)!.filterStride)
        }`;
      const step = size("filter_width", width.filterStride);
      return {
        out: `out${j}${part}`,
        there: `there${j}${part}`,
        offset: `base${down} + ${place}u * ${step} + ${column} * ${
          size("filter_in", shape.filterInStride)
        }`,
        rest: ` + (bucket - 1u) * ${size("filter_elements", elements)}`,
        inside: [
          `${column} < ${size("input_channels", shape.inChannels)}`,
          ...(width.taps % n === 0
            ? []
            : [`piece * ${n}u + ${place}u < ${size("width_taps", width.taps)}`]),
        ].join(" && "),
      };
    };
    const values = range(n * (tiledRows?.n ?? 1)).flatMap((j) =>
      vector === 4
        ? [valueOf(j, "", "column")]
        : [..."xyzw"].map((part, x) => valueOf(j, `.${part}`, `(column + ${x}u)`))
    );
    /** A statement for each value in the bucket's tensor, at its place there. */
    const each = (statement: (tensor: TensorAccess, at: string, value: Value) => string) =>
      values.map((value) => {
        const to = (tensor: TensorAccess, at: string) =>
          statement(tensor, vector === 4 ? `(${at}) / 4u` : at, value);
        const first = to(result, value.offset);
        const body = buckets === undefined
          ? first
          : `if (bucket == 0u) { ${first} } else { ${to(buckets, value.offset + value.rest)} }`;
        return `        if (${value.inside}) { ${body} }`;
      });
    const put = (tensor: TensorAccess, at: string, { out, there }: Value) => {
      const first = tensor.store(at, out);
      if (adding === "never") return first;
      const sum = tensor.store(at, `${early ? there : tensor.load(at)} + ${out}`);
      return early || adding === "always" ? sum : `if (again) { ${sum} } else { ${first} }`;
    };
    return lines(
      outputs.map((value, j) => `      let out${j} = ${value};`),
      `      let base = ${base};`,
      `      if (row < ${size("gradient_channels", shape.outChannels)}) {`,
      adding !== "never" && early && [
        outputs.map((_, j) => `        var there${j} = vec4f();`),
        adding === "again" && "        if (again) {",
        each((tensor, at, { there }) => `${there} = ${tensor.load(at)};`),
        adding === "again" && "        }",
      ],
      each(put),
      "      }",
    );
  }
}

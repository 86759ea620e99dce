import template from "../../shaders/signed_bytes.wgsl" with { type: "text" };
import { axisDigits, digitsText } from "./axes.ts";
import {
  eachElement,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
} from "./module.ts";

/** An axis that grows by a border. */
export interface BorderedAxis {
  readonly size: number;
  readonly before: number;
  readonly after: number;
}

/** Bytes of [batch][axes][run] that are copied to axes with borders. */
export interface SignedBytesShape {
  readonly batch: number;
  readonly axes: readonly BorderedAxis[];
  /** Bytes that follow each other at a place. */
  readonly run: number;
  /** Whether bytes are u8, of which 128 is taken. */
  readonly unsigned: boolean;
  /** What the border holds, as i8. */
  readonly border: number;
}

/** Bytes of the copy. */
export function signedBytes({ batch, axes, run }: SignedBytesShape): number {
  return axes.reduce((all, { size, before, after }) => all * (before + size + after), batch * run);
}

/** Workgroups of {@linkcode signedBytesKernel}. */
export function signedBytesWorkgroups(shape: SignedBytesShape): number {
  return Math.ceil(signedBytes(shape) / 4 / 256);
}

/**
 * Copies bytes as i8, four a thread, with borders along axes: u8 less 128, which turns the top bit. Binds `unsigned`, what is
 * read, and `signed`, both as words.
 */
export function signedBytesKernel(
  shape: SignedBytesShape,
  mode: SizeMode,
  source: TensorSplit,
  copy: TensorSplit,
): SizedKernel {
  const { batch, axes, unsigned, border } = shape;
  // Whole words where runs are; single bytes else.
  const width = shape.run % 4 === 0 ? 4 : 1;
  const module = moduleBuilder(mode);
  const from = module.tensor("unsigned", "read", 1, source, "u32");
  const to = module.tensor("signed", "write", 1, copy, "u32");
  const run = module.size("run", shape.run / width);
  const names = ["image", ...axes.map((_, d) => `x${d}`), "c"];
  const size = axes.map((axis, d) => module.size(`size${d}`, axis.size));
  const before = axes.map((axis, d) => module.size(`before${d}`, axis.before));
  const grown = axes.map(({ size, before, after }, d) =>
    module.size(`grown${d}`, before + size + after)
  );
  const elements = signedBytes(shape) / width;
  const bytes = (byte: number) => `0x${(byte & 255).toString(16).padStart(2, "0").repeat(width)}u`;
  const count = module.size("count", elements);
  const parts = [0, 1, 2, 3].map((b) => `element(min(i * 4u + ${b}u, ${count} - 1u))`);
  const name = `signed_bytes_x${width}_${axes.length}d${unsigned ? "_u8" : ""}${
    axes.length === 0 ? "" : `_border${border}`
  }${splitTrait(source, copy)}`;
  const values = {
    name,
    digits: digitsText(
      "e",
      "rest",
      axisDigits(names, [module.size("batch", batch), ...grown, run]),
    ),
    inside: axes.map((_, d) => `x${d} >= ${before[d]} && x${d} - ${before[d]} < ${size[d]}`)
      .join(" && ") || "true",
    offset: axes.reduce(
      (text, _, d) => `(${text}) * ${size[d]} + x${d} - ${before[d]}`,
      "image",
    ),
    run,
    load: width === 4 ? from.load("at") : `((${from.load("at / 4u")} >> (at % 4u * 8u)) & 255u)`,
    top: unsigned ? ` ^ ${bytes(128)}` : "",
    border: bytes(border),
    begin: eachElement(module.size("words", Math.ceil(signedBytes(shape) / 4))),
    store: to.store(
      "i",
      width === 4
        ? "element(i)"
        : `dot(vec4u(${parts.join(", ")}), vec4u(1u, 256u, 65536u, 16777216u))`,
    ),
  };
  const wgsl = render(template, { ...values, declarations: module.declarations() });
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], 0);
}

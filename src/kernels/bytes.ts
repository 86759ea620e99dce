/** Passes over bytes: copies as i8, with borders, and sums of products that are finished. */
import { BARRIER, printStatements } from "./ir/tree.ts";
import { axisDigits, digitsText } from "./axes.ts";
import { applyEpilogue, type EpilogueFactory, epilogueTrait } from "./epilogue.ts";
import { type ModuleBuilder, WHOLE } from "./module.ts";
import {
  eachElement,
  loopIterations,
  mainText,
  type SizedKernel,
  textKernel,
} from "./sized_kernel.ts";

/** WGSL of the elements of word `i`, where the last word has less than four the last element again. */
function wordElements(count: string, element: (at: string) => string): string {
  return [0, 1, 2, 3].map((b) => element(`min(i * 4u + ${b}u, ${count} - 1u)`)).join(", ");
}

/** An axis that grows by a border. */
interface BorderedAxis {
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

/**
 * Copies bytes as i8, four a thread, with borders along axes: u8 less 128, which turns the top bit. Binds `unsigned`, what is
 * read, and `signed`, both as words.
 */
export function signedBytesKernel(module: ModuleBuilder, shape: SignedBytesShape): SizedKernel {
  const { batch, axes, unsigned, border } = shape;
  // Whole words where runs are; single bytes else.
  const width = shape.run % 4 === 0 ? 4 : 1;
  const from = module.bind("unsigned", "read", 1, "u32");
  const to = module.bind("signed", "write", 1, "u32");
  const run = module.size("run", shape.run / width);
  const names = ["image", ...axes.map((_, d) => `x${d}`), "c"];
  const size = axes.map((axis, d) => module.size(`size${d}`, axis.size));
  const before = axes.map((axis, d) => module.size(`before${d}`, axis.before));
  const grown = axes.map(({ size, before, after }, d) =>
    module.size(`grown${d}`, before + size + after)
  );
  const bytes = (byte: number) => `0x${(byte & 255).toString(16).padStart(2, "0").repeat(width)}u`;
  const all = signedBytes(shape);
  const word = wordElements(module.size("count", all / width), (at) => `element(${at})`);
  const name = `signed_bytes_x${width}_${axes.length}d${unsigned ? "_u8" : ""}${
    axes.length === 0 ? "" : `_border${border}`
  }${module.splitTrait()}`;
  const words = Math.ceil(all / 4);
  const digits = digitsText(
    "e",
    "rest",
    axisDigits(names, [module.size("batch", batch), ...grown, run]),
  );
  const inside = axes.map((_, d) => `x${d} >= ${before[d]} && x${d} - ${before[d]} < ${size[d]}`);
  const offset = axes.reduce(
    (text, _, d) => `(${text}) * ${size[d]} + x${d} - ${before[d]}`,
    "image",
  );
  const value = width === 4
    ? from.load("at")
    : `((${from.load("at / 4u")} >> (at % 4u * 8u)) & 255u)`;
  const top = unsigned ? ` ^ ${bytes(128)}` : "";
  const stored = width === 4
    ? "element(i)"
    : `dot(vec4u(${word}), vec4u(1u, 256u, 65536u, 16777216u))`;
  const wgsl = [
    "fn element(e: u32) -> u32 {",
    digits,
    `  let inside = ${inside.join(" && ") || "true"};`,
    `  let at = select(0u, (${offset}) * ${run} + c, inside);`,
    `  return select(${bytes(border)}, ${value}${top}, inside);`,
    "}",
    eachElement(module.size("words", words)),
    `  ${to.store("i", stored)}`,
    "}",
  ];
  const about = "bytes as i8 in [batch][axes][run], with borders along the axes.";
  return textKernel(module, name, about, wgsl, { workgroups: Math.ceil(words / 256) });
}

/** Filters in groups, of i8: [group][filters][depth]. */
interface ZeroBiasShape {
  readonly groups: number;
  /** Of a group. */
  readonly filters: number;
  /** Of these the first so many have a bias. */
  readonly biased: number;
  readonly depth: number;
  /** Of the input, as i8. */
  readonly zeroPoint: number;
}

/**
 * What sums of x·w lack to be those of (x − zeroPoint)·w, a workgroup a filter: bias − zeroPoint·Σw, modulo 2^32. Binds `filter`,
 * `bias` where there is one, and `zero_bias`.
 */
export function zeroBiasKernel(
  module: ModuleBuilder,
  shape: ZeroBiasShape,
  hasBias: boolean,
): SizedKernel {
  const { groups, filters, biased, zeroPoint } = shape;
  const w = module.bind("filter", "read", 1, "i8");
  const bias = hasBias ? module.tensor("bias", "read", 1, WHOLE, "i32") : undefined;
  const result = module.tensor("zero_bias", "write", 1, WHOLE, "i32");
  const each = module.size("filters", filters);
  const own = module.size("biased", biased);
  const depth = module.size("depth", shape.depth);
  const name = `zero_bias${bias ? "_bias" : ""}${module.splitTrait()}`;
  const channel = `row / ${each} * ${own} + min(row % ${each}, ${own} - 1u)`;
  const threads = 64;
  const rows = module.size("rows", groups * filters);
  const wgsl = [
    "var<workgroup> total: atomic<i32>;",
    mainText(threads),
    "  let row = workgroup.x + workgroup.y * grid.x;",
    "  var sum = 0i;",
    `  if (row < ${rows}) {`,
    `    for (var d = t; d < ${depth}; d += ${threads}u) {`,
    `      sum += ${w.load(`row * ${depth} + d`)};`,
    "    }",
    "  }",
    "  atomicAdd(&total, sum);",
    printStatements([BARRIER]),
    `  if (row < ${rows} && t == 0u) {`,
    `    let bias = ${
      bias === undefined ? "0i" : `select(0i, ${bias.load(channel)}, row % ${each} < ${own})`
    };`,
    `    let zero = bitcast<i32>(${module.size("zero_point", zeroPoint >>> 0)});`,
    `    ${result.store("row", "bias - zero * atomicLoad(&total)")}`,
    "  }",
    "}",
  ];
  return textKernel(
    module,
    name,
    "what the input's zero point adds to every filter's sums.",
    wgsl,
    {
      workgroups: groups * filters,
      threads,
      bytes: 4,
      iterations: loopIterations(Math.ceil(shape.depth / threads)),
    },
  );
}

/** Sums of places in i32, channels innermost. */
interface FinishedSums {
  readonly elements: number;
  readonly channels: number;
  /** Where filters have zero points: behind each group's sums are those of a filter of ones. */
  readonly zeros?: {
    readonly groups: number;
    /** As the sums have it: one for all, or `channel`, one for each less `offset`. */
    readonly point: number | "channel";
    /** 128 of u8. */
    readonly offset: number;
  };
}

/**
 * Finishes sums, as i32 or as bytes, four a word, whose channels need not be whole words: what a product's own store cannot write. Of
 * filters with zero points it takes zeroPoint·Σx of the sums of x·w, modulo 2^32, which leaves those of x·(w − zeroPoint). Binds `sums`,
 * `filterZeroPoint` where channels have their own, `result` and what the epilogue reads.
 */
export function finishSumsKernel(
  module: ModuleBuilder,
  shape: FinishedSums,
  epilogue: EpilogueFactory,
  stored: "i32" | "i8",
): SizedKernel {
  const { elements, zeros } = shape;
  const sums = module.bind("sums", "read", 1, "i32");
  const points = zeros?.point === "channel"
    ? module.tensor("filterZeroPoint", "read", 1, WHOLE, "i32")
    : undefined;
  const width = stored === "i8" ? 4 : 1;
  const result = module.bind("result", "write", width, stored);
  const steps = epilogue(module, 1, (row) => row);
  const zero = zeros &&
    (points === undefined
      ? `bitcast<i32>(${module.size("zero_point", Number(zeros.point) >>> 0)})`
      : `(${points.load("channel")} - bitcast<i32>(${module.size("offset", zeros.offset)}))`);
  const name = `${
    zeros === undefined ? "quantize" : `zero_sums_${stored}${points ? "_channel" : ""}`
  }${epilogueTrait(steps)}${module.splitTrait()}`;
  const channels = module.size("channels", shape.channels);
  const finished = (at: string) =>
    applyEpilogue(steps, zeros === undefined ? sums.load(at) : `whole(${at})`, {
      width: 1,
      side: "rows",
      row: `(${at} % ${channels})`,
      column: `(${at} / ${channels})`,
      offset: at,
    });
  const four = wordElements(module.size("count", elements), finished);
  const each = zeros && module.size("each", shape.channels / zeros.groups);
  const results = Math.ceil(elements / width);
  const row = zeros && module.size("row", shape.channels + zeros.groups);
  const wgsl = [
    steps.map(({ declarations }) => declarations),
    zeros && [
      "fn whole(at: u32) -> i32 {",
      `  let channel = at % ${channels};`,
      `  let group = channel / ${each};`,
      `  let first = at / ${channels} * ${row};`,
      `  return ${sums.load("first + channel + group")} - ${zero} * ${
        sums.load(`first + group * (${each} + 1u) + ${each}`)
      };`,
      "}",
    ],
    eachElement(module.size(zeros ? "results" : "words", results)),
    `  ${result.store("i", width === 4 ? `vec4<i32>(${four})` : finished("i"))}`,
    "}",
  ];
  const about = "sums of products, less what the filters' zero points add to them, finished.";
  return textKernel(module, name, about, wgsl, { workgroups: Math.ceil(results / 256) });
}

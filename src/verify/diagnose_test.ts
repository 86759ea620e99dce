import assert from "#assert";
import type { Activation } from "../problem/activations.ts";
import { convProblem } from "../problem/conv_problem.ts";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { convSubject } from "../run/conv_subject.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import { fillOperands, fromCanonical } from "../run/operands.ts";
import type { HostOperands, Subject } from "../run/subject.ts";
import { bf16round } from "../tensor/convert.ts";
import { diagnose, diagnosisText } from "./diagnose.ts";
import { bestMatch } from "./hypothesis.ts";
import { verifySubject } from "./verify.ts";

/** What a plain convolution does, and may do wrongly. */
interface Loops {
  readonly stride?: number;
  readonly padding?: readonly [number, number];
  readonly dilation?: number;
  readonly groups?: number;
  readonly relu?: boolean;
  readonly biases?: number;
  readonly channels?: number;
  readonly flip?: boolean;
  readonly firstGroup?: boolean;
  /** The place that is read for one beyond the input. */
  readonly beyond?: (at: number) => number;
  readonly round?: (value: number) => number;
  /** Where in the input and in the filter an element of canonical indices lies. */
  readonly x?: (n: number, c: number, h: number, w: number) => number;
  readonly w?: (k: number, c: number, r: number, s: number) => number;
}

const SIZES = { n: 3, c: 8, size: 7, k: 8, taps: 3 };

/** A convolution by plain loops, of x [3, 8, 7, 7] and w [8, 8 / groups, 3, 3] in f32. */
function convolved({ input, filter, bias }: HostOperands, loops: Loops): Float32Array<ArrayBuffer> {
  const { n, c, size, k, taps } = SIZES;
  const { stride = 1, padding: [top, left] = [1, 1], dilation = 1, groups = 1 } = loops;
  const { relu = false, biases = 1, flip = false, firstGroup = false, round = Number } = loops;
  const perGroup = c / groups, channels = loops.channels ?? perGroup;
  const x = loops.x ?? ((n, ch, h, w) => ((n * c + ch) * size + h) * size + w);
  const w = loops.w ?? ((k, c, r, s) => ((k * perGroup + c) * taps + r) * taps + s);
  const out = outSize(loops.stride, loops.dilation);
  const result = new Float32Array(n * k * out * out);
  let at = 0;
  for (let i = 0; i < n; i++) {
    for (let o = 0; o < k; o++) {
      const group = firstGroup ? 0 : Math.floor(o / (k / groups));
      for (let p = 0; p < out; p++) {
        for (let q = 0; q < out; q++, at++) {
          let sum = 0;
          for (let ch = 0; ch < channels; ch++) {
            for (let r = 0; r < taps; r++) {
              for (let s = 0; s < taps; s++) {
                const [h, v] = [p * stride + r * dilation - top, q * stride + s * dilation - left]
                  .map((at) => at < 0 || at >= size ? loops.beyond?.(at) ?? -1 : at) as [
                    number,
                    number,
                  ];
                if (h < 0 || v < 0 || h >= size || v >= size) continue;
                const [fr, fs] = flip ? [taps - 1 - r, taps - 1 - s] : [r, s];
                sum = Math.fround(
                  sum + round(input![x(i, group * perGroup + ch, h, v)]!) *
                      round(filter![w(o, ch, fr, fs)]!),
                );
              }
            }
          }
          sum += biases * (bias?.[o] ?? 0);
          result[at] = relu ? Math.max(0, sum) : sum;
        }
      }
    }
  }
  return result;
}

function outSize(stride = 1, dilation = 1): number {
  return Math.floor((SIZES.size + 2 - 2 * dilation - 1) / stride) + 1;
}

function subjectOf({ stride = 1, dilation = 1, groups = 1, relu, biases }: Loops): Subject {
  const { n, c, size, k, taps } = SIZES;
  return convSubject({
    problem: convProblem({
      ...{ batch: n, inChannels: c, outChannels: k, groups, stride, dilation, padding: 1 },
      ...{ inputSize: [size, size], filterSize: [taps, taps] },
    }),
    ...{ layout: "nchw", filterLayout: "kcrs" },
    epilogue: { bias: biases !== undefined, activation: relu ? "relu" : "none" },
  });
}

async function diagnosed(subject: Subject, operands: HostOperands, result: Float32Array) {
  const options = { arithmetic: "f32" };
  const data = result as Float32Array<ArrayBuffer>;
  const verified = await verifySubject(subject, operands, data, options);
  assert.equal(verified.verdict, "fail");
  return await diagnose({ subject, operands, result: data, verified, ...options });
}

/** Faults: what the convolution is, what the kernel does in its place, and what the diagnosis must name. */
const FAULTS: readonly (readonly [right: Loops, wrong: Loops, name: RegExp])[] = [
  [{}, { flip: true }, /^the filter flipped/],
  [{}, { padding: [0, 0] }, /one less in front and one more behind$|^no padding in front/],
  [{}, { padding: [1, 0] }, /one less in front and one more behind, along columns/],
  [{}, { padding: [2, 2] }, /one more in front and one less behind$/],
  [{}, { beyond: (at) => at < 0 ? 0 : 6 }, /^padding that repeats the edge/],
  [{}, { beyond: (at) => at < 0 ? -at : 12 - at }, /^padding that mirrors the input/],
  [{}, { beyond: (at) => at < 0 ? at + 7 : at - 7 }, /^padding that wraps around/],
  [{ biases: 1 }, { biases: 0 }, /^the bias missing/],
  [{ biases: 1 }, { channels: 0 }, /^the bias alone/],
  [{ biases: 1 }, { biases: 2 }, /^the bias added twice/],
  [{ relu: true }, { relu: false }, /^no relu/],
  [{ groups: 2 }, { groups: 2, firstGroup: true }, /^the first group's input/],
  [{}, { channels: 4 }, /.*/],
  [{}, { w: (k, c, r, s) => ((c * 8 + k) * 3 + r) * 3 + s }, /input and output channels swapped/],
  [
    {},
    { w: (k, c, r, s) => ((k * 8 + c) * 3 + s) * 3 + r },
    /the filter with rows and columns swapped/,
  ],
  [{}, { w: (k, c, r, s) => ((k * 3 + r) * 3 + s) * 8 + c }, /the filter read as krsc/],
  [
    {},
    { x: (n, c, h, w) => ((n * 8 + c) * 7 + w) * 7 + h },
    /the input with rows and columns swapped/,
  ],
  [{}, { x: (n, c, h, w) => ((n * 7 + h) * 7 + w) * 8 + c }, /the input read as nhwc/],
  [{}, { x: (_, c, h, w) => (c * 7 + h) * 7 + w }, /image 0 in place of every one/],
];

for (const [right, wrong, name] of FAULTS) {
  const said = Object.entries({ ...right, ...wrong }).map(([key, value]) => `${key} ${value}`);
  Deno.test(`a diagnosis names what a kernel does: ${said.join(", ")}`, async () => {
    const subject = subjectOf(right);
    const operands = fillOperands(subject, "normal", 1);
    const { match } = await diagnosed(
      subject,
      operands,
      convolved(operands, { ...right, ...wrong }),
    );
    if (name.source === ".*") return assert.equal(match, undefined);
    assert.match(match?.name ?? "no match", name);
    assert.ok(match!.relL2 < 1e-6, `${match!.relL2}`);
  });
}

Deno.test("a diagnosis says where outputs are wrong", async () => {
  const subject = subjectOf({});
  const operands = fillOperands(subject, "normal", 1);
  const places: readonly [
    wrong: (n: number, k: number, p: number, q: number) => boolean,
    RegExp,
  ][] = [
    [(_, k) => k === 5, /^147 of 1,176 outputs are wrong: all in channel 5/],
    [
      (n, k) => n === 2 && k >= 4,
      /all in image 2, channels 4 to 7, the tail behind a multiple of 4/,
    ],
    [(_, __, p, q) => p === 0 || q === 6, /all at the border/],
    [(_, k) => k % 2 === 1, /all in channels 1 to 7 in steps of 2/],
    [
      (n, k, p, q) => n + k + p + q === 0,
      /^1 of 1,176 outputs is wrong: in image 0, channel 0, row 0, column 0/,
    ],
  ];
  for (const [wrong, where] of places) {
    const result = convolved(operands, {});
    result.forEach((_, i) => {
      const at = [
        Math.floor(i / 392),
        Math.floor(i / 49) % 8,
        Math.floor(i / 7) % 7,
        i % 7,
      ] as const;
      if (wrong(...at)) result[i]! += 1;
    });
    assert.match(diagnosisText(await diagnosed(subject, operands, result)), where);
  }
});

Deno.test("a diagnosis names zeros, factors, swaps of the result, and rounded operands", async () => {
  const subject = subjectOf({});
  const operands = fillOperands(subject, "normal", 1);
  const right = convolved(operands, {});
  const texts: readonly [Float32Array, RegExp][] = [
    [right.map(() => 0), /^1,176 of 1,176 outputs are 0 where the reference is not$/],
    [right.map((value) => -value), /the other sign/],
    [right.map((value) => value * 0.5), /all results times 0\.5/],
    [right.map((value) => value + 0.25), /all results plus 0\.25/],
    [
      right.map((value, i) => value + (Math.floor(i / 49) % 8) ** 2),
      /in channels 1 to 7; the result matches with a value added to each channel, as a bias is/,
    ],
    [right.map((value) => Math.max(0, value)), /are 0 where .* relu, which is not asked for/],
    [right.map((_, i) => right[i < 784 ? i : i - 784]!), /in image 2; there .* image 0 in place/],
    [
      right.map((_, i) => right[i % 7 === 0 ? i : i - 1]!),
      /the previous column in place of each/,
    ],
    [
      right.map((_, i) => right[i - i % 49 + (i % 7) * 7 + Math.floor(i / 7) % 7]!),
      /rows and columns of the result swapped/,
    ],
    [right.map((_, i) => right[i - i % 7 + 6 - i % 7]!), /columns in reverse/],
    [convolved(operands, { round: bf16round }), /errors are those of bf16-f32/],
  ];
  for (const [result, text] of texts) {
    assert.match(diagnosisText(await diagnosed(subject, operands, result)), text);
  }
});

Deno.test("a fault that leaves nothing but zeros is not named", () => {
  const indices = [0, 1, 2, 3, 4], one = indices.map(() => 1), zero = indices.map(() => 0);
  const nothing = { name: "nothing", values: () => Float64Array.from(zero) };
  const sample = { indices, got: zero, expected: [1, 2, 3, 4, 5], magnitudes: one };
  assert.equal(bestMatch([nothing], sample), undefined);
});

Deno.test("a diagnosis calls no infinity wrong that the type of results makes", async () => {
  const subject = subjectOf({});
  const operands = fillOperands(subject, "constant", 1);
  const large = Object.fromEntries(
    Object.entries(operands).map((
      [role, data],
    ) => [role, (data as Float32Array).map(() => 60_000)]),
  );
  const result = convolved(large, {}).map(() => Infinity);
  const options = { arithmetic: "f16-f32-f16" };
  const { verdict, message } = await verifySubject(subject, large, result, options);
  assert.equal(verdict, "pass");
  assert.match(message!, /^1176 of 1176 .* overflow f16 to infinity: .* results in f32 hold it/);
  for (const wrong of [65_504, -Infinity, NaN]) {
    const data = result.with(7, wrong);
    const verified = await verifySubject(subject, large, data, options);
    assert.equal(verified.verdict, "fail", `${wrong}`);
    const failed = { subject, operands: large, result: data, verified, ...options };
    assert.match(
      diagnosisText(await diagnose(failed)),
      /^1 of 1,176 outputs is .* row 1, column 0/,
    );
  }
});

for (const op of ["bwd-data", "bwd-filter"] as const) {
  Deno.test(`a diagnosis names faults of gradients: ${op}`, async () => {
    const sizes = { op, batch: 2, inChannels: 6, outChannels: 4 };
    const of = (more: { paddingBegin: number[]; paddingEnd: number[]; stride?: number }) =>
      convSubject({
        problem: convProblem({ ...sizes, inputSize: [7, 6], filterSize: [3, 3], ...more }),
        ...{ layout: "nhwc", filterLayout: "krsc" },
      });
    const subject = of({ paddingBegin: [1, 1], paddingEnd: [1, 1] });
    const operands = fillOperands(subject, "normal", 1);
    const computed = async (other: Subject, inputs: HostOperands) =>
      fromCanonical(other, (await other.reference.of(inputs, {})).values) as Float32Array<
        ArrayBuffer
      >;
    const shifted = of({ paddingBegin: [2, 1], paddingEnd: [0, 1] });
    const rows = await diagnosed(subject, operands, await computed(shifted, operands));
    assert.match(rows.match?.name ?? "no match", /^padding one more in front .*, along rows$/);
    const last = await computed(subject, operands);
    const [first] = op === "bwd-data" ? [7 * 6 * 6] : [4 * 9 * 6 / 4];
    const repeated = last.map((_, i) => last[i % first!]!);
    const again = await diagnosed(subject, operands, repeated);
    assert.match(
      again.match?.name ?? "no match",
      /^(image|output channel) 0 in place of every one$/,
    );
  });
}

Deno.test("a diagnosis names slopes and biases of other channels, other activations, and exchanged groups", async () => {
  const of = (activation: Activation, groups = 4) =>
    convSubject({
      problem: convProblem({
        ...{ batch: 2, inChannels: 8, outChannels: 8, groups },
        ...{ inputSize: [6, 6], filterSize: [3, 3] },
      }),
      ...{ layout: "nchw", filterLayout: "kcrs" },
      epilogue: { bias: true, activation },
    });
  const subject = of("prelu");
  const operands = fillOperands(subject, "normal", 1);
  const right = (await subject.reference.of(operands, {})).values;
  const others = (role: "bias" | "slope", from: (channel: number) => number) => ({
    ...operands,
    [role]: operands[role]!.map((_, channel) => operands[role]![from(channel)]!),
  });
  const made = async (inputs: HostOperands, other = subject) =>
    (await other.reference.of(inputs, {})).values;
  const size = right.length / 8;
  const exchanged = (from: readonly number[]) =>
    right.map((_, i) =>
      right[i + (from[Math.floor(i / size) % 4]! - Math.floor(i / size) % 4) * size]!
    );
  const faults: readonly [Float64Array, RegExp][] = [
    [await made(others("slope", (channel) => (channel + 1) % 8)), /^the next channel's slope/],
    [
      await made(others("slope", (channel) => 7 - channel)),
      /^the slope of .* counted from the end/,
    ],
    [await made(others("slope", (channel) => channel % 2)), /^the first group's slope/],
    [await made(others("bias", () => 0)), /^channel 0's bias for all/],
    [await made(operands, of("leaky-relu")), /^leaky-relu in place of prelu/],
    [await made(operands, of("tanh")), /^tanh in place of prelu/],
    [
      exchanged([0, 3, 2, 1]),
      /^results of other groups: group 3's in group 1, group 1's in group 3$/,
    ],
    [exchanged([1, 2, 3, 0]), /^results of other groups: .*'s in group 3$/],
  ];
  for (const [result, name] of faults) {
    const { match } = await diagnosed(subject, operands, Float32Array.from(result));
    assert.match(match?.name ?? "no match", name);
  }
});

Deno.test("a diagnosis names what becomes of sums that are scaled to bytes", async () => {
  const subject = convSubject({
    problem: convProblem({
      ...{ batch: 1, inChannels: 8, outChannels: 8, inputSize: [7, 7], filterSize: [3, 3] },
    }),
    ...{ layout: "nhwc", filterLayout: "krsc", dtype: "i8", outDtype: "i8" },
    epilogue: { bias: false, activation: "none", scale: 0.002, zeroPoint: 5 },
  });
  const operands = fillOperands(subject, "int8", 1);
  const { values } = await subject.linear!.reference.of(operands, {});
  const lying = (of: (value: number) => number) =>
    Int8Array.from(values, (_, i) => of(values[i % 8 * 25 + Math.floor(i / 8)]! * 0.002));
  const faults: readonly [(value: number) => number, RegExp][] = [
    [(value) => Math.round(value) + 5, /wrapped around/],
    [
      (value) => Math.max(-128, Math.min(127, Math.trunc(value) + 5)),
      /cut off in place of rounded/,
    ],
    [(value) => Math.max(-128, Math.min(127, Math.round(value))), /zero point left out/],
  ];
  for (const [of, name] of faults) {
    const result = lying(of);
    const options = { arithmetic: "i8" };
    const verified = await verifySubject(subject, operands, result, options);
    assert.equal(verified.verdict, "fail");
    const { match } = await diagnose({ subject, operands, result, verified, ...options });
    assert.match(match?.name ?? "no match", name);
  }
});

Deno.test("a diagnosis names faults of products", async () => {
  const sizes = { m: 9, n: 9, k: 9 };
  const of = (more: Partial<ReturnType<typeof gemmProblem>>) =>
    gemmSubject(gemmProblem({ ...sizes, ...more }), { dtype: "f32" });
  const computed = async (subject: Subject, operands: HostOperands) =>
    Float32Array.from((await subject.reference.of(operands, {})).values);
  const faults: readonly [
    right: Parameters<typeof of>[0],
    wrong: Parameters<typeof of>[0],
    RegExp,
  ][] = [
    [{}, { transpose: "tn" }, /^A transposed/],
    [{}, { transpose: "nt" }, /^B transposed/],
    [{ bias: "row" }, { bias: "none" }, /^the bias missing/],
    [{ bias: "row" }, { bias: "column" }, /^the bias along the other side/],
    [{ beta: 0.5 }, { beta: 0 }, /^C missing/],
    [{ beta: 0.5 }, { beta: 1 }, /^beta left out/],
    [{ alpha: 0.5, beta: 1 }, { beta: 1 }, /^alpha left out/],
    [{ alpha: 0.5, beta: 2 }, { alpha: 2, beta: 0.5 }, /^alpha and beta swapped/],
    [{ alpha: 0.5, beta: 3 }, { alpha: 0.5, beta: 1.5 }, /^C multiplied by alpha, too/],
    [{ activation: "gelu" }, {}, /^no gelu/],
    [{ activation: "gelu" }, { activation: "silu" }, /^silu in place of gelu/],
    [{}, { activation: "relu" }, /^relu, which is not asked for/],
  ];
  for (const [right, wrong, name] of faults) {
    const subject = of(right);
    const operands = fillOperands(subject, "normal", 1);
    const { match } = await diagnosed(subject, operands, await computed(of(wrong), operands));
    assert.match(match?.name ?? "no match", name);
  }
});

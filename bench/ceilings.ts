/**
 * What the arithmetic of the GPU at hand reaches from registers alone, no memory in the loop: the ceilings that
 * docs/performance/method.md measures kernels against.
 *   deno run -A bench/ceilings.ts
 * Several forms of each type; the best one is the ceiling. TFLOP/s, or TOPS for int8 (a multiply-add is two).
 */
import { openDevice } from "../src/gpu/device.ts";
import { type Probe, timeProbe } from "./probes/probe.ts";

/** One form: `chains` independent sums of `type` a thread, each updated once a step. */
interface Form {
  readonly name: string;
  readonly type: string;
  /** Multiply-adds of one update. */
  readonly width: number;
  readonly feature?: string;
  readonly chains: number;
  update(sum: string, a: string, b: string): string;
  /** Whether sums may be regrouped, so that factors must change for products not to be shared. */
  readonly exact?: boolean;
  /** A value of the type from an f32 expression, and back. */
  from(value: string): string;
  to(value: string): string;
}

const fma = (sum: string, a: string, b: string) => `${sum} = fma(${a}, ${b}, ${sum});`;

function floatForms(scalar: string, feature?: string): Form[] {
  return [1, 2, 4].flatMap((width) =>
    [8, 16, 32].map((chains) => {
      const type = width === 1 ? scalar : `vec${width}<${scalar}>`;
      return {
        name: `${type} x ${chains}`,
        type,
        width,
        ...(feature === undefined ? {} : { feature }),
        chains,
        update: fma,
        from: (value: string) => `${type}(${scalar}(${value}))`,
        to: (value: string) =>
          width === 1
            ? `f32(${value})`
            : `f32(${[..."xyzw"].slice(0, width).map((c) => `${value}.${c}`).join(" + ")})`,
      };
    })
  );
}

const FORMS: readonly Form[] = [
  ...floatForms("f32"),
  ...floatForms("f16", "shader-f16"),
  ...floatForms("f64", "shader-f64"),
  ...[8, 16, 32].map((chains) => ({
    name: `dot4I8Packed x ${chains}`,
    type: "i32",
    width: 4,
    chains,
    exact: true,
    update: (sum: string, a: string, b: string) =>
      `${sum} += dot4I8Packed(bitcast<u32>(${a}), bitcast<u32>(${b}));`,
    from: (value: string) => `bitcast<i32>(${value})`,
    to: (value: string) => `f32(${value})`,
  })),
];

const STEPS = 16;

/** Eight a and b values in registers, every chain using another pair. */
function formProbe(form: Form, rounds: number, workgroups: number): Probe {
  const { chains, type } = form;
  const values = (name: string) =>
    Array.from(
      { length: 8 },
      (_, i) => `  var ${name}${i}: ${type} = ${form.from(`data[(t + ${i}u) % 64u] * 0.5f`)};`,
    );
  // Sums of integers may be regrouped: the compiler would keep products that come back.
  const changed = (step: number) =>
    form.exact
      ? Array.from({ length: 8 }, (_, i) => `    a${i} ^= bitcast<i32>(round * 16u + ${step}u);`)
      : [];
  const body = Array.from({ length: STEPS }, (_, step) => [
    ...changed(step),
    ...Array.from(
      { length: chains },
      (_, i) =>
        `    ${form.update(`s${i}`, `a${i % 8}`, `b${(i + Math.floor(i / 8) + step) % 8}`)}`,
    ),
  ]).flat();
  return {
    name: `probe_${form.name.replace(/\W/g, "_")}`,
    wgsl: [
      "@compute @workgroup_size(256)",
      "fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) t: u32) {",
      ...values("a"),
      ...values("b"),
      ...Array.from({ length: chains }, (_, i) => `  var s${i}: ${type} = ${form.from("0.0f")};`),
      `  for (var round = 0u; round < ${rounds}u; round++) {`,
      ...body,
      "  }",
      `  let sum = ${Array.from({ length: chains }, (_, i) => form.to(`s${i}`)).join(" + ")};`,
      "  if (sum == 12345.0f) { result[id.x] = sum; }",
      "}",
    ].join("\n"),
    threads: 256,
    workgroups,
    element: "f32",
    workgroupBytes: 0,
    features: form.feature === undefined ? [] : [form.feature],
    data: new Float32Array(64).map((_, i) => 0.5 + i / 128),
    resultBytes: 4 * 256 * workgroups,
  };
}

/** Rate of a form in 10¹² operations a second. */
async function rate(form: Form): Promise<number> {
  using gpu = await openDevice(form.feature === undefined ? {} : { features: [form.feature] });
  const rounds = gpu.info.software ? 4 : 512;
  const workgroups = gpu.info.software ? 8 : 132 * 16;
  const { ns } = await timeProbe(gpu, formProbe(form, rounds, workgroups));
  return 2 * form.width * form.chains * STEPS * rounds * 256 * workgroups / ns / 1e3;
}

for (const form of FORMS) {
  const value = await rate(form).then((one) => one.toFixed(2)).catch((error: Error) =>
    error.message
  );
  console.log(`${form.name.padEnd(24)} ${value}`);
}

import { npyBytes } from "../../src/npy/header.ts";
import { fillTensor } from "../../src/tensor/fill.ts";
import type { DType } from "../../src/tensor/dtype.ts";
import { tensor } from "../../src/tensor/tensor.ts";
import { zipSync } from "../../src/deps/fflate.ts";

function npy(dtype: DType, shape: readonly number[], seed: number): Uint8Array<ArrayBuffer> {
  const real = dtype === "bf16" || dtype.startsWith("f");
  const pieces = [...npyBytes(fillTensor(dtype, shape, real ? "uniform11" : "integer", seed))];
  return new Uint8Array(pieces.flatMap((piece) => [...piece]));
}

const ENVIRONMENT = {
  schema: 1,
  kind: "environment",
  version: "0.1.0",
  deno: "2.9.6",
  os: "linux",
  arch: "x86_64",
  backend: "wgpu",
  adapter: "test",
  driver: "",
  limits: {},
  seed: 1,
  date: "2026-11-21T00:00:00.000Z",
};

/** f32 of values that are given in turn. */
function given(shape: readonly number[], values: readonly number[]): Uint8Array<ArrayBuffer> {
  const count = shape.reduce((all, size) => all * size, 1);
  const data = Float32Array.from({ length: count }, (_, i) => values[i % values.length]!);
  return new Uint8Array([...npyBytes(tensor("f32", shape, data))].flatMap((piece) => [...piece]));
}

/** A case as `bench` writes it. */
export function caseLine(problem: string, op: string, layout: string, scale: number): string {
  const samples = [1, 1.01, 0.99, 1.02, 1, 1.01].map((sample) => sample * scale);
  return JSON.stringify({
    schema: 1,
    kind: "case",
    provider: "wgconv",
    problem,
    op,
    algorithm: "direct",
    requested: "auto",
    kernel: "direct_fwd_f32_2d_nchw_kcrs",
    device: "test",
    dtype: "f32",
    layout,
    filter_layout: "kcrs",
    cache: "hot",
    time_ms: {
      median: scale,
      min: 0.99 * scale,
      mad: 0.01,
      samples,
      repeats: 5,
      clock: "timestamp",
    },
    gflops: 1.5,
    flops: 1000,
    multiplications: 500,
    workspace_bytes: 0,
    memory_bytes: 4096,
    accuracy: {
      mare: 1e-7,
      median_rel: 1e-7,
      p99_rel: 1e-6,
      max_rel: 1e-5,
      max_ulp: 2,
      rel_l2: 1e-7,
      max_bound_ratio: 2,
      mean_signed: 0,
      condition: 1,
      nan: 0,
      inf: 0,
      mismatched: 0,
      zero_ref: 0,
      checked: 100,
      total: 100,
      worst: [{ index: [0, 1, 2, 3], got: 1, ref: 1.0000001 }],
    },
    verdict: "pass",
    fill: "uniform01",
    seed: 1,
  });
}

/** Lines of a tuning file. */
export function tuningLine(device: string, algorithm: string): string {
  return JSON.stringify({
    schema: 1,
    kind: "tuning",
    version: "0.1.0",
    backend: "wgpu",
    device,
    driver: "",
    problem: "mb1ic4ih8oc4oh8kh3ph1",
    op: "fwd",
    dtype: "f32",
    layout: "nchw",
    filter_layout: "kcrs",
    algorithm,
    kernels: ["direct_fwd_f32_2d_nchw_kcrs"],
    winner: true,
    verdict: "pass",
    time_ms: { median: 1, min: 1, mad: 0, samples: [1], repeats: 1, clock: "timestamp" },
  });
}

/** A run's records. */
export function recordsText(scale: number): string {
  return [
    JSON.stringify(ENVIRONMENT),
    caseLine("mb1ic4ih8oc4oh8kh3ph1", "fwd", "nchw", scale),
    caseLine('mb2ic4ih8oc4oh8kh3ph1n"twice*3"', "bwd-data", "nhwc", 2 * scale),
    caseLine("mb1ic4ih9oc4oh9kh3ph1", "bwd-filter", "chwn", 1),
    "",
  ].join("\n");
}

/** A baseline of `wgconv check`. */
export const BASELINE = JSON.stringify(
  {
    schema: 1,
    kind: "baseline",
    version: "0.1.0",
    adapter: "test",
    fill: "uniform01",
    seed: 1,
    cases: {
      "fwd nchw f32 direct mb1ic4ih8oc4oh8kh3ph1": {
        max_bound_ratio: 2,
        rel_l2: 1e-7,
        mare: 1e-7,
        checked: 256,
      },
      "fwd nhwc f32 direct mb1ic4ih8oc4oh8kh3ph1": {
        max_bound_ratio: 2,
        rel_l2: 1e-7,
        mare: null,
        checked: 256,
      },
    },
  },
  null,
  1,
);

/** Files that command lines find where they run: good ones and bad ones. */
export const SAMPLE_FILES: Readonly<Record<string, string | Uint8Array>> = {
  "x.npy": npy("f32", [1, 4, 8, 8], 1),
  "w.npy": npy("f32", [4, 4, 3, 3], 2),
  "dy.npy": npy("f32", [1, 4, 8, 8], 3),
  "bias.npy": npy("f32", [4], 4),
  "a.npy": npy("f32", [5, 6], 5),
  "b.npy": npy("f32", [6, 7], 6),
  "i8.npy": npy("i8", [5, 6], 7),
  "bf16.npy": npy("bf16", [5, 6], 8),
  "empty.npy": npy("f32", [0, 3], 8),
  "blank.npy": given([3, 1, 8, 8], [200 / 255]),
  "sharpen.npy": given([1, 1, 3, 3], [-1, -2, -1, -2, 12, -2, -1, -2, -1]),
  "infinite.npy": given([5, 6], [1, -Infinity, 2, Infinity, 0.5]),
  "scalar.npy": npy("f64", [], 9),
  "limits.json": JSON.stringify({ maxBufferSize: 1e6 }),
  "both.npz": zipSync({ "x.npy": npy("f32", [2, 3], 1), "y.npy": npy("i32", [4], 2) }),
  "cut.npy": npy("f32", [1, 4, 8, 8], 1).slice(0, 200),
  "suite.txt": '# two\nmb1ic4ih8oc4kh3ph1n"one"\nmb1ic4ih9oc4kh3n"two"\n',
  "gemm.txt": "8,8,8\n5,6,7\n",
  "bad.txt": "mb1ic3hi8\u001b[31m\n",
  "loop.txt": "--batch=loop.txt\n",
  "run.jsonl": recordsText(1),
  "other.jsonl": recordsText(1.5),
  "tuning.jsonl": `${tuningLine("test", "direct")}\n${tuningLine("other", "im2win")}\n`,
  "baseline.json": BASELINE,
  "nothing": "",
  "text": "no tensor at all\n",
  "\u00e4 \u00f6.npy": npy("f32", [2, 2], 1),
};

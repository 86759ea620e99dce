import { npyBytes } from "../../src/npy/header.ts";
import { fillTensor } from "../../src/tensor/fill.ts";
import type { DType } from "../../src/tensor/dtype.ts";
import { tensor } from "../../src/tensor/tensor.ts";
import { zipSync } from "../../src/deps/fflate.ts";
import { ACCURACY, stream, timeOf } from "../support/test_records.ts";

function npy(dtype: DType, shape: readonly number[], seed: number): Uint8Array<ArrayBuffer> {
  const real = dtype === "bf16" || dtype.startsWith("f");
  const pieces = [...npyBytes(fillTensor(dtype, shape, real ? "uniform11" : "integer", seed))];
  return new Uint8Array(pieces.flatMap((piece) => [...piece]));
}

/** f32 of values that are given in turn. */
function given(shape: readonly number[], values: readonly number[]): Uint8Array<ArrayBuffer> {
  const count = shape.reduce((all, size) => all * size, 1);
  const data = Float32Array.from({ length: count }, (_, i) => values[i % values.length]!);
  return new Uint8Array([...npyBytes(tensor("f32", shape, data))].flatMap((piece) => [...piece]));
}

const PLACES = [{ index: [0, 1, 2, 3], got: 1, ref: 1.0000001 }];
const PROBLEM = "mb1ic4ih8oc4oh8kh3ph1";

/** A run's records. */
export function recordsText(scale: number): string {
  const accuracy = { ...ACCURACY, nan: 0, inf: 0, zero_ref: 0, worst: PLACES };
  const one = (changes: Readonly<Record<string, unknown>>, ms: number) => ({
    ...{ requested: "auto", device: "test", cache: "hot", flops: 1000, memory_bytes: 4096 },
    ...{ accuracy, time_ms: timeOf(ms), ...changes },
  });
  return stream(
    one({ problem: PROBLEM }, scale),
    one({ problem: 'mb2ic4ih8oc4oh8kh3ph1n"twice*3"', op: "bwd-data", layout: "nhwc" }, 2 * scale),
    one({ problem: "mb1ic4ih9oc4oh9kh3ph1", op: "bwd-filter", layout: "chwn" }, 1),
  );
}

/** A line of a tuning file. */
function tuningLine(device: string, algorithm: string): string {
  return `${
    JSON.stringify({
      ...{ schema: 1, kind: "tuning", version: "0.1.0", backend: "wgpu", device, driver: "" },
      ...{ problem: PROBLEM, op: "fwd", dtype: "f32", layout: "nchw", filter_layout: "kcrs" },
      ...{ algorithm, kernels: ["direct_fwd_f32_2d_nchw_kcrs"], time_ms: timeOf(1) },
      ...{ winner: true, verdict: "pass" },
    })
  }\n`;
}

export const TUNING = tuningLine("test", "direct") + tuningLine("other", "im2win");

const FIGURES = { max_bound_ratio: 2, rel_l2: 1e-7, mare: 1e-7, checked: 256 };

/** A baseline of `wgconv check`. */
export const BASELINE = JSON.stringify(
  {
    ...{ schema: 1, kind: "baseline", version: "0.1.0", adapter: "test" },
    ...{ fill: "uniform01", seed: 1 },
    cases: {
      [`fwd nchw f32 direct ${PROBLEM}`]: FIGURES,
      [`fwd nhwc f32 direct ${PROBLEM}`]: { ...FIGURES, mare: null },
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
  "tuning.jsonl": TUNING,
  "baseline.json": BASELINE,
  "nothing": "",
  "text": "no tensor at all\n",
  "\u00e4 \u00f6.npy": npy("f32", [2, 2], 1),
};

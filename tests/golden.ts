import { unzipSync } from "../src/deps/fflate.ts";
import { parseNpyHeader } from "../src/npy/mod.ts";
import {
  type ConvProblem,
  convProblem,
  type Operation,
  OPERATIONS,
} from "../src/problem/conv_problem.ts";

/** A convolution that PyTorch computed in float64 on the CPU; tensors in canonical order (NCHW, KCRS). */
export interface GoldenCase {
  readonly name: string;
  readonly problems: { readonly [O in Operation]: ConvProblem };
  /** Operands: X, W and ∇Y. */
  readonly input: Float32Array<ArrayBuffer>;
  readonly filter: Float32Array<ArrayBuffer>;
  readonly gradOutput: Float32Array<ArrayBuffer>;
  /** Results: Y, ∇X and ∇W. */
  readonly results: { readonly [O in Operation]: Float64Array<ArrayBuffer> };
}

interface CaseJson {
  name: string;
  N: number;
  C: number;
  H: number;
  W: number;
  K: number;
  R: number;
  S: number;
  stride: number[];
  pad: number[];
  dilation: number[];
  groups: number;
}

const ARCHIVE = new URL("../fixtures/conv_pytorch_f64.zip", import.meta.url);

/** The case of a name. */
export function goldenCase(name: string): GoldenCase {
  const golden = loadGoldenCases().find((one) => one.name === name);
  if (golden === undefined) throw new Error(`There is no golden case ${name}`);
  return golden;
}

let loaded: GoldenCase[] | undefined;

/** Loads the 22 cases of `fixtures/conv_pytorch_f64.zip`. */
export function loadGoldenCases(): GoldenCase[] {
  return loaded ??= readCases();
}

function readCases(): GoldenCase[] {
  const files = unzipSync(Deno.readFileSync(ARCHIVE));
  const file = (path: string) => {
    const bytes = files[path];
    if (bytes === undefined) throw new Error(`Cannot load golden data: ${path} is missing`);
    return bytes;
  };
  const cases: CaseJson[] = JSON.parse(new TextDecoder().decode(file("cases.json")));
  return cases.map((entry) => {
    const operand = (name: string) => new Float32Array(npyData(file(name), name, "f32"));
    const result = (name: string) => new Float64Array(npyData(file(name), name, "f64"));
    const problem = (op: Operation) =>
      convProblem({
        op,
        name: entry.name,
        batch: entry.N,
        inChannels: entry.C,
        outChannels: entry.K,
        groups: entry.groups,
        inputSize: [entry.H, entry.W],
        filterSize: [entry.R, entry.S],
        stride: entry.stride,
        paddingBegin: entry.pad,
        dilation: entry.dilation,
      });
    const [fwd, bwdData, bwdFilter] = OPERATIONS.map(problem) as [
      ConvProblem,
      ConvProblem,
      ConvProblem,
    ];
    return {
      name: entry.name,
      problems: { fwd, "bwd-data": bwdData, "bwd-filter": bwdFilter },
      input: operand(`${entry.name}/x.npy`),
      filter: operand(`${entry.name}/w.npy`),
      gradOutput: operand(`${entry.name}/dy.npy`),
      results: {
        fwd: result(`${entry.name}/y.npy`),
        "bwd-data": result(`${entry.name}/dx.npy`),
        "bwd-filter": result(`${entry.name}/dw.npy`),
      },
    };
  });
}

/** The elements of a C-order little-endian `.npy` file, copied so that they are aligned. */
function npyData(bytes: Uint8Array, path: string, dtype: "f32" | "f64"): ArrayBuffer {
  const header = parseNpyHeader(bytes, path);
  if (header.dtype !== dtype || header.fortranOrder || !header.littleEndian) {
    throw new Error(`Cannot load golden data: ${path} is not little-endian ${dtype} in C order`);
  }
  return bytes.slice(header.dataOffset).buffer as ArrayBuffer;
}

/**
 * What a device's compiler made of the kernels that a suite's plans use: registers, spills, workgroup memory, occupancy and,
 * of NVIDIA's machine code, the instructions of the loop. Compiles each kernel once and runs none:
 *   bench/machine_code/build.sh && deno run -A bench/machine_code.ts --suite bench/suites/resnet3x3.txt --match N64
 * `--op fwd,bwd-data,bwd-filter`, or `gemm` for a suite of products; `--layout`, `--dtype`, `--algorithm` (a list of names;
 * `auto`, what it takes, where nothing is said; `rivals`, all that it may take), `--math`, `--policy`, `--tile`, `--pair`, `--with`,
 * `--backend`, `--adapter`; `--all` shows transforms and packing too; `--json` prints a line a kernel. `--layer FOLDER` is what build.sh
 * made, `--out FOLDER` is made anew for the driver's caches and listings, `--nvdisasm PROGRAM` lists machine code where it is
 * found. Exits 1 where a kernel that `auto` may take spills registers, 3 where the driver tells nothing.
 */
import { parseArgs } from "node:util";
import { disassemble, type Disassembler, isThere } from "./machine_code/disassemble.ts";
import {
  algorithmWords,
  type Asked,
  convKernels,
  gemmKernels,
  type KernelList,
} from "./machine_code/kernels.ts";
import { capabilityOf } from "./machine_code/occupancy.ts";
import { figuresOf, parsePipelines } from "./machine_code/pipelines.ts";
import { codeTable, type MachineCode, machineCode, spills } from "./machine_code/table.ts";
import { MATHS } from "../src/algorithms/request.ts";
import { readSuite } from "../src/bench/suite_files.ts";
import { openGpu } from "../src/cli/open_gpu.ts";
import { oneOf, parsePattern, someOf } from "../src/cli/values.ts";
import { pipelineOf } from "../src/gpu/prepare.ts";
import { BACKENDS } from "../src/gpu/provider.ts";
import { canonicalName } from "../src/kernels/kernel.ts";
import { parseVariant } from "../src/kernels/variant.ts";
import { CONV_DTYPES, OPERATIONS } from "../src/problem/conv_problem.ts";
import { printDescriptor } from "../src/problem/descriptor.ts";
import { GEMM_DTYPES } from "../src/problem/gemm_problem.ts";
import { parseGemmSuite, printGemm } from "../src/problem/gemm_suite.ts";
import { gpuPlanning } from "../src/run/executor.ts";
import { LAYOUTS } from "../src/tensor/layout.ts";

const { values } = parseArgs({
  options: {
    suite: { type: "string", multiple: true, default: [] },
    match: { type: "string", default: "" },
    op: { type: "string", default: "fwd" },
    layout: { type: "string", default: "nhwc,nchw" },
    dtype: { type: "string", default: "f32" },
    algorithm: { type: "string", default: "auto" },
    math: { type: "string" },
    policy: { type: "string" },
    tile: { type: "string" },
    pair: { type: "string" },
    with: { type: "string", multiple: true, default: [] },
    backend: { type: "string", default: "wgpu" },
    adapter: { type: "string" },
    all: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    layer: { type: "string", default: "dist/machine_code" },
    out: { type: "string", default: "dist/machine_code/out" },
    nvdisasm: { type: "string", default: "nvdisasm" },
  },
});

/** Puts the layer between what is loaded from here on and its driver. */
function insertLayer(layer: string, out: string): void {
  const manifest = `${layer}/wgconv_machine_code.json`;
  try {
    Deno.statSync(manifest);
  } catch {
    throw new RangeError(`Cannot read machine code: there is no ${manifest}, which build.sh makes`);
  }
  try {
    Deno.removeSync(out, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  Deno.mkdirSync(out, { recursive: true });
  for (
    const [name, own] of [
      ["VK_LAYER_PATH", Deno.realPathSync(layer)],
      ["VK_INSTANCE_LAYERS", "VK_LAYER_wgconv_machine_code"],
    ] as const
  ) {
    const others = Deno.env.get(name);
    Deno.env.set(name, others ? `${own}:${others}` : own);
  }
  Deno.env.set("WGCONV_MACHINE_CODE", Deno.realPathSync(out));
  // What a driver's own cache on disk holds would not be compiled: it starts empty.
  Deno.mkdirSync(`${out}/disk_cache`);
  Deno.env.set("__GL_SHADER_DISK_CACHE_PATH", Deno.realPathSync(`${out}/disk_cache`));
  Deno.env.set("MESA_SHADER_CACHE_DISABLE", "true");
}

/** The kernels of the suites' plans on the device. */
function planned(planning: ReturnType<typeof gpuPlanning>): KernelList {
  const pattern = parsePattern(values.match);
  const variant = parseVariant([], values.with);
  const own = {
    ...planning,
    schedule: {
      ...planning.schedule,
      ...(values.policy === undefined ? {} : { policy: values.policy }),
      ...(variant === undefined ? {} : { ...variant }),
    },
    ...(values.math === undefined ? {} : { math: oneOf(MATHS)(values.math) }),
    ...(values.pair === undefined ? {} : { maxBoundRatio: Infinity }),
  };
  if (values.op === "gemm") {
    const problems = values.suite
      .flatMap((path) => parseGemmSuite(Deno.readTextFileSync(path), path))
      .filter((problem) => pattern.test(printGemm(problem)));
    return gemmKernels(problems, someOf(GEMM_DTYPES)(values.dtype), own);
  }
  const words = algorithmWords();
  return convKernels({
    problems: values.suite.flatMap((path) => readSuite(path))
      .filter((problem) => pattern.test(printDescriptor(problem))),
    ops: someOf(OPERATIONS)(values.op),
    layouts: someOf(LAYOUTS)(values.layout),
    dtypes: someOf(CONV_DTYPES)(values.dtype),
    algorithms: values.algorithm.split(",").map(oneOf(words)) as Asked["algorithms"],
    tile: values.tile,
    pair: values.pair,
  }, own);
}

if (values.suite.length === 0) throw new RangeError("Cannot read machine code: give a --suite");
insertLayer(values.layer, values.out);
const dtypes = values.dtype.split(",");
const features = [
  ...(dtypes.includes("f16") ? ["shader-f16"] : []),
  ...(dtypes.includes("f64") ? ["shader-f64"] : []),
];
const backend = oneOf(BACKENDS)(values.backend);
using gpu = await openGpu({ backend, adapter: values.adapter }, features);
const list = planned(gpuPlanning(gpu, {}));
for (const [reason, count] of list.refused) console.error(`${count} times refused: ${reason}`);
const kernels = [...list.kernels.values()].filter(({ products }) => values.all || products);
if (kernels.length === 0) throw new RangeError("Cannot read machine code: no plan has a kernel");
for (const { kernel } of kernels) {
  Deno.env.set("WGCONV_MACHINE_CODE_KERNEL", kernel.name);
  await pipelineOf(gpu, kernel);
}
Deno.env.delete("WGCONV_MACHINE_CODE_KERNEL");

/** What the layer wrote; nothing where it was not loaded. */
function layerLines(): string {
  try {
    return Deno.readTextFileSync(`${values.out}/pipelines.jsonl`);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "";
    throw error;
  }
}

const lines = new Map(
  parsePipelines(layerLines())
    .filter(({ kernel }) => kernel !== "")
    .map((line) => [line.kernel, line]),
);
const { device = "" } = [...lines.values()][0] ?? {};
const capability = capabilityOf(device);
const lister: Disassembler | undefined = capability !== undefined && isThere(values.nvdisasm)
  ? { program: values.nvdisasm, capability, folder: values.out }
  : undefined;
const rows = kernels.flatMap((one): MachineCode[] => {
  const line = lines.get(one.kernel.name);
  if (line === undefined) return [];
  const code = lister !== undefined && line.cache !== undefined
    ? disassemble(line.cache, one.kernel.name, lister)
    : undefined;
  return [machineCode(one, line, capability, code)];
});

if (values.json) {
  for (const row of rows) console.log(JSON.stringify({ device, ...row }));
} else {
  console.log(device);
  console.log(codeTable(rows));
}
if (rows.length < kernels.length) {
  console.error(
    `of ${kernels.length} kernels the layer saw ${rows.length}: is it loaded (VK_LOADER_DEBUG=layer)?`,
  );
}
const told = [...lines.values()].some((line) => Object.keys(figuresOf(line)).length > 0);
if (!told) console.error(`${device || "the device"}: its driver tells no statistics of pipelines`);
else if (lister === undefined) {
  console.error(
    `no instructions: ${
      capability === undefined
        ? "the device is none of NVIDIA's that is known"
        : `there is no ${values.nvdisasm}`
    }`,
  );
}
const wrong = new Set(
  rows.filter((row) => row.auto && spills(row)).map(({ kernel }) =>
    canonicalName({ name: kernel })
  ),
);
for (const kernel of wrong) console.error(`spills: ${kernel}`);
Deno.exitCode = wrong.size > 0 ? 1 : told ? 0 : 3;

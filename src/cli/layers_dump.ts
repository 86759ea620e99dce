import { basename, join } from "node:path";
import { defined } from "../defined.ts";
import { refuseWrite, writeOutput } from "../npy/atomic_write.ts";
import { readNpy, writeNpz } from "../npy/mod.ts";
import type { ModelOptions, RuntimeProvider } from "../models/layer.ts";
import { printableMessage } from "../printable.ts";
import { printDescriptor } from "../problem/descriptor.ts";
import { printGemm } from "../problem/gemm_suite.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { DumpedLayer, DumpManifest } from "./dump_manifest.ts";
import { onInterrupt, progress, reporter } from "./output.ts";
import { proveOutputs } from "./outputs.ts";

/** Where a model's tensors go, and what it is fed. */
export interface DumpOptions {
  readonly folder: string;
  /** Files by the names of inputs. */
  readonly feeds: ReadonlyMap<string, string>;
  readonly seed: number;
  readonly runtime: RuntimeProvider;
  readonly force?: boolean | undefined;
}

/**
 * Runs a model by onnxruntime and writes each layer's operands and result: an archive a layer, and a manifest last.
 *
 * @throws what `readOnnx()` and `runLayers()` throw.
 */
export async function dumpModel(
  path: string,
  model: ModelOptions,
  { folder, feeds: files, seed, runtime, force }: DumpOptions,
): Promise<void> {
  const manifestPath = join(folder, "manifest.json");
  await proveOutputs([
    { option: "--dump", path: folder, kind: "folder", endings: [".npz", ".json"] },
  ], { inputs: [path, ...files.values()], force });
  const [{ readOnnx }, { feedsOf, partsOf, runConditions, runLayers }, { runtimeName }] =
    await Promise
      .all([
        import("../models/onnx.ts"),
        import("../models/onnx_run.ts"),
        import("../models/onnxruntime.ts"),
      ]);
  const given = new Map<string, Tensor>();
  for (const [name, file] of files) given.set(name, await readNpy(file));
  const read = await readOnnx(path, model, (inputs) => {
    const feeds = feedsOf({ inputs }, given, seed);
    return (bytes, names) => runConditions(bytes, names, feeds, path);
  });
  const feeds = feedsOf(read, given, seed);
  await Deno.mkdir(folder, { recursive: true }).catch((error) => refuseWrite(folder, error));
  const note = reporter("stderr");
  for (const one of read.notes ?? []) {
    note.message(printableMessage(`wgconv: ${path}: ${one}`));
  }
  const say = ({ name, why }: { readonly name: string; readonly why: string }) =>
    note.message(printableMessage(`wgconv: ${path}: not written: ${name}: ${why}`));
  read.left.forEach(say);
  const all = read.layers.map(partsOf);
  all.forEach((one) => "why" in one && say(one));
  const parts = all.flatMap((one) => "why" in one ? [] : one);
  const layers: DumpedLayer[] = [];
  const shown = progress();
  using _ = onInterrupt(() => `stopped after ${layers.length} of ${parts.length} layers`);
  for await (const layer of runLayers(read, parts, feeds, path, runtime)) {
    if ("why" in layer) {
      say(layer);
      continue;
    }
    const { name, problem, bias, tensors, bytes } = layer;
    const file = `${String(layers.length + 1).padStart(3, "0")}_${fileName(name)}.npz`;
    await writeNpz(join(folder, file), tensors);
    layers.push({
      name,
      file,
      ...("gemm" in problem
        ? {
          op: "gemm",
          problem: printGemm(problem.gemm),
          alpha: problem.gemm.alpha,
          beta: problem.gemm.beta,
        }
        : {
          op: problem.conv.op,
          problem: printDescriptor(problem.conv),
          bias,
          ...defined({ bytes }),
        }),
    });
    shown.update(`${layers.length} of ${parts.length} layers`);
  }
  shown.done();
  const manifest: DumpManifest = {
    schema: 1,
    kind: "dump",
    model: basename(path),
    runtime: runtimeName(runtime),
    feeds: Object.fromEntries(
      [...feeds.keys()].map((name) => [name, files.get(name) ?? `made, seed ${seed}`]),
    ),
    layers,
  };
  const text = `${JSON.stringify(manifest, null, 1)}\n`;
  await writeOutput(manifestPath, (write) => write(new TextEncoder().encode(text)));
  reporter("stdout").message(
    `${manifestPath}: ${layers.length} of ${read.layers.length} layers; ` +
      `wgconv verify --manifest ${manifestPath} checks them`,
  );
}

/** A layer's name as a file's. */
function fileName(name: string): string {
  return name.replace(/[^\w.-]+/g, "-").replace(/^-+/, "").slice(-60) || "layer";
}

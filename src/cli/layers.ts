import { Command } from "#cli-types";
import { basename, join } from "node:path";
import { quoted } from "../bench/failures.ts";
import { defined } from "../defined.ts";
import { InputTypeError } from "../errors.ts";
import { type ModelOptions, RUNTIME_PROVIDERS, type RuntimeProvider } from "../models/layer.ts";
import { refuseWrite, writeText } from "../npy/atomic_write.ts";
import { readNpy, writeNpz } from "../npy/mod.ts";
import { printableMessage } from "../printable.ts";
import { printDescriptor } from "../problem/descriptor.ts";
import { printGemm } from "../problem/gemm_suite.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { DumpedLayer, DumpManifest } from "./dump_manifest.ts";
import { GROUPS, OPTION } from "./shared_options.ts";
import { inputShapesOf, modelSuite, namedValues, SUITE } from "./suite_option.ts";
import { onInterrupt, progress, reporter } from "./output.ts";
import { proveOutputs } from "./outputs.ts";
import { gather, oneOf } from "./values.ts";
import { givenOptions, refuseOptions } from "./refuse.ts";

const EXAMPLES = `
A source is a model (.onnx), or a log with lines of ONEDNN_VERBOSE or commands of MIOpenDriver; - is a log
on stdin. The suite has a line for each size, with the first layer's name and how many there are (*N).
bench, tune and plan take the source itself as --model. What is no convolution or product that can run here
is named on stderr.
--dump writes an archive of each layer's operands and result, and a manifest, which verify takes.
Shapes that a model leaves open come from onnxruntime, an npm package of 113 MB that is fetched when it is
first needed (WGCONV_ONNXRUNTIME can name its folder).

Examples:
  wgconv layers resnet50.onnx --batch 8 > resnet50.txt
  wgconv layers detector.onnx --input-shape x=1x3x640x640
  ONEDNN_VERBOSE=1 ./program | wgconv layers - > program.txt
  wgconv layers detector.onnx --input-shape x=1x3x640x640 --dump dump --feed x=page.npy
  wgconv bench --model resnet50.onnx --jsonl resnet50.jsonl`;

/** `wgconv layers`: a network's convolutions and products as a suite. */
export function layersCommand() {
  return new Command("layers")
    .description("List the convolutions and products of a model or a log as a suite.")
    .argument("<source>", "file: .onnx, or a log of oneDNN or MIOpen")
    .optionsGroup(GROUPS.common)
    .option(...SUITE.batch)
    .option(...SUITE.inputShape)
    .option(...SUITE.training)
    .option("--output <file>", "where the suite goes; - is stdout", "-")
    .option("--dump <folder>", "run the model by onnxruntime, write each layer's tensors there")
    .option(
      "--feed <name=file>",
      "what --dump feeds an input; made data else; repeatable",
      gather,
    )
    .option(
      "--runtime <name>",
      "on what onnxruntime runs the model for --dump: cpu or webgpu (default cpu)",
      oneOf(RUNTIME_PROVIDERS),
    )
    .option(...OPTION.seed)
    .option(...OPTION.force)
    .addHelpText("after", EXAMPLES)
    .action(async (source, options, command) => {
      const { batch, inputShape, training, output, force, dump, feed, seed, runtime } = options;
      const model = { batch, inputShapes: inputShapesOf(inputShape), training };
      if (dump !== undefined) {
        if (!/\.onnx$/i.test(source)) {
          throw new InputTypeError(`Cannot dump ${source}: onnxruntime runs .onnx files alone`);
        }
        refuseOptions("Cannot dump: it writes the tensors of a forward pass", { training });
        refuseOptions("Cannot dump: --dump names the folder", givenOptions(command, ["output"]));
        const feeds = namedValues("--feed", feed ?? [], "x=x.npy", (file) => file);
        return await dumpModel(source, model, {
          ...{ folder: dump, feeds, seed, force },
          runtime: runtime ?? "cpu",
        });
      }
      refuseOptions("Cannot list layers: only --dump runs the model", {
        ...givenOptions(command, ["feed", "runtime", "seed"]),
      });
      await proveOutputs([{ option: "--output", path: output, kind: "file", endings: [".txt"] }], {
        inputs: [source],
        force,
      });
      const { text } = await modelSuite(source, model);
      await writeText(output, text);
    });
}

/** Where a model's tensors go, and what it is fed. */
interface DumpOptions {
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
async function dumpModel(
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
  await writeText(manifestPath, `${JSON.stringify(manifest, null, 1)}\n`);
  reporter("stdout").message(
    `${manifestPath}: ${layers.length} of ${read.layers.length} layers; ` +
      `wgconv verify --manifest ${quoted(manifestPath)} checks them`,
  );
}

/** A layer's name as a file's. */
function fileName(name: string): string {
  return name.replace(/[^\w.-]+/g, "-").replace(/^-+/, "").slice(-60) || "layer";
}

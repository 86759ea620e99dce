/**
 * Trains a small network on 1797 handwritten digits. wgconv computes every convolution and gradient, on tensors that
 * stay on the device. The same training in FP64 on the CPU is the comparison:
 *   deno run -A examples/train.ts [--runs fp64,direct,auto,winrs,f16] [--epochs 25] [--seeds 1] [--svg curves.svg]
 *     [--digits fixtures/digits_8x8.npz]
 *
 * `direct` and `auto` name the algorithm of every convolution; `winrs` is `auto` with filters' gradients by WinRS; `f16`
 * is `auto` with f16 activations and weights, if the device has f16. Runs of a seed begin with the same weights and see
 * the same pictures. Exits with 1 if a final accuracy differs from FP64's by more than noise.
 */
import { openDevice } from "../mod.ts";
import { expectOutput, readOptions, refuse, wholeNumber } from "./arguments.ts";
import { lossChart } from "./train/chart.ts";
import { range, readDigits, shuffled, TESTED } from "./train/digits.ts";
import { fp64Trainer } from "./train/fp64_trainer.ts";
import { type GpuRun, gpuTrainer } from "./train/gpu_trainer.ts";
import type { Trainer } from "./train/network.ts";

const RUNS: Readonly<Record<string, GpuRun | undefined>> = {
  fp64: undefined,
  direct: { dtype: "f32", algorithm: "direct", filterGradient: "direct" },
  auto: { dtype: "f32", algorithm: "auto", filterGradient: "auto" },
  winrs: { dtype: "f32", algorithm: "auto", filterGradient: "winrs" },
  f16: { dtype: "f16", algorithm: "auto", filterGradient: "auto" },
};

const DOING = "Cannot train";
const USAGE = "deno run -A examples/train.ts " +
  `[--runs ${Object.keys(RUNS)}] [--epochs 25] [--seeds 1] [--svg FILE] [--digits FILE]`;
const options = readOptions(DOING, USAGE, {
  runs: { type: "string", default: Object.keys(RUNS).join(",") },
  epochs: { type: "string", default: "25" },
  seeds: { type: "string", default: "1" },
  svg: { type: "string" },
  digits: { type: "string" },
});
const names = options.runs.split(",");
const unknown = names.find((name) => !Object.hasOwn(RUNS, name));
if (unknown !== undefined) {
  refuse(`${DOING}: "${unknown}" is none of the runs ${Object.keys(RUNS).join(", ")}`);
}
const epochs = wholeNumber(DOING, "--epochs", options.epochs);
const seeds = wholeNumber(DOING, "--seeds", options.seeds);
if (options.svg !== undefined) expectOutput(DOING, "--svg", options.svg);
const digits = await readDigits(options.digits)
  .catch(({ message }: Error) => refuse(`${DOING}: no digits can be read: ${message}`));

using gpu = await openDevice({ optionalFeatures: ["shader-f16"] });
const trained = digits.count - TESTED;
const tested = range(trained, TESTED);
const opened = names.filter((name) => name !== "f16" || gpu.features.has("shader-f16"));
console.log(
  `${gpu.info.adapter}: ${trained} digits are trained on, ${TESTED} of other writers tested`,
);

/** A point of a curve, and what a run came to. */
const curve: { run: string; seed: number; epoch: number; loss: number }[] = [];
const accuracies = new Map<string, number[]>();
for (const name of opened) {
  for (let seed = 1; seed <= seeds; seed++) {
    const start = performance.now();
    const run = RUNS[name];
    using trainer: Trainer = run
      ? await gpuTrainer(gpu, run, digits, seed)
      : fp64Trainer(digits, seed);
    let [loss, accuracy] = [NaN, NaN];
    for (let epoch = 1; epoch <= epochs; epoch++) {
      loss = await trainer.train(shuffled(trained, 1000 * seed + epoch));
      curve.push({ run: name, seed, epoch, loss });
    }
    accuracy = await trainer.test(tested);
    accuracies.set(name, [...accuracies.get(name) ?? [], accuracy]);
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    console.log(
      `${name.padEnd(6)} seed ${seed}: loss ${loss.toExponential(3)}, ${
        (100 * accuracy).toFixed(2)
      } % known, ${seconds} s`,
    );
  }
}
if (options.svg !== undefined) {
  await Deno.writeTextFile(options.svg, await lossChart(curve, opened));
}

const mean = (values: readonly number[]) =>
  values.reduce((all, one) => all + one, 0) / values.length;
const exact = accuracies.get("fp64");
if (exact !== undefined) {
  const share = mean(exact);
  // Two counts of hits of so many pictures differ by this much in 95 of 100 cases; the seeds' pictures are the same.
  const noise = 1.96 * Math.sqrt(2 * Math.max(share * (1 - share), 1 / TESTED) / TESTED);
  for (const [name, values] of accuracies) {
    const difference = mean(values) - share;
    const verdict = Math.abs(difference) <= noise ? "within" : "beyond";
    console.log(
      `${name.padEnd(6)} ${
        (100 * difference).toFixed(2)
      } points from FP64, ${verdict} the noise of ${(100 * noise).toFixed(2)}`,
    );
    if (verdict === "beyond") Deno.exitCode = 1;
  }
}

/// <reference lib="dom" />
/** The page's picture: it is filtered on the browser's GPU, and the result checked on the CPU. */
import { checkConvolution, convolve, directFlops, type GpuDevice } from "../../web.ts";
import { FILTERS, filterTensor } from "./filters.ts";
import { CHANNELS, type Choice, offeredChoices, pictureProblem } from "./offered.ts";
import { element, inTurn, linesOf, openGpu, shown } from "./page.ts";

/** Larger pictures are drawn smaller. */
const MOST_PIXELS = 1024;

const source = element<HTMLCanvasElement>("source");
const target = element<HTMLCanvasElement>("target");
const filters = element<HTMLSelectElement>("filter");
const algorithms = element<HTMLSelectElement>("algorithm");
const choices = element<HTMLFieldSetElement>("choices");

/** Draws a picture on the left canvas. */
async function load(picture: Blob): Promise<void> {
  const bitmap = await createImageBitmap(picture);
  const scale = Math.min(1, MOST_PIXELS / Math.max(bitmap.width, bitmap.height));
  source.width = Math.round(bitmap.width * scale);
  source.height = Math.round(bitmap.height * scale);
  source.getContext("2d")?.drawImage(bitmap, 0, 0, source.width, source.height);
}

/** The left canvas as N H W C, 0 to 1. */
function pixels(): Float32Array<ArrayBuffer> {
  const { width, height } = source;
  const { data } = source.getContext("2d")!.getImageData(0, 0, width, height);
  const values = new Float32Array(width * height * CHANNELS);
  for (let pixel = 0; pixel < width * height; pixel++) {
    for (let c = 0; c < CHANNELS; c++) values[pixel * CHANNELS + c] = data[pixel * 4 + c]! / 255;
  }
  return values;
}

/** Paints N H W C, 0 to 1, on the right canvas. */
function paint(values: Float32Array, width: number, height: number): void {
  target.width = width;
  target.height = height;
  const image = new ImageData(width, height);
  for (let pixel = 0; pixel < width * height; pixel++) {
    for (let c = 0; c < CHANNELS; c++) {
      image.data[pixel * 4 + c] = Math.round(255 * values[pixel * CHANNELS + c]!);
    }
    image.data[pixel * 4 + 3] = 255;
  }
  target.getContext("2d")?.putImageData(image, 0, 0);
}

/** Says what the page is at. */
async function working(step: string): Promise<void> {
  await shown(element("status"), `working: ${step}`);
}

/** Offers what can run for the picture and filter at hand; what was chosen stays so where it can. */
function offer(gpu: GpuDevice): void {
  const problem = pictureProblem(FILTERS[filters.value]!, source.width, source.height);
  const offered = offeredChoices(problem, gpu.limits);
  const chosen = offered.find((name) => name === algorithms.value) ?? "auto";
  algorithms.replaceChildren(...offered.map((name) => new Option(name)));
  algorithms.value = chosen;
}

/** One run: what the page shows of it, line by line. */
async function run(gpu: GpuDevice): Promise<Record<string, string>> {
  const { width, height } = source;
  const kernel = FILTERS[filters.value]!;
  const algorithm = algorithms.value as Choice;
  await working(`convolves ${width} x ${height} pixels with ${algorithm}`);
  const problem = pictureProblem(kernel, width, height);
  const operands = { input: pixels(), filter: filterTensor(kernel, CHANNELS) };
  const done = await convolve(gpu, problem, operands, { layout: "nhwc", algorithm, samples: 3 });
  paint(done.result, width, height);
  await working("checks every pixel on the CPU");
  const { accuracy, verdict, message } = await checkConvolution(done, operands, { mode: "full" });
  const ns = done.samplesNs.toSorted((a, b) => a - b)[1]!;
  return {
    verdict: message === undefined ? verdict : `${verdict}: ${message}`,
    "median error": accuracy.median_rel?.toExponential(2) ?? "none: every reference is 0",
    "largest error": `${accuracy.max_bound_ratio.toFixed(2)} of ${
      accuracy.bound_limit.toFixed(2)
    } allowed, in units of roundoff x sum|a||b|`,
    checked: `${accuracy.checked.toLocaleString("en")} outputs against FP64 on the CPU`,
    time: `${(ns / 1e6).toFixed(3)} ms, median of 3 (${done.clock})`,
    rate: ns > 0 ? `${(directFlops(problem) / ns).toFixed(1)} GFLOP/s` : "too quick for the clock",
    device: gpu.info.adapter,
    algorithm: done.plan.algorithm,
    kernel: done.plan.kernel,
  };
}

/** Shows a run's lines, or what went wrong; `data-state` says which to scripts. */
async function show(work: () => Promise<Record<string, string>>): Promise<void> {
  const { body } = document;
  body.dataset.state = "working";
  element("message").textContent = "";
  try {
    const lines = await work();
    element("report").replaceChildren(...linesOf(lines));
    body.dataset.state = "done";
  } catch (error) {
    // Nothing of an earlier run stays beside the message.
    element("report").replaceChildren();
    target.getContext("2d")?.clearRect(0, 0, target.width, target.height);
    element("message").textContent = error instanceof Error ? error.message : String(error);
    body.dataset.state = "failed";
  }
  element("status").textContent = "";
}

function again(before: () => Promise<void> = async () => {}): void {
  inTurn(() =>
    show(async () => {
      await before();
      const gpu = await openGpu(() => working("opens the GPU"));
      offer(gpu);
      choices.disabled = false;
      return await run(gpu);
    })
  );
}

/** Filters the photo, and then what a user chooses. */
export function startPicture(): void {
  filters.append(...Object.keys(FILTERS).map((name) => new Option(name)));
  filters.addEventListener("change", () => again());
  algorithms.addEventListener("change", () => again());
  element<HTMLInputElement>("picture").addEventListener("change", (event) => {
    const [file] = (event.target as HTMLInputElement).files ?? [];
    if (file !== undefined) again(() => load(file));
  });
  again(async () => load(await (await fetch("photo.png")).blob()));
}

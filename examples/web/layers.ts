/// <reference lib="dom" />
/** The page's layers: every algorithm computes one on the browser's GPU, is timed, and checked on the CPU. */
import {
  type CaseRecord,
  checkConvolution,
  convolutionRecord,
  convolve,
  type ConvProblem,
  type GpuDevice,
  type Operation,
  parseDescriptor,
  parseNpy,
  VERSION,
} from "../../web.ts";
import { speedErrorChart } from "./chart.ts";
import { NETWORKS, withBatch } from "./networks.ts";
import { autoChoice, offeredChoices } from "./offered.ts";
import {
  MADE,
  operandsOf,
  type OwnFile,
  type PageDType,
  type PageLayout,
  problemOfFiles,
  type Role,
  ROLE_NAMES,
  ROLES,
} from "./operands.ts";
import { element, inTurn, openGpu, shown } from "./page.ts";

/** Nanoseconds of a sample, long against a browser's clock, and of all samples of an algorithm. */
const SAMPLE_NS = 2e7;
const ALL_NS = 4e8;

const section = element("layers");
const form = element<HTMLFormElement>("layer-form");
const network = element<HTMLSelectElement>("network");
const layer = element<HTMLSelectElement>("layer");
const batch = element<HTMLInputElement>("batch");
const descriptor = element<HTMLInputElement>("descriptor");
const stop = element<HTMLButtonElement>("stop");
const download = element<HTMLButtonElement>("download");
const [status, message] = [element("layer-status"), element("layer-message")];

/** A run's row: its record, or why there is none. */
type Row = { readonly name: string } & ({ readonly record: CaseRecord } | { readonly why: string });

let rows: readonly Row[] = [];
let files: Partial<Record<Role, OwnFile>> = {};
/** What the rows ran on, and when. */
let environment: object = {};
let stopped = false;

interface Choice {
  readonly op: Operation;
  readonly dtype: PageDType;
  readonly layout: PageLayout;
}

function choice(): Choice {
  const data = new FormData(form);
  return {
    op: data.get("op") as Operation,
    dtype: data.get("dtype") as PageDType,
    layout: data.get("layout") as PageLayout,
  };
}

/** Puts the chosen layer's descriptor in its field. */
function takeLayer(): void {
  const chosen = NETWORKS.get(network.value)?.[layer.selectedIndex];
  const count = Math.max(1, Math.floor(Number(batch.value) || 1));
  if (chosen !== undefined) descriptor.value = withBatch(chosen.descriptor, count);
}

function takeNetwork(): void {
  layer.replaceChildren(
    ...NETWORKS.get(network.value)!.map(({ name }) => new Option(name)),
  );
  takeLayer();
}

/** Names the two places for files after what the operation reads. */
function nameFiles(): void {
  ROLES[choice().op].forEach((role, place) => {
    const file = files[role];
    element(`role-${place}`).textContent = ROLE_NAMES[role];
    element(`file-${place}`).textContent = file === undefined
      ? "made at random"
      : `${file.name} [${file.tensor.shape}]`;
    element<HTMLButtonElement>(`remove-${place}`).hidden = file === undefined;
  });
}

/** Takes a file for an operand; two of them say what the layer is. */
async function takeFile(place: number, file: File): Promise<void> {
  message.textContent = "";
  try {
    const { op, layout } = choice();
    const tensor = await parseNpy(new Uint8Array(await file.arrayBuffer()), file.name);
    files = { ...files, [ROLES[op][place]!]: { name: file.name, tensor } };
    nameFiles();
    if (ROLES[op].every((role) => files[role] !== undefined)) {
      const like = parseDescriptor(descriptor.value);
      descriptor.value = problemOfFiles(files, { op, layout, like });
    }
  } catch (error) {
    message.textContent = said(error);
  }
}

function said(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Runs one algorithm: times it in samples that the clock can tell, and checks what the last call made. */
async function runOne(
  gpu: GpuDevice,
  problem: ConvProblem,
  operands: ReturnType<typeof operandsOf>,
  options: Omit<Choice, "op"> & { readonly algorithm: ReturnType<typeof offeredChoices>[number] },
): Promise<CaseRecord> {
  const first = await convolve(gpu, problem, operands, options);
  const ns = Math.max(1, first.samplesNs[0]!);
  const repeats = Math.max(1, Math.min(1000, Math.round(SAMPLE_NS / ns)));
  const samples = Math.max(3, Math.min(15, Math.round(ALL_NS / (ns * repeats))));
  const done = await convolve(gpu, problem, operands, { ...options, samples, repeats });
  const checked = await checkConvolution(done, operands);
  const made = Object.keys(files).length === 0 ? { made: MADE } : {};
  return convolutionRecord(done, { device: gpu.info.adapter, checked, ...made });
}

/** Runs every algorithm that the device can plan. */
async function run(): Promise<void> {
  rows = [];
  stopped = false;
  message.textContent = "";
  section.dataset.state = "working";
  stop.disabled = false;
  download.disabled = true;
  try {
    const { op, dtype, layout } = choice();
    const problem = parseDescriptor(descriptor.value, op);
    const gpu = await openGpu(() => shown(status, "opens the GPU"));
    if (dtype === "f16" && !gpu.features.has("shader-f16")) {
      throw new TypeError(`Cannot run: ${gpu.info.adapter} has no f16 (shader-f16)`);
    }
    environment = environmentOf(gpu);
    const operands = operandsOf(problem, files, { op, dtype, layout });
    const [, ...names] = offeredChoices(problem, gpu.limits, { dtype, layout });
    const auto = autoChoice(problem, gpu.limits, { dtype, layout });
    show(auto);
    for (const [place, name] of names.entries()) {
      await shown(status, `${name}, ${place + 1} of ${names.length}`);
      if (stopped) break;
      try {
        const options = { dtype, layout, algorithm: name };
        rows = [...rows, { name, record: await runOne(gpu, problem, operands, options) }];
      } catch (error) {
        rows = [...rows, { name, why: said(error) }];
      }
      show(auto);
    }
    section.dataset.state = "done";
    status.textContent = stopped
      ? `stopped after ${rows.length} of ${names.length} algorithms`
      : "";
  } catch (error) {
    message.textContent = said(error);
    section.dataset.state = "failed";
    status.textContent = "";
  }
  stop.disabled = true;
  download.disabled = records().length === 0;
}

/** Shows the rows so far: a chart, and a table with the fastest first. */
function show(auto: string): void {
  const time = (row: Row) => "record" in row ? row.record.time_ms?.median ?? Infinity : Infinity;
  const sorted = rows.toSorted((a, b) => time(a) - time(b));
  const fastest = Math.max(...records().map(({ gflops }) => gflops ?? 0), 1e-9);
  element("results").replaceChildren(...sorted.map((row) => {
    const line = document.createElement("tr");
    line.append(cell("th", row.name + (row.name === auto ? " (auto)" : "")));
    line.dataset.name = row.name;
    if ("why" in row) {
      line.append(cell("td", row.why));
      line.lastElementChild!.setAttribute("colspan", "6");
      return line;
    }
    const { time_ms, gflops, accuracy, verdict, message: why } = row.record;
    const speed = cell("td", gflops === null ? "-" : gflops.toPrecision(4));
    const bar = document.createElement("i");
    bar.style.width = `${100 * (gflops ?? 0) / fastest}%`;
    const bars = cell("td", "");
    bars.className = "bar";
    bars.append(bar);
    line.append(
      cell("td", time_ms === null ? "-" : `${time_ms.median.toPrecision(4)} ms`),
      speed,
      bars,
      cell("td", accuracy?.rel_l2 == null ? "-" : accuracy.rel_l2.toExponential(2)),
      cell(
        "td",
        accuracy === null
          ? "-"
          : `${accuracy.max_bound_ratio.toPrecision(3)} of ${accuracy.bound_limit.toPrecision(3)}`,
      ),
      cell("td", why === undefined || verdict === "pass" ? verdict : `${verdict}: ${why}`),
    );
    return line;
  }));
  draw();
}

function cell(tag: "td" | "th", text: string): HTMLElement {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

function draw(): void {
  const chart = element("chart");
  const points = rows.flatMap((row) => {
    if (!("record" in row) || row.record.accuracy === null) return [];
    const { name, record: { gflops, accuracy, verdict } } = row;
    return [{
      name,
      speed: gflops ?? 0,
      error: accuracy.rel_l2 ?? 0,
      right: verdict === "pass",
    }];
  });
  chart.innerHTML = speedErrorChart(points, Math.max(240, Math.min(760, chart.clientWidth)));
}

function records(): CaseRecord[] {
  return rows.flatMap((row) => "record" in row ? [row.record] : []);
}

function environmentOf(gpu: GpuDevice): object {
  return {
    schema: 1,
    kind: "environment",
    program: "wgconv",
    version: VERSION,
    deno: "",
    os: navigator.userAgent,
    backend: gpu.provider.name,
    adapter: gpu.info.adapter,
    driver: gpu.info.driver,
    limits: gpu.limits,
    seed: MADE.seed,
    date: new Date().toISOString(),
  };
}

/** Hands the records over as the file that `wgconv report` and `compare` read. */
function save(): void {
  const lines = [environment, ...records()].map((record) => `${JSON.stringify(record)}\n`);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
  link.download = "wgconv.jsonl";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Offers networks and their layers, and runs what is asked for. */
export function startLayers(): void {
  network.append(...[...NETWORKS.keys()].map((name) => new Option(name)));
  takeNetwork();
  nameFiles();
  network.addEventListener("change", takeNetwork);
  layer.addEventListener("change", takeLayer);
  batch.addEventListener("change", takeLayer);
  element("op").addEventListener("change", nameFiles);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (section.dataset.state !== "working") inTurn(run);
  });
  stop.addEventListener("click", () => {
    stopped = true;
  });
  download.addEventListener("click", save);
  for (const place of [0, 1]) {
    const input = element<HTMLInputElement>(`choose-${place}`);
    const zone = element(`drop-${place}`);
    input.addEventListener("change", async () => {
      const [file] = input.files ?? [];
      if (file !== undefined) await takeFile(place, file);
      // The same file may be chosen again.
      input.value = "";
    });
    zone.addEventListener("dragover", (event) => event.preventDefault());
    zone.addEventListener("drop", async (event) => {
      event.preventDefault();
      const [file] = event.dataTransfer?.files ?? [];
      if (file !== undefined) await takeFile(place, file);
    });
    element(`remove-${place}`).addEventListener("click", () => {
      const { [ROLES[choice().op][place]!]: _, ...left } = files;
      files = left;
      nameFiles();
    });
  }
  // A file that misses its place opens no other page.
  for (const kind of ["dragover", "drop"]) {
    addEventListener(kind, (event) => event.preventDefault());
  }
  new ResizeObserver(draw).observe(element("chart"));
}

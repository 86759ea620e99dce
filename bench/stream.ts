/**
 * How fast a convolution that is larger than memory goes through, and what it takes of the host:
 *   deno run -A bench/stream.ts [--gib 20] [--filters 16] [--check none,sample,auto] [--max-workspace 256MB] [--folder DIR]
 * Writes an input of images of 1 MiB ([64, 64, 64] in f32), reads it with dd, uploads as much, and runs wgconv conv with
 * a filter of 3x3 and each check. Before each reading the file leaves the page cache, where dd can have that. Linux only:
 * the peak of resident memory is the kernel's (VmHWM).
 */
import { parseArgs } from "node:util";
import { createBuffer, upload } from "../src/gpu/buffers.ts";
import { openDevice } from "../src/gpu/device.ts";
import { writeNpy, writeNpyParts } from "../src/npy/mod.ts";
import type { CaseRecord } from "../src/report/record.ts";
import { fillTensor } from "../src/tensor/fill.ts";

const GIB = 2 ** 30;
const IMAGE = [64, 64, 64];
const PART = 64;

const { values } = parseArgs({
  options: {
    gib: { type: "string", default: "1.5" },
    filters: { type: "string", default: "4" },
    check: { type: "string", default: "none,sample,auto" },
    "max-workspace": { type: "string" },
    folder: { type: "string" },
  },
});
const images = Math.round(Number(values.gib) * 1024);
const bytes = images * 2 ** 20;
const folder = await Deno.makeTempDir(values.folder === undefined ? {} : { dir: values.folder });
const at = (name: string) => `${folder}/${name}.npy`;
try {
  await writeInput();
  await writeNpy(at("w"), fillTensor("f32", [Number(values.filters), 64, 3, 3], "normal", 2));
  console.log(`${images} images of 1 MiB in ${folder}`);
  const disk = await diskRate();
  const device = await uploadRate();
  console.log(`disk    ${rate(disk)}`);
  console.log(`upload  ${rate(device)}`);
  for (const check of values.check.split(",")) {
    await dropFromCache();
    const { record, peak } = await convolve(check);
    const { seconds, chunks } = record.stream!;
    const share = bytes / seconds / Math.min(disk, device);
    console.log(
      `${check.padEnd(8)}${rate(bytes / seconds)} in, ${share.toFixed(2)} of the slower, ` +
        `${seconds.toFixed(1)} s in ${chunks} chunks, device busy ` +
        `${(record.time_ms!.median / 1000).toFixed(1)} s; ` +
        `peak of resident memory ${(peak / 2 ** 20).toFixed(0)} MiB; ${record.verdict}`,
    );
  }
} finally {
  await Deno.remove(folder, { recursive: true });
}

function rate(bytesPerSecond: number): string {
  return `${(bytesPerSecond / GIB).toFixed(3)} GiB/s`;
}

async function writeInput(): Promise<void> {
  const shape = [images, ...IMAGE];
  await writeNpyParts(at("x"), { dtype: "f32", shape, axis: 0 }, async (write) => {
    for (let first = 0; first < images; first += PART) {
      const count = Math.min(PART, images - first);
      const { data } = fillTensor("f32", [count, ...IMAGE], "uniform11", first);
      await write(data, { first, count, size: count });
    }
  });
}

/** Asks the kernel to forget the file; without rights to drop all caches, by dd. */
async function dropFromCache(): Promise<void> {
  await run("sync", []);
  await Deno.writeTextFile("/proc/sys/vm/drop_caches", "1").catch(() => {});
  await run("dd", [`of=${at("x")}`, "oflag=nocache", "conv=notrunc,fdatasync", "count=0"]);
}

async function diskRate(): Promise<number> {
  await dropFromCache();
  const start = performance.now();
  await run("dd", [`if=${at("x")}`, "of=/dev/null", "bs=4M"]);
  return bytes / (performance.now() - start) * 1000;
}

/** Of data in memory that no kernel reads, by pieces as a stream uploads them. */
async function uploadRate(): Promise<number> {
  using gpu = await openDevice();
  const data = fillTensor("f32", [2 ** 24], "uniform11", 1).data;
  const buffer = createBuffer(gpu, data.byteLength, "what is uploaded");
  const parts = Math.min(64, Math.ceil(bytes / data.byteLength));
  const start = performance.now();
  for (let part = 0; part < parts; part++) {
    upload(gpu, buffer, 0, data);
    await gpu.device.queue.onSubmittedWorkDone();
  }
  const seconds = (performance.now() - start) / 1000;
  buffer.destroy();
  return parts * data.byteLength / seconds;
}

async function convolve(check: string): Promise<{ record: CaseRecord; peak: number }> {
  const limit = values["max-workspace"];
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "-A", new URL("../main.ts", import.meta.url).href, "conv", "--json"],
      ...["--input", at("x"), "--filter", at("w"), "--output", at("y"), "--padding", "1"],
      ...["--check", check, ...(limit === undefined ? [] : ["--max-workspace", limit])],
    ],
    stdout: "piped",
  }).spawn();
  let peak = 0;
  const timer = setInterval(() => {
    const status = Deno.readTextFileSync(`/proc/${child.pid}/status`);
    peak = Math.max(peak, 1024 * Number(/VmHWM:\s*(\d+) kB/.exec(status)?.[1] ?? 0));
  }, 50);
  const { code, stdout } = await child.output().finally(() => clearInterval(timer));
  if (code > 1) throw new Error(`wgconv conv ended with ${code}`);
  return { record: JSON.parse(new TextDecoder().decode(stdout)), peak };
}

async function run(command: string, args: string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command(command, { args }).output();
  if (!success) throw new Error(`${command}: ${new TextDecoder().decode(stderr)}`);
}

import assert from "#assert";
import { temporaryDirectory } from "./cli.ts";
import type { Timings } from "../src/run/timeline.ts";
import { refuses, succeeds, wgconvHere } from "./support/in_process.ts";

/** Holds that parts are there, have four digits, and make up the whole together with what lies between them. */
function holdTimings(line: string, wanted: readonly string[]): void {
  const { kind, schema, parts, overlap_ms, other_ms, total_ms } = JSON.parse(line) as
    & Timings
    & { readonly kind: string; readonly schema: number };
  assert.deepEqual([schema, kind], [1, "timings"]);
  assert.deepEqual(wanted.filter((name) => !parts.some(({ part }) => part === name)), []);
  for (const { part, start_ms, ms, alone_ms } of parts) {
    assert.ok(alone_ms <= ms && ms <= total_ms && start_ms <= total_ms, part);
    for (const value of [start_ms, ms, alone_ms]) {
      assert.equal(value, Number(value.toPrecision(4)), part);
    }
  }
  const alone = parts.reduce((sum, { alone_ms }) => sum + alone_ms, 0);
  // Each of the summands is rounded.
  assert.ok(Math.abs(alone + overlap_ms + other_ms - total_ms) <= 0.002 * total_ms, line);
}

const GPU = [
  "modules",
  "files",
  "device",
  "plan",
  "pipelines",
  "upload",
  "run",
  "read back",
  "reference",
  "check",
  "close",
];

Deno.test("conv and gemm --timings print the parts, with --json as a record behind the case's", async () => {
  using temporary = temporaryDirectory();
  const folder = temporary.path;
  const output = ["--output", `${folder}/y.npy`, "--force"];
  for (
    const [args, parts] of [
      [["conv", "--problem", "mb1ic4ih8oc4kh3ph1", ...output], [...GPU, "write"]],
      [["conv", "--problem", "mb1ic4ih8oc4kh3ph1", "--device", "cpu"], ["modules", "run"]],
      [["gemm", "--size", "16,16,16", ...output], [...GPU, "write"]],
    ] as const
  ) {
    const { stdout } = await succeeds([...args, "--timings", "--json"]);
    const [record, timings, ...rest] = stdout.split("\n");
    assert.equal(JSON.parse(record!).kind, "case");
    holdTimings(timings!, parts);
    assert.deepEqual(rest, [""]);
  }
  const files = ["--input", `${folder}/*.npy`, "--filter", `${folder}/y.npy`];
  await refuses(
    ["conv", ...files, "--output", folder, "--timings"],
    /^wgconv: Cannot convolve many files, --timings must go\n$/,
  );
  const text = await wgconvHere(["conv", "--problem", "mb1ic4ih8oc4kh3ph1", "--timings"]);
  assert.match(text.stdout, /^verdict +pass\npart +from ms +ms +alone ms\nmodules +0 +[\d.]+ +/m);
  assert.match(text.stdout, /^several at once .*\nbetween parts .*\nall +[\d.]+\n$/m);
});

Deno.test("--timings stands on stderr beside a tensor on stdout, and is of one computation", async () => {
  const aside = await succeeds([
    "conv",
    "--problem",
    "mb1ic1ih4oc1kh1",
    "--output",
    "-",
    "--timings",
  ]);
  assert.match(aside.stdout, /^.NUMPY/);
  assert.match(aside.stderr, /^write +/m);
  for (
    const [args, message] of [
      [["gemm", "--suite", "none.txt"], /^wgconv: Cannot bench: .*--timings must go\n$/],
      [["gemm", "--size", "8,8,8", "--search"], /^wgconv: Cannot search: .*--timings must go\n$/],
    ] as const
  ) {
    await refuses([...args, "--timings"], message);
  }
});

/**
 * Turns what bench/variants.ts printed into records, for bench/planner_check.ts:
 *   deno run -A bench/variants_records.ts SUITES OUTPUT... > variants.jsonl
 * SUITES: files of descriptors, separated by commas, whose names the output has. The same variant of the same case counts
 * once, as it stands last.
 */
import { directFlops, OPERATIONS } from "../src/problem/conv_problem.ts";
import { parseDescriptors, printDescriptor } from "../src/problem/descriptor.ts";
import { filterLayoutFor, LAYOUTS } from "../src/tensor/layout.ts";

const [suites = "", ...outputs] = Deno.args;
const lines = (path: string) => Deno.readTextFileSync(path).split("\n");
const problems = new Map(
  suites.split(",").flatMap(lines).filter((line) => /^\w/.test(line)).flatMap((line) =>
    parseDescriptors(line)
  ).map((problem) => [problem.name, problem]),
);
const records = new Map<string, string>();
for (const path of outputs) {
  let device = "";
  let where: string[] = [];
  for (const line of lines(path)) {
    const timed = /^\s+[\d.]+ TFLOP\/s\s+([\d.]+) us\s+(\S+)\s+(\d+) MiB\s+(\S+)\s+(\S+)/.exec(
      line,
    );
    if (timed !== null) add(device, where, timed.slice(1));
    else if (/^\S+ \S+ \S+$/.test(line)) where = line.split(" ");
    else if (/^\S/.test(line)) device = line;
  }
}
for (const record of records.values()) console.log(record);

function add(device: string, where: readonly string[], found: readonly string[]): void {
  const [name = "", opName, layoutName] = where;
  const [microseconds, distance, mebibytes, variant = "", kernel] = found;
  const named = problems.get(name);
  const op = OPERATIONS.find((one) => one === opName);
  const layout = LAYOUTS.find((one) => one === layoutName);
  if (named === undefined || op === undefined || layout === undefined) {
    throw new RangeError(`Cannot make records: ${where.join(" ")} is in no suite`);
  }
  const problem = { ...named, op };
  const [algorithm, tile = "", policy = ""] = variant.split(":");
  const median = Number(microseconds) / 1e3;
  const flops = directFlops(problem);
  records.set(
    `${where.join(" ")} ${[algorithm, tile, policy].join(":")}`,
    JSON.stringify({
      schema: 1,
      kind: "case",
      provider: "wgconv",
      problem: printDescriptor(problem),
      op,
      algorithm,
      ...(tile === "" ? {} : { tile }),
      ...(policy === "" ? {} : { policy }),
      kernel,
      device,
      dtype: "f32",
      layout,
      filter_layout: filterLayoutFor(layout),
      time_ms: { median },
      gflops: Math.round(flops / median / 1e6),
      flops,
      workspace_mib: Number(mebibytes),
      rel_l2_to_first: Number(distance),
      verdict: "none",
    }),
  );
}

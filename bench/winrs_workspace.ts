/**
 * What WinRS plans for each problem of a suite on an H200, without a GPU: pair, segments, and workspace as a multiple
 * of the data (X, ∇Y and ∇W).
 *
 *     deno run -A bench/winrs_workspace.ts [SUITE]
 */
import { expectPlanned } from "../src/algorithms/refusal.ts";
import { DEFAULT_LIMITS } from "../src/algorithms/plan.ts";
import { dataElements } from "../src/algorithms/winrs/baseline.ts";
import { configure } from "../src/algorithms/winrs/configure.ts";
import { omegaName } from "../src/algorithms/winrs/omega.ts";
import { configureOptions } from "../src/algorithms/winrs/plan.ts";
import { parseSuite } from "../src/bench/suite.ts";
import { printDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";

const H200 = {
  ...DEFAULT_LIMITS,
  maxComputeWorkgroupStorageSize: 49_152,
  maxComputeInvocationsPerWorkgroup: 1024,
  maxStorageBufferBindingSize: 2 ** 31 - 4,
  maxBufferSize: 2 ** 32 - 4,
};
const path = Deno.args[0] ?? new URL("suites/winrs_bfc.txt", import.meta.url);
const problems = parseSuite(Deno.readTextFileSync(path), String(path), "bwd-filter");
const shares: number[] = [];
console.log("problem\tpair\tbaseline\tgrid\tbuckets\tMB\tshare");
for (const problem of problems) {
  const { pair, baseline, segmentation, workspaceElements } = configure(
    problem,
    expectPlanned(configureOptions({
      problem,
      dtype: "f32",
      layout: "nhwc",
      filterLayout: "krsc",
      epilogue: NO_EPILOGUE,
      algorithm: "winrs",
      limits: H200,
    })),
  );
  const { first, second, k0, k1 } = pair;
  const share = workspaceElements / dataElements(problem);
  shares.push(share);
  console.log([
    problem.name ?? printDescriptor(problem),
    `${k0} ${omegaName(first)}` + (second ? ` + ${k1} ${omegaName(second)}` : ""),
    baseline,
    `${segmentation.rows}x${segmentation.columns}`,
    segmentation.count,
    (workspaceElements * 4 / 1e6).toFixed(1),
    share.toFixed(3),
  ].join("\t"));
}
const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
console.log(`average ${mean.toFixed(3)}, most ${Math.max(...shares).toFixed(3)}`);

/** Damaged records: every reader takes them, or refuses them with one sentence that names file and line. */

import assert from "#assert";
import { baselineDiff, parseBaseline, printBaseline } from "../../src/bench/baseline.ts";
import {
  mergeTuning,
  otherDevice,
  parseTuning,
  printTuning,
  tuningTable,
} from "../../src/bench/tuning_file.ts";
import { oneSentence } from "../../src/cli/failure.ts";
import { EXIT, exitCodeOf } from "../../src/errors.ts";
import { latestCases } from "../../src/report/case_key.ts";
import { compareRuns } from "../../src/report/comparison.ts";
import {
  comparisonData,
  comparisonMarkdown,
  comparisonText,
} from "../../src/report/comparison_views.ts";
import { collectHistory } from "../../src/report/history.ts";
import { historyPage } from "../../src/report/history_page.ts";
import { historyText } from "../../src/report/history_views.ts";
import { reportPage } from "../../src/report/page.ts";
import { eachRecord, parseRecords } from "../../src/report/read_records.ts";
import { delimitedTable, recordTable } from "../../src/report/case_table.ts";
import { markdownTable, textTable } from "../../src/report/table.ts";
import { VERSION } from "../../src/version.ts";
import { Draw } from "../attack/draw.ts";
import { spoilValue } from "../attack/mutate.ts";
import { caseFields, ENVIRONMENT } from "../support/test_records.ts";

/** Runs a reader of `x.jsonl`, and what is made of what it read. */
async function readsOrRefuses(read: () => void | Promise<void>): Promise<boolean> {
  try {
    await read();
    return true;
  } catch (error) {
    assert.equal(exitCodeOf(error), EXIT.usage, error instanceof Error ? error.stack : `${error}`);
    assert.match(oneSentence(error), /^(x\.jsonl:\d+: )?Cannot .*\bx\.jsonl:\d+: /s);
    return false;
  }
}

async function hold(
  name: string,
  valid: readonly unknown[],
  runs: number,
  read: (text: string) => void | Promise<void>,
) {
  const counts = { true: 0, false: 0 };
  for (let number = 0; number < runs; number++) {
    const draw = new Draw(1, name, number);
    let spoilt: unknown = draw.pick(valid);
    for (let times = draw.int(1, 4); times > 0; times--) spoilt = spoilValue(draw, spoilt);
    counts[`${await readsOrRefuses(() => read(JSON.stringify(spoilt)))}`]++;
  }
  assert(counts.true > runs / 50 && counts.false > runs / 50, `${name}: ${JSON.stringify(counts)}`);
}

const GEMM = { op: "gemm", problem: "8 8 100 n t", layout: "nt", epilogue: "alpha 2" };
const CASES = [
  caseFields({}),
  caseFields({ provider: "cudnn", kernel: undefined, verdict: "fail", message: "too far" }),
  caseFields(GEMM),
  caseFields({
    cache: "cold",
    policy: "tiny",
    tile: "F(2x2,3x3)",
    op: "bwd-filter",
    verdict: "error",
  }),
];
const PLAIN = caseFields({});

Deno.test("report and compare read or refuse damaged records", async () => {
  const other = parseRecords(JSON.stringify(PLAIN), "other").cases;
  await hold("records", [...CASES, ENVIRONMENT], 3000, (text) => {
    const { cases } = parseRecords(`${text}\n`, "x.jsonl");
    const { cases: latest } = latestCases([...cases, ...cases]);
    const { columns, rows } = recordTable(latest);
    for (const table of [textTable, markdownTable]) table(columns, rows);
    for (const separator of [",", "\t"] as const) delimitedTable(latest, separator);
    for (const by of ["best", "algorithm"] as const) {
      for (const [base, next] of [[cases, other], [other, cases], [cases, cases]] as const) {
        const comparison = compareRuns(base, next, by, { threshold: 0.05, margin: 0.02 });
        comparisonText(comparison);
        comparisonMarkdown(comparison);
        JSON.stringify(comparisonData(comparison));
      }
    }
  });
});

Deno.test("report draws a page of damaged records", async () => {
  const rest = CASES.map((one) => JSON.stringify(one)).join("\n");
  await hold("page", [...CASES, ENVIRONMENT], 40, async (text) => {
    const records = parseRecords(`${text}\n${rest}\n`, "x.jsonl");
    await reportPage(records, {
      title: "x",
      sources: ["x"],
      ceilings: {},
    });
  });
});

Deno.test("history shows damaged records as text and as a page", async () => {
  const rest = CASES.map((one) => JSON.stringify(one)).join("\n");
  await hold("history", [...CASES, ENVIRONMENT], 40, async (text) => {
    const collector = collectHistory();
    collector.add(eachRecord(`${text}\n${rest}\n`, "x.jsonl"), "x.jsonl");
    const history = collector.end({ threshold: 0.05, margin: 0.02 });
    historyText(history, (cell) => cell);
    await historyPage(history, []);
  });
});

const TUNED = {
  ...{ schema: 1, kind: "tuning", version: VERSION, backend: "wgpu", device: "d", driver: "1" },
  ...{ problem: "mb1ic4ih8oc4kh3", op: "fwd", dtype: "f32", layout: "nchw", filter_layout: "kcrs" },
  ...{ algorithm: "winograd2d", policy: "tiny", tile: "F(2x2,3x3)", kernel: "k", kernels: ["k"] },
  ...{ time_ms: PLAIN.time_ms, gflops: 1, winner: true, verdict: "pass" },
};
const BASELINE = {
  ...{ schema: 1, kind: "baseline", version: "0", adapter: "d", fill: "uniform01", seed: 1 },
  cases: {
    "fwd nchw f32 direct mb1ic4ih8oc4kh3": {
      max_bound_ratio: 1,
      rel_l2: 1e-7,
      mare: null,
      checked: 5,
    },
  },
};

Deno.test("--tuning and tune read or refuse damaged tunings", async () => {
  await hold("tuning", [TUNED], 3000, (text) => {
    const { lines } = parseTuning(`${text}\n`, "x.jsonl");
    const device = { backend: "wgpu", adapter: "d", driver: "1" };
    tuningTable(lines, device);
    otherDevice(lines, device);
    printTuning(mergeTuning(lines, lines));
  });
});

Deno.test("check --baseline reads or refuses damaged baselines", async () => {
  await hold("baseline", [BASELINE], 3000, (text) => {
    const baseline = parseBaseline(text, "x.jsonl");
    baselineDiff(baseline, parseBaseline(printBaseline(baseline), "x.jsonl"));
  });
});

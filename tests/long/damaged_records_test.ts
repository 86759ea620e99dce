/** Damaged records: every reader takes them, or refuses them with one sentence that names file and line. */

import assert from "#assert";
import fc from "fast-check";
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
import { caseFields, ENVIRONMENT } from "../support/test_records.ts";

/** What stands where something else is expected. */
const VALUES: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    "",
    "x",
    0,
    -1,
    1.5,
    1e308,
    -1e308,
    5e-324,
    2 ** 53,
    [],
    {},
    [[]],
  ),
  fc.constantFrom<unknown>(
    "__proto__",
    "constructor",
    "mb0",
    "mb1ic1ih1oc1kh1",
    "gemm",
    "fail",
    "error",
  ),
  fc.constantFrom<unknown>([1, 2, 3], [-1, 0], [null], ["x"], { toString: 1, valueOf: 2 }, {
    length: 5,
  }),
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.double({ noNaN: true }),
);

/** Steps that each damage one place: a field, found by walking down the value. */
const DAMAGE = fc.array(
  fc.record({
    path: fc.array(fc.nat(40), { minLength: 1, maxLength: 3 }),
    how: fc.constantFrom("set" as const, "set" as const, "remove" as const),
    value: VALUES,
  }),
  { minLength: 1, maxLength: 4 },
);

type Steps = typeof DAMAGE extends fc.Arbitrary<infer T> ? T : never;

function damaged(valid: unknown, steps: Steps): string {
  const copy = structuredClone(valid);
  for (const { path, how, value } of steps) {
    let at = copy as Record<string, unknown>;
    path.every((step, depth) => {
      const keys = Object.keys(at);
      if (keys.length === 0) return false;
      const key = keys[step % keys.length]!;
      const inner = at[key];
      const goOn = depth < path.length - 1 && typeof inner === "object" && inner !== null;
      if (goOn) at = inner as Record<string, unknown>;
      else if (how === "set") at[key] = structuredClone(value);
      else delete at[key];
      return goOn;
    });
  }
  // A number that no double holds is infinite when it is read.
  return JSON.stringify(copy).replaceAll("1e+308", "1e999");
}

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
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...valid), DAMAGE, async (one, steps) => {
      const text = damaged(one, steps);
      counts[`${await readsOrRefuses(() => read(text))}`]++;
    }),
    { numRuns: runs, seed: 1 },
  );
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

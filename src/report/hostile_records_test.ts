import assert from "#assert";
import { stream } from "../../tests/support/test_records.ts";
import { compareRuns } from "./comparison.ts";
import { comparisonMarkdown, comparisonText } from "./comparison_views.ts";
import { parseRecords } from "./read_records.ts";
import { delimitedTable, recordTable } from "./case_table.ts";
import { markdownTable, textTable } from "./table.ts";

const FIELDS = [
  "provider",
  "kernel",
  "layout",
  "message",
  "algorithm",
  "device",
  "dtype",
  "problem",
];
const MARKUP = "<script>alert(1)</script>";
const hostile = (text: string) =>
  parseRecords(
    stream({ verdict: "fail", ...Object.fromEntries(FIELDS.map((field) => [field, text])) }),
    "test",
  ).cases;

Deno.test("no field of a record makes an element of a Markdown report or comparison", () => {
  const cases = hostile(MARKUP);
  const { columns, rows } = recordTable(cases);
  const compared = compareRuns(cases, cases, "algorithm", { threshold: 0.05, margin: 0.02 });
  for (const text of [markdownTable(columns, rows), comparisonMarkdown(compared)]) {
    assert.ok(text.includes("&lt;script>"), text);
    assert.ok(!text.includes("<"), text);
  }
});

Deno.test("no field of a record is a formula of a spreadsheet", () => {
  for (const start of ["=", "+", "-", "@", " =", "\t="]) {
    for (const separator of [",", "\t"] as const) {
      const [, row] = delimitedTable(hostile(`${start}cmd()`), separator).split(/\r?\n/);
      for (const cell of row!.split(separator)) {
        assert.doesNotMatch(cell, /^"?\s*[=+@-](?!\d)/, JSON.stringify(start));
      }
    }
  }
});

Deno.test("no field of a record moves a terminal's cursor", () => {
  const cases = hostile("\x1b[2J\u202e\x9b1m\r\x07");
  const { columns, rows } = recordTable(cases);
  const compared = compareRuns(cases, cases, "algorithm", { threshold: 0.05, margin: 0.02 });
  const texts = [
    textTable(columns, rows),
    markdownTable(columns, rows),
    delimitedTable(cases, ","),
    delimitedTable(cases, "\t"),
    comparisonText(compared),
    comparisonMarkdown(compared),
  ];
  for (const text of texts) assert.doesNotMatch(text, /(?![\r\n\t])[\p{Cc}\u202e]/u);
});

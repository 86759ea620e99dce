import type { AccuracyRecord, CaseRecord, ProjectionRecord } from "./record.ts";
import {
  formatBytes,
  formatCount,
  formatError,
  formatGflops,
  formatMilliseconds,
  significant,
} from "./format.ts";
import { type Column, textTable } from "./table.ts";

/** A case in full, a line a fact: what `wgconv conv` prints. */
export function caseReport(record: CaseRecord): string {
  const { time_ms: time, accuracy } = record;
  const made = record.fill ? `${record.fill} data, seed ${record.seed}` : "data of the files";
  const layout = record.filter_layout === undefined
    ? `transposes ${record.layout}`
    : `${record.layout} with filter ${record.filter_layout}`;
  const dtype = record.accumulate ? `${record.dtype} summed in ${record.accumulate}` : record.dtype;
  const lines: [string, string][] = [
    ["problem", `${record.op} ${record.problem}`],
    ["tensors", `${dtype}, ${layout}, ${made}`],
    ...(record.epilogue ? [["epilogue", record.epilogue] as [string, string]] : []),
    ["device", record.device],
    ["kernel", record.kernel ?? "none"],
  ];
  if (record.workspace_bytes !== null) {
    lines.push(["workspace", formatBytes(record.workspace_bytes)]);
  }
  if (record.memory_bytes) {
    const { inputs, output, peak } = record.memory_bytes;
    lines.push([
      "memory",
      `${formatBytes(peak)}, of it inputs ${formatBytes(inputs)}, output ${formatBytes(output)}`,
    ]);
  }
  if (time) {
    lines.push([
      "time",
      `${formatMilliseconds(time.median)} median of ${time.samples.length} samples of ` +
      `${time.repeats} calls (min ${formatMilliseconds(time.min)}, ` +
      `mad ${formatMilliseconds(time.mad)}, ${time.clock})`,
    ]);
  }
  if (record.gflops !== null) {
    lines.push(["rate", `${formatGflops(record.gflops)} of ${formatCount(record.flops)} flop`]);
  }
  if (accuracy) {
    lines.push(
      ["MARE", mareLine(accuracy)],
      [
        "bound ratio",
        `${bound(accuracy.max_bound_ratio)} of ${significant(accuracy.bound_limit)} allowed`,
      ],
      [
        "relative L2",
        `${formatError(accuracy.rel_l2)} of ${formatError(accuracy.rel_l2_limit)} allowed`,
      ],
      [
        "channel RMS",
        `${significant(accuracy.channel_rms_ratio)} of ` +
        `${significant(accuracy.channel_rms_limit)} times the median channel's allowed`,
      ],
      ["checked", `${formatCount(accuracy.checked)} of ${formatCount(accuracy.total)} outputs`],
    );
  }
  if (record.projection) lines.push(...projectionLines(record.projection));
  lines.push(["verdict", verdictLine(record)]);
  return lines.map(([label, text]) => `${label.padEnd(12)}${text}`).join("\n");
}

/** What the projection of the whole result says, and what it cost. */
function projectionLines(projection: ProjectionRecord): [string, string][] {
  const { places, members, masked, activated } = projection;
  const exact = projection.limit === 0;
  const figures = exact ? ["exactly"] : [
    `${significant(projection.max_ratio)} of ${significant(projection.limit)} times the noise`,
    `patches ${significant(projection.patch_rms)} of ${significant(projection.patch_limit)}`,
  ];
  const seconds = [
    `reference ${projection.reference_seconds.toFixed(2)} s`,
    `result ${projection.seconds.toFixed(2)} s`,
    ...(projection.read_seconds === undefined
      ? []
      : [`read back in ${projection.read_seconds.toFixed(2)} s`]),
  ];
  return [
    [
      "projected",
      `${formatCount(places * members)} outputs in ${formatCount(places)} sums: ` +
      figures.join(", "),
    ],
    [
      "",
      [
        exact
          ? "sees any single wrong output"
          : `sees single outputs off by ${significant(projection.size)} times their typical error`,
        ...(masked > 0
          ? [
            `${formatCount(projection.masked_checked)} of ${formatCount(masked)} outputs ` +
            "beside NaN or infinite ones were compared singly",
          ]
          : []),
        ...(activated === undefined ? [] : ["every activation compared"]),
      ].join("; "),
    ],
    ["", seconds.join(", ")],
  ];
}

/** MARE, and why it is large where a few references near zero carry it. */
function mareLine({ mare, median_rel }: AccuracyRecord): string {
  const line = `${formatError(mare)} (median ${formatError(median_rel)})`;
  const skewed = mare !== null && median_rel !== null && mare > 100 * median_rel;
  return skewed ? `${line}: references near zero carry the mean, the bound ratio counts` : line;
}

/** The verdict with its reason. */
function verdictLine({ verdict, message }: CaseRecord): string {
  const word = verdict === "none" ? "not checked" : verdict;
  return message === undefined ? word : `${word}: ${message}`;
}

function bound(value: number | null): string {
  return value === null ? "-" : significant(value);
}

/** Columns of {@linkcode caseRow}. */
export const CASE_COLUMNS: readonly Column[] = [
  { title: "problem" },
  { title: "op" },
  { title: "layout" },
  { title: "kernel" },
  { title: "time", align: "right" },
  { title: "GFLOP/s", align: "right" },
  { title: "workspace", align: "right" },
  { title: "MARE", align: "right" },
  { title: "bound", align: "right" },
  { title: "verdict" },
];

/** A case as a row of a table: its name, or else its descriptor, and its figures. */
export function caseRow(record: CaseRecord): string[] {
  const { time_ms: time, accuracy, workspace_bytes: workspace } = record;
  return [
    /n"([^"]+)"$/.exec(record.problem)?.[1] ?? record.problem,
    record.op,
    record.layout,
    record.kernel ?? record.algorithm,
    time ? formatMilliseconds(time.median) : "-",
    record.gflops === null ? "-" : record.gflops.toFixed(record.gflops < 100 ? 2 : 0),
    workspace === null ? "-" : formatBytes(workspace),
    formatError(accuracy?.mare ?? null),
    bound(accuracy?.max_bound_ratio ?? null),
    record.verdict === "none" ? "-" : record.verdict,
  ];
}

/** Cases as a plain text table, which says hot or cold where there are both. */
export function caseTable(records: readonly CaseRecord[]): string {
  const rows = records.map(caseRow);
  if (new Set(records.map(({ cache }) => cache)).size < 2) return textTable(CASE_COLUMNS, rows);
  const after = CASE_COLUMNS.findIndex(({ title }) => title === "kernel") + 1;
  return textTable(
    CASE_COLUMNS.toSpliced(after, 0, { title: "cache" }),
    rows.map((row, index) => row.toSpliced(after, 0, records[index]!.cache ?? "-")),
  );
}

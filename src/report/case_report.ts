import { dtypeText, mathText } from "./case_key.ts";
import { printableCell } from "../printable.ts";
import {
  type AccuracyRecord,
  type CaseRecord,
  type ProjectionRecord,
  type StreamRecord,
  verdictWord,
} from "./record.ts";
import {
  formatBytes,
  formatCount,
  formatError,
  formatGflops,
  formatMilliseconds,
  significant,
} from "./format.ts";

/** A case in full, a line a fact: what `wgconv conv` prints. */
export function caseReport(record: CaseRecord): string {
  const { time_ms: time, accuracy } = record;
  const made = (record.fill ? `${record.fill} data, seed ${record.seed}` : "data of the files") +
    (record.loss_scale === undefined ? "" : `, gradient times ${record.loss_scale}`);
  const layout = record.filter_layout === undefined
    ? `transposes ${record.layout}`
    : `${record.layout} with filter ${record.filter_layout}`;
  const dtype = dtypeText(record) + (record.accumulate ? ` summed in ${record.accumulate}` : "") +
    mathText(record);
  const lines: [string, string][] = [
    ["problem", printableCell(`${record.op} ${record.problem}`)],
    ["tensors", `${dtype}, ${layout}, ${made}`],
    ...(record.epilogue ? [["epilogue", record.epilogue] as [string, string]] : []),
    ...(record.arithmetic === undefined
      ? [["device", record.device], ["kernel", record.kernel ?? "none"]] as [string, string][]
      : [["arithmetic", record.arithmetic]] as [string, string][]),
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
  if (record.stream) lines.push(...streamLines(record.stream));
  if (time && record.stream) {
    const { chunks } = record.stream;
    lines.push(["time", `${formatMilliseconds(time.median)} of ${chunks} chunks (${time.clock})`]);
  } else if (time) {
    lines.push([
      "time",
      `${formatMilliseconds(time.median)} median of ${time.samples.length} samples of ` +
      `${time.repeats} calls (min ${formatMilliseconds(time.min)}, ` +
      `mad ${formatMilliseconds(time.mad)}, ${time.clock}` +
      `${
        time.warm_up === undefined ? "" : `, ${time.warm_up} warm-up: --runs takes a longer one`
      })`,
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
      ["relative L2", relativeLine(accuracy)],
      [
        "group RMS",
        `${significant(accuracy.group_rms)} times the usual, ` +
        `${significant(accuracy.group_rms_limit)} allowed` +
        (accuracy.worst_group === null ? "" : ` (${accuracy.worst_group})`),
      ],
      ["checked", `${formatCount(accuracy.checked)} of ${formatCount(accuracy.total)} outputs`],
    );
  }
  if (record.projection) lines.push(...projectionLines(record.projection));
  lines.push(["verdict", verdictLine(record)]);
  if (record.diagnosis !== undefined) lines.push(["diagnosis", record.diagnosis]);
  return lines.map(([label, text]) => `${label.padEnd(12)}${text}`).join("\n");
}

function streamLines(stream: StreamRecord): [string, string][] {
  const { images, chunks, checked_chunks, bytes, seconds, host_bytes } = stream;
  return [
    [
      "stream",
      `${formatCount(chunks)} chunks of ${formatCount(images)} images` +
      (checked_chunks === 0 ? "" : `, ${formatCount(checked_chunks)} of them checked`),
    ],
    [
      "",
      `${formatBytes(bytes)} in ${significant(seconds)} s: ${formatBytes(bytes / seconds)}/s; ` +
      `at most ${formatBytes(host_bytes)} of the host's memory`,
    ],
  ];
}

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
          ? "this check detects any single wrong output"
          : `this check detects one output that is wrong by ${
            significant(projection.size)
          } times the usual error`,
        ...(masked > 0
          ? [
            `${formatCount(projection.masked_checked)} of ${formatCount(masked)} outputs ` +
            "next to NaN or infinite ones were compared one by one",
          ]
          : []),
        ...(activated === undefined ? [] : [
          exact ? "every result compared with its sum" : "every activation compared",
        ]),
      ].join("; "),
    ],
    ["", seconds.join(", ")],
  ];
}

/** The relative L2 error, where references are not all 0. */
function relativeLine({ rel_l2, rel_l2_limit }: AccuracyRecord): string {
  return Number.isFinite(rel_l2) && Number.isFinite(rel_l2_limit)
    ? `${formatError(rel_l2)} of ${formatError(rel_l2_limit)} allowed`
    : "-: the references are 0, see the bound ratio and the RMS";
}

/** MARE; where a few references near zero carry it the median stands first. */
function mareLine({ mare, median_rel }: AccuracyRecord): string {
  const [mean, median] = [formatError(mare), formatError(median_rel)];
  const skewed = mare !== null && median_rel !== null && mare > 100 * median_rel;
  return skewed
    ? `median ${median}, mean ${mean} (dominated by references near zero; see the bound ratio)`
    : `${mean} (median ${median})`;
}

function verdictLine({ verdict, message }: CaseRecord): string {
  const word = verdictWord(verdict);
  return message === undefined ? word : `${word}: ${message}`;
}

function bound(value: number | null): string {
  return value === null ? "-" : significant(value);
}

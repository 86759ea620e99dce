import { algorithmNames } from "../algorithms/registry.ts";
import type { TunedGroup } from "../bench/tune_suite.ts";
import {
  formatBytes,
  formatGflops,
  formatMilliseconds,
  formatShare,
  significant,
} from "../report/format.ts";
import type { TuningRecord } from "../report/record.ts";
import { type LiveColumn, liveTable, type RowOrder, sortRows } from "../report/table.ts";
import type { Printer } from "./output.ts";
import { sortParser } from "./table_options.ts";
import { someOf } from "./values.ts";

/** The winner of a problem, and what it gains over the planner's choice, where that was measured. */
interface Winner {
  readonly winner: TuningRecord;
  readonly gain: number | null;
}

interface TuneColumn extends LiveColumn {
  readonly order: (one: Winner) => string | number | null;
  readonly print?: (value: number) => string;
}

function words(
  title: string,
  order: (winner: TuningRecord) => string,
  width = 0,
): TuneColumn {
  return { title, width, order: ({ winner }) => order(winner) };
}

function figure(
  title: string,
  order: (one: Winner) => number | null,
  print: (value: number) => string,
  width = 0,
): TuneColumn {
  return { title, align: "right", width, order, print };
}

/** Every column of tunings, by the names that tables of cases have for the same. */
const TUNE_COLUMNS = {
  problem: words("problem", ({ problem }) => problem),
  op: words("op", ({ op }) => op),
  dtype: words("dtype", ({ dtype }) => dtype),
  layout: words("layout", ({ layout }) => layout),
  algorithm: words(
    "fastest",
    ({ algorithm }) => algorithm,
    Math.max(...algorithmNames().map((name) => name.length)),
  ),
  time: figure("time", ({ winner }) => winner.time_ms.median, formatMilliseconds, 8),
  noise: figure("noise", ({ winner: { time_ms } }) => time_ms.mad / time_ms.median, formatShare, 6),
  gflops: figure("rate", ({ winner }) => winner.gflops, formatGflops, 13),
  gain: figure("over auto", ({ gain }) => gain, (gain) => gain.toFixed(3)),
  workspace: figure("workspace", ({ winner }) => winner.workspace_bytes, formatBytes),
  bound: figure("bound", ({ winner }) => winner.max_bound_ratio, significant),
  kernel: words("kernel", ({ kernel }) => kernel),
} as const satisfies Readonly<Record<string, TuneColumn>>;

type TuneColumnName = keyof typeof TUNE_COLUMNS;

const NAMES = Object.keys(TUNE_COLUMNS) as TuneColumnName[];
const USUAL: readonly TuneColumnName[] = NAMES.filter((name) => {
  return !["dtype", "workspace", "bound"].includes(name);
});

/** Those that go where not all fit, the last of these first. */
const SPARE: readonly TuneColumnName[] = ["layout", "noise", "kernel"];

export const TUNE_COLUMNS_HELP = `columns of the table: ${NAMES.join(", ")}`;

export const parseTuneColumns = someOf<TuneColumnName>(NAMES);

export const parseTuneSort = sortParser<TuneColumnName>(NAMES);

type Coming = Record<"problem" | "op" | "dtype" | "layout", string>;
const COMING: readonly TuneColumnName[] = ["problem", "op", "dtype", "layout"];

/**
 * A table of winners: each printed as it is known, or all at the end where they are sorted; no row of a problem where
 * nothing won.
 */
export function tuneRows(
  coming: readonly Coming[],
  { columns: asked, sort, room }: {
    readonly columns?: readonly TuneColumnName[] | undefined;
    readonly sort?: RowOrder<TuneColumnName> | undefined;
    /** Characters in a line of the terminal; undefined where there is none. */
    readonly room?: number | undefined;
  },
  out: Printer,
): { add(group: Pick<TunedGroup, "records">): void; end(): void } {
  const several = new Set(coming.map(({ dtype }) => dtype)).size > 1;
  const names = asked ??
    NAMES.filter((name) => USUAL.includes(name) || (several && name === "dtype"));
  const columns = names.map((name): TuneColumn => {
    const widths = COMING.includes(name)
      ? coming.map((one) => one[name as keyof Coming].length)
      : [];
    const column: TuneColumn = TUNE_COLUMNS[name];
    const spare = asked === undefined && SPARE.includes(name) ? SPARE.indexOf(name) : undefined;
    return { ...column, spare, width: Math.max(column.width ?? 0, ...widths) };
  });
  const row = liveTable(columns, undefined, room);
  const print = (one: Winner) =>
    out.line(row(columns.map(({ order, print }) => {
      const value = order(one);
      return value === null ? "-" : typeof value === "number" ? print!(value) : value;
    })));
  const kept: Winner[] = [];
  return {
    add({ records }) {
      const winner = records.find((record) => record.winner);
      if (winner === undefined) return;
      const untuned = records.find((record) => record.chosen);
      const gain = untuned === undefined ? null : untuned.time_ms.median / winner.time_ms.median;
      if (sort === undefined) print({ winner, gain });
      else kept.push({ winner, gain });
    },
    end() {
      if (sort === undefined) return;
      const { column, descending } = sort;
      sortRows(kept, TUNE_COLUMNS[column].order, descending).forEach(print);
    },
  };
}

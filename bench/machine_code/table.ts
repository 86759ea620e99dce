import { canonicalName } from "../../src/kernels/kernel.ts";
import { type Column, textTable } from "../../src/report/table.ts";
import type { PlannedKernel } from "./kernels.ts";
import { type Occupancy, occupancy } from "./occupancy.ts";
import { figuresOf, type PipelineFigures, type PipelineLine } from "./pipelines.ts";
import type { Listing, Mix } from "./sass.ts";

/** A kernel with all that is known of its machine code. */
export interface MachineCode {
  readonly kernel: string;
  /** Plans that run it. */
  readonly plans: number;
  readonly auto: boolean;
  readonly threads: number;
  readonly compile_ms: number;
  readonly figures: PipelineFigures;
  readonly occupancy?: Occupancy;
  readonly code?: Listing;
}

/** Puts a pipeline's line and its listing together with what was planned. */
export function machineCode(
  { kernel, plans, auto }: Pick<PlannedKernel, "kernel" | "plans" | "auto">,
  line: PipelineLine,
  capability: number | undefined,
  code: Listing | undefined,
): MachineCode {
  const figures = figuresOf(line);
  const threads = kernel.workgroupSize.reduce((product, size) => product * size);
  const { registers, sharedBytes } = figures;
  // NVIDIA's driver says 0 where it has no figure.
  const shared = sharedBytes || kernel.workgroupBytes;
  return {
    kernel: kernel.name,
    plans,
    auto,
    threads,
    compile_ms: line.compile_ms,
    figures: { ...figures, sharedBytes: shared },
    ...(capability === undefined || registers === undefined
      ? {}
      : { occupancy: occupancy(capability, { threads, registers, sharedBytes: shared }) }),
    ...(code === undefined ? {} : { code }),
  };
}

/** Whether registers lie in memory: as the driver says, or the code loads and stores them there. */
export function spills({ figures: { localBytes = 0, spilled = 0 }, code }: MachineCode): boolean {
  return localBytes > 0 || spilled > 0 || (code?.mix.LDL ?? 0) + (code?.mix.STL ?? 0) > 0;
}

/** Columns of instructions: those of these names and of names that begin so. */
const GROUPS: readonly (readonly [string, readonly string[]])[] = [
  ["FFMA", ["FFMA", "FFMA2"]],
  ["MMA", ["HMMA", "IMMA", "HGMMA"]],
  ["IDP", ["IDP"]],
  ["HFMA2", ["HFMA2"]],
  ["FADD", ["FADD", "FMUL"]],
  ["LDS", ["LDS"]],
  ["LDSM", ["LDSM"]],
  ["STS", ["STS", "STSM"]],
  ["LDG", ["LDG"]],
  ["STG", ["STG"]],
  ["LDL", ["LDL"]],
  ["STL", ["STL"]],
  ["BAR", ["BAR"]],
  ["ISETP", ["ISETP", "UISETP"]],
  ["IMAD", ["IMAD", "UIMAD"]],
  ["IADD", ["IADD3", "VIADD", "UIADD3"]],
  ["MOV", ["MOV", "UMOV", "CS2R"]],
  ["SEL", ["SEL", "FSEL", "USEL"]],
];

/** The column that counts plans. */
const PLANS = 2;

function groupCells(mix: Mix | undefined, columns: readonly (typeof GROUPS)[number][]): string[] {
  return columns.map(([, names]) =>
    mix === undefined ? "" : `${names.reduce((sum, name) => sum + (mix[name] ?? 0), 0)}`
  );
}

/** How many of some instructions are products. */
function productShare(code: Pick<Listing, "instructions" | "mix"> | undefined): string {
  if (code === undefined || code.instructions === 0) return "-";
  const products = ["FFMA", "FFMA2", "HMMA", "IMMA", "IDP"]
    .reduce((sum, name) => sum + (code.mix[name] ?? 0), 0);
  return `${Math.round(100 * products / code.instructions)} %`;
}

/**
 * The table: a row a kernel, one for those that differ in the sizes in their texts alone; where there is code, counts of its
 * loop, or of all of it where it has none. Columns of zeros are left out.
 */
export function codeTable(rows: readonly MachineCode[]): string {
  const mixes = rows.map(({ code }) => code?.loop?.mix ?? code?.mix);
  const shown = GROUPS.filter(([, names]) =>
    mixes.some((mix) => names.some((name) => (mix?.[name] ?? 0) > 0))
  );
  const loads = ([["LDG in branches", "branchedLoads"], ["LDG late", "lateLoads"]] as const)
    .filter(([, kind]) => rows.some(({ code }) => (code?.loop?.[kind] ?? 0) > 0));
  const branches = rows.some(({ code }) =>
    code?.loop !== undefined && code.loop.shortest.instructions < code.loop.instructions
  );
  const right = (title: string): Column => ({ title, align: "right" });
  const columns: Column[] = [
    { title: "kernel" },
    ...["auto", "plans", "threads", "registers", "local", "shared", "warps/SM"].map(right),
    { title: "held by" },
    ...(shown.length === 0 ? [] : ["all", "loop", "products"].map(right)),
    ...(branches ? ["shortest", "products"].map(right) : []),
    ...shown.map(([title]) => right(title)),
    ...loads.map(([title]) => right(title)),
  ];
  const cell = (value: number | undefined) => value === undefined ? "-" : `${value}`;
  const cells = rows.map((row, i) => {
    const { figures, occupancy: of, code } = row;
    const mix = mixes[i];
    return [
      canonicalName({ name: row.kernel }),
      row.auto ? "yes" : "no",
      `${row.plans}`,
      `${row.threads}`,
      cell(figures.registers),
      figures.localBytes === undefined
        ? cell(figures.spilled)
        : `${figures.localBytes}${spills(row) ? " spills" : ""}`,
      cell(figures.sharedBytes),
      cell(of?.warps),
      of?.limit ?? "-",
      ...(shown.length === 0 ? [] : [
        cell(code?.instructions),
        cell(code?.loop?.instructions),
        productShare(code?.loop ?? code),
      ]),
      ...(branches
        ? [cell(code?.loop?.shortest.instructions), productShare(code?.loop?.shortest)]
        : []),
      ...groupCells(mix, shown),
      ...loads.map(([, kind]) => cell(code?.loop?.[kind])),
    ];
  });
  const distinct = new Map<string, string[]>();
  for (const row of cells) {
    const key = row.with(PLANS, "").join("|");
    const known = distinct.get(key) ?? row.with(PLANS, "0");
    distinct.set(key, known.with(PLANS, `${Number(known[PLANS]) + Number(row[PLANS])}`));
  }
  return textTable(columns, [...distinct.values()]);
}

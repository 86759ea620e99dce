/** What drivers' compilers make of kernels, by device and family: rows of gpus_compiled.jsonl beside this file, and their table. */
import { canonicalName } from "../../src/kernels/kernel.ts";
import { tableOf } from "./read.ts";
import { figuresOf, type PipelineLine } from "../machine_code/pipelines.ts";

/** A kernel that tests/shims/compile.ts has compiled. */
export interface CompiledKernel {
  readonly name: string;
  /** Whether `auto` takes it on the device; else a test forces it. */
  readonly auto: boolean;
}

/** Kernels of a family that `auto` takes on a device. */
export interface CompiledFamily {
  /** Its driver's name. */
  readonly device: string;
  readonly backend: string;
  readonly family: string;
  readonly kernels: number;
  /** Median and most of a thread. */
  readonly registers: readonly [median: number, most: number];
  /** Least and median, in the driver's unit; absent where it says none. */
  readonly occupancy?: readonly [least: number, median: number];
  /** Kernels that spill, and most spills of one. */
  readonly spilling: number;
  readonly mostSpills: number;
}

const FAMILIES = [
  "implicit_gemm",
  "gemm",
  "winograd2d_nonfused",
  "winograd1d",
  "winograd2d",
  "winrs",
  "im2win_fused",
  "depthwise",
];

/** The algorithm whose products a kernel does, or `passes`: what packs, transforms and reduces. */
function family(name: string): string {
  const units = /_\d+x\d+m_|_mma\d/.test(name) ? ", units" : "";
  const known = FAMILIES.find((one) => name.startsWith(`${one}_`));
  return known === undefined ? "passes" : `${known.replaceAll("_", "-")}${units}`;
}

const median = (of: readonly number[]) => of.toSorted((a, b) => a - b)[of.length >> 1]!;

/** Rows of a device, of lines of the layer (`bench/machine_code`). */
export function compiledFamilies(
  device: string,
  backend: string,
  kernels: readonly CompiledKernel[],
  lines: readonly PipelineLine[],
): CompiledFamily[] {
  const auto = new Set(kernels.filter(({ auto }) => auto).map(({ name }) => name));
  const found = lines.filter(({ kernel }) => auto.has(kernel)).map((
    { kernel, executables = [] },
  ) => ({
    name: canonicalName({ name: kernel }),
    // The last of several is the widest that the driver kept.
    figures: figuresOf({ executables: executables.slice(-1) }),
  }));
  return [...Map.groupBy(found, ({ name }) => family(name))].sort().map(([family, all]) => {
    const figures = all.map(({ figures }) => figures);
    const registers = figures.flatMap(({ registers }) => registers ?? []);
    const occupancy = figures.flatMap(({ occupancy }) => occupancy ?? []);
    const spills = figures.map(({ spilled, localBytes = 0 }) => spilled ?? localBytes);
    return {
      device,
      backend,
      family,
      kernels: all.length,
      registers: [median(registers), Math.max(...registers)],
      ...(occupancy.length > 0 &&
        { occupancy: [Math.min(...occupancy), median(occupancy)] as const }),
      spilling: spills.filter((count) => count > 0).length,
      mostSpills: Math.max(...spills),
    };
  });
}

/** A row a device, a column a family: registers, occupancy and how many spill. */
export function compiledTable(rows: readonly CompiledFamily[]): string {
  const column = ({ device, backend }: CompiledFamily) =>
    device + (backend === "dawn" ? " (Dawn)" : "");
  const columns = [...new Set(rows.map(column))];
  const families = [...new Set(rows.map(({ family }) => family))].sort();
  const cell = (row: CompiledFamily | undefined) =>
    row === undefined ? "–" : [
      row.registers.join("/"),
      row.occupancy?.[0] ?? "–",
      `${row.spilling} of ${row.kernels}` + (row.mostSpills > 0 ? ` (${row.mostSpills})` : ""),
    ].join(", ");
  const of = (name: string, family: string) =>
    rows.find((row) => column(row) === name && row.family === family);
  return tableOf(
    ["device<", ...families],
    columns.map((name) => [name, ...families.map((family) => cell(of(name, family)))]),
  );
}

const FILE = new URL("gpus_compiled.jsonl", import.meta.url);

export const COMPILED_TABLES = {
  gpus_compiled: () =>
    compiledTable(
      Deno.readTextFileSync(FILE).trim().split("\n").map((line) => JSON.parse(line)),
    ),
};

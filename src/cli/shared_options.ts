/** Options that several commands have, and the headings of help. */
import { InputTypeError } from "../errors.ts";
import { type Backend, BACKEND_CHOICES, BACKENDS } from "../gpu/provider.ts";
import type { TensorSource } from "../npy/mod.ts";
import { oneOf, wholeNumber } from "./values.ts";

/** Headings of the options in the help of commands, in the order in which most commands show them. */
export const GROUPS = {
  common: "Common options:",
  problem: "Problem:",
  data: "Data:",
  types: "Number types and scaling:",
  measure: "Checking and timing:",
  table: "Tables and records:",
  suite: "With --suite:",
  model: "With --model:",
  fuzz: "With --run, --worker or --kernel:",
  files: "Files:",
  device: "Device:",
  kernel: "Choice of kernel:",
  general: "General:",
} as const;

/** Groups the items of a help: those of {@linkcode GROUPS} in their order, others before them. */
export function orderedGroups<T>(
  _all: T[],
  visible: T[],
  groupOf: (item: T) => string,
): Map<string, T[]> {
  const order: string[] = Object.values(GROUPS);
  const groups = [...Map.groupBy(visible, groupOf)];
  return new Map(groups.toSorted(([one], [other]) => order.indexOf(one) - order.indexOf(other)));
}

/** Which GPU a command computes on. */
export interface GpuChoice {
  readonly backend: Backend;
  /** Its index or a part of its name; the backend's own choice where absent. */
  readonly adapter?: string | undefined;
}

/** The same where the backend may be left open. */
export type AnyGpuChoice = GpuChoice | {
  readonly backend: Backend | "auto";
  readonly adapter?: string | undefined;
  /** Whether matrix units multiply what is asked, which `auto` then looks for. */
  readonly onUnits: boolean;
};

const BACKEND_HELP = "WebGPU implementation: wgpu (Deno's), or dawn (Chromium's)";

/** What several commands take, as `option()` has it. */
export const OPTION = {
  backend: ["--backend <name>", BACKEND_HELP, oneOf(BACKENDS), "wgpu"],
  anyBackend: [
    "--backend <name>",
    BACKEND_HELP +
    "; auto: dawn for f16 and int8 where it is installed and has matrix units, else wgpu",
    oneOf(BACKEND_CHOICES),
    "wgpu",
  ],
  adapter: [
    "--adapter <index|name>",
    "which GPU: its index, or part of its name, in wgconv devices",
  ],
  device: [
    "--device <name>",
    "gpu, or cpu: compute with the FP64 reference, without a driver",
    oneOf(["gpu", "cpu"] as const),
    "gpu",
  ],
  /** Types that bits are taken as. */
  as: [
    "--as <name>",
    "bf16: read uint16, int16 and V2 files as bits of bfloat16",
    oneOf(["bf16"] as const),
  ],
  seed: ["--seed <n>", "seed of generated data and of samples", wholeNumber(0), 1],
  force: ["--force", "overwrite existing files and members of archives, also inputs"],
  json: ["--json", "print JSON"],
} as const;

/** @throws {TypeError} where `--as` is given and none of the files that are opened is of such bits. */
export function refuseUnusedAs(
  doing: string,
  as: "bf16" | undefined,
  files: readonly (Pick<TensorSource, "path" | "header" | "dtype"> | undefined)[],
): void {
  const there = files.filter((file) => file !== undefined);
  if (as === undefined || there.some((file) => file.dtype === as)) return;
  const types = [...new Set(there.map((file) => `${file.path} is ${file.dtype}`))].join(", ");
  throw new InputTypeError(
    `${doing}: --as ${as} reads files of uint16, int16 and V2, ${types || "there are none"}`,
  );
}

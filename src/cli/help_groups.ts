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

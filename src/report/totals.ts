import { dtypeText } from "./case_key.ts";
import { isNetwork, timesOf, withoutImageGradients } from "./network.ts";
import type { ReadCase, ReadTime } from "./record_schema.ts";
import { formatGflops, formatMilliseconds } from "./format.ts";

export type TotalledCase =
  & Pick<ReadCase, "problem" | "op" | "layout" | "algorithm" | "requested" | "policy" | "tile">
  & Pick<ReadCase, "cache" | "flops" | "dtype" | "out_dtype">
  & Partial<Pick<ReadCase, "provider">>
  & { readonly time_ms: Pick<ReadTime, "median"> | null };

/**
 * Where names say how often a network has a layer (`res2a*3`): the whole network's time and rate, a line for each
 * way it was run, and below it a line a network where names are of several (`resnet18_conv2*4`). Backward-data of an image,
 * which nobody computes, is left out. None where no name says how often.
 */
export function networkTotals(records: readonly TotalledCase[]): string[] {
  const timed = withoutImageGradients(records).filter((record) =>
    record.time_ms !== null &&
    (record.op !== "gemm" || nameOf(record) !== undefined)
  );
  if (!isNetwork(timed)) return [];
  const ways = Map.groupBy(timed, (record) => {
    const { op, layout, requested, algorithm, policy = "", tile = "", cache = "" } = record;
    const provider = record.provider === "wgconv" ? "" : record.provider;
    // A product's layout is its transposes.
    const laid = op === "gemm" ? "" : layout;
    return [provider, op, dtypeText(record), laid, requested ?? algorithm, policy, tile, cache]
      .filter(Boolean)
      .join(" ");
  });
  return [...ways].flatMap(([way, cases]) => {
    const networks = Map.groupBy(cases, networkOf);
    const several = networks.size > 1 && !networks.has(undefined);
    return [
      `total ${way}: ${totalText(cases)}`,
      ...(several ? [...networks].map(([name, own]) => `  ${name}: ${totalText(own)}`) : []),
    ];
  });
}

function totalText(cases: readonly TotalledCase[]): string {
  const sum = (figure: (record: TotalledCase) => number) =>
    cases.reduce((total, record) => total + timesOf(record) * figure(record), 0);
  const ms = sum(({ time_ms }) => time_ms!.median);
  const rate = formatGflops(sum(({ flops }) => flops ?? 0) / ms / 1e6);
  const layers = sum(() => 1);
  return `${formatMilliseconds(ms)} for ${layers} ${layers === 1 ? "layer" : "layers"}, ${rate}`;
}

function nameOf({ problem }: TotalledCase): string | undefined {
  return /n"([^"]*)"$/.exec(problem)?.[1];
}

/** `resnet18` of `resnet18_conv2*4`. */
function networkOf(record: TotalledCase): string | undefined {
  return /^([^_]+)_./.exec(nameOf(record) ?? "")?.[1];
}

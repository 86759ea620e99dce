import { withOneSpelling } from "./charts/points.ts";
import { caseFigures } from "./case_figures.ts";
import {
  canonicalProblem,
  caseLabel,
  caseProblem,
  dtypeText,
  latestCases,
  mathText,
} from "./case_key.ts";
import type { Ceilings } from "./charts/roofline.ts";
import { counted, formatMilliseconds, formatShare } from "./format.ts";
import type { ReadCase } from "./record_schema.ts";
import { makerOf, usualMakers } from "./speedups.ts";
import type { Column } from "./table.ts";
import { occurrences } from "../problem/occurrences.ts";

/** A network as a table, the layers that take most first. */
export function networkTable({ layers, peers }: Network): {
  readonly columns: Column[];
  readonly rows: string[][];
} {
  const right = "right" as const;
  const ratio = ({ ms, peers }: NetworkLayer, maker: string) => {
    const theirs = peers.get(maker);
    return theirs === undefined
      ? ["-", "-"]
      : [formatMilliseconds(theirs), (theirs / ms).toFixed(2)];
  };
  return {
    columns: [
      { title: "layer" },
      { title: "op" },
      { title: "times", align: right },
      { title: "time", align: right },
      { title: "share", align: right },
      { title: "of roofline", align: right },
      ...peers.flatMap(({ maker }) => [
        { title: maker, align: right },
        { title: "speed-up", align: right },
      ]),
      { title: "precision", spare: 2 },
      { title: "algorithm", spare: 1 },
    ],
    rows: layers.toSorted((one, other) => other.ms - one.ms).map((layer) => [
      layer.label,
      layer.record.op,
      String(layer.count),
      formatMilliseconds(layer.ms),
      formatShare(layer.share),
      layer.roofline === null ? "-" : formatShare(layer.roofline),
      ...peers.flatMap(({ maker }) => ratio(layer, maker)),
      dtypeText(layer.record) + mathText(layer.record),
      layer.record.algorithm || "-",
    ]),
  };
}

/** The network's time in all, by operation, and beside each other maker's. */
export function networkLines({ title, maker, ms, layers, operations, peers }: Network): string[] {
  const count = sumOf(layers, ({ count }) => count);
  const of = title === "" ? "" : ` (${title})`;
  return [
    `network ${maker}${of}: ${formatMilliseconds(ms)} for ${counted(count, "layer")}`,
    ...operations.map(([op, own, layers]) =>
      `  ${op}: ${formatMilliseconds(own)}, ${formatShare(own / ms)}, ${counted(layers, "layer")}`
    ),
    ...peers.map((peer) =>
      `  ${peer.maker}: ${formatMilliseconds(peer.ms)} for ${
        peer.layers === count ? "the same" : `${peer.layers} of ${counted(count, "layer")}`
      }, ${maker} ${formatMilliseconds(peer.ours)}: ${
        (peer.ms / peer.ours).toFixed(2)
      } times as fast`
    ),
  ];
}

/** More slices than this are no picture. */
const MOST_SLICES = 100_000;

/** Networks as a trace of Chrome and Perfetto: the layers one after the other, each maker in a row of its own. */
export function networkTrace(networks: readonly Network[]): string {
  const events = networks.flatMap(({ title, maker, layers, peers }, process) => {
    const pid = process + 1;
    const rows = [
      { name: maker, timeOf: (layer: NetworkLayer) => layer.ms },
      ...peers.map((peer) => ({
        name: peer.maker,
        timeOf: (layer: NetworkLayer) => layer.peers.get(peer.maker) ?? 0,
      })),
    ];
    const named = (name: string, tid: number, value: string) => (
      { ph: "M", name, pid, tid, args: { name: value } }
    );
    return [
      named("process_name", 0, title || "network"),
      ...rows.flatMap(({ name, timeOf }, row) => [
        named("thread_name", row + 1, name),
        ...slices(layers, timeOf).map((slice) => ({ ...slice, pid, tid: row + 1 })),
      ]),
    ];
  });
  return `${JSON.stringify({ displayTimeUnit: "ns", traceEvents: events })}\n`;
}

/** A slice for each layer, in microseconds; layers of one size follow each other. */
function slices(layers: readonly NetworkLayer[], timeOf: (layer: NetworkLayer) => number) {
  let now = 0;
  const single = sumOf(layers, ({ count }) => count) <= MOST_SLICES;
  return layers.flatMap((layer) => {
    const { label, count, share, record } = layer;
    const times = single ? count : 1;
    const duration = 1000 * timeOf(layer) / times;
    if (duration === 0) return [];
    return Array.from({ length: times }, () => {
      const begin = now;
      now += duration;
      return {
        ph: "X",
        name: label,
        cat: record.op,
        ts: begin,
        dur: duration,
        args: {
          problem: record.problem,
          algorithm: record.algorithm,
          kernel: record.kernel,
          precision: dtypeText(record) + mathText(record),
          share: formatShare(share),
        },
      };
    });
  });
}

/** A layer of a network as one maker ran it. */
export interface NetworkLayer {
  /** Its name without the network's and its count. */
  readonly label: string;
  readonly record: ReadCase;
  /** How often the network has it. */
  readonly count: number;
  /** Milliseconds of all of them. */
  readonly ms: number;
  /** Of the network's time. */
  readonly share: number;
  /** The least time that the device's ceilings allow, over the time; `null` where they are not known. */
  readonly roofline: number | null;
  /** Milliseconds of other makers, by their names. */
  readonly peers: ReadonlyMap<string, number>;
}

/** Where a network's time goes. */
export interface Network {
  /** Its name, its device, and the element type where layers ran in several. */
  readonly title: string;
  readonly maker: string;
  readonly ms: number;
  /** In the order of the records. */
  readonly layers: readonly NetworkLayer[];
  /** Milliseconds by operation, the most first. */
  readonly operations: readonly (readonly [op: string, ms: number, layers: number])[];
  /** Of each other maker: its time and ours of the layers that both have. */
  readonly peers: readonly PeerTotal[];
}

/** A network's time by another maker, and by ours, over the layers that both have. */
interface PeerTotal {
  readonly maker: string;
  readonly ms: number;
  readonly ours: number;
  readonly layers: number;
}

/** Channels of an image, or of sound. */
const IMAGE_CHANNELS = 4;

/**
 * Records without gradients of a network's own input, which nobody computes: of layers of few channels in one group that run forward,
 * too. Alone such a gradient is a transposed layer.
 */
export function withoutImageGradients<T extends Pick<ReadCase, "op" | "problem">>(
  records: readonly T[],
): T[] {
  const forward = new Set(records.flatMap(({ op, problem }) => op === "fwd" ? [problem] : []));
  return records.filter((record) => {
    if (record.op !== "bwd-data" || !forward.has(record.problem)) return true;
    const problem = caseProblem(record);
    return problem === null || !("conv" in problem) || problem.conv.groups !== 1 ||
      problem.conv.inChannels > IMAGE_CHANNELS;
  });
}

/** How often a network has a case's layer, by its name. */
export function timesOf({ problem }: Pick<ReadCase, "problem">): number {
  return occurrences(/n"([^"]*)"$/.exec(problem)?.[1]);
}

/** Whether names say how often a network has its layers. */
export function isNetwork(cases: readonly Pick<ReadCase, "problem">[]): boolean {
  return cases.some((record) => timesOf(record) > 1);
}

/** `resnet18` of a case whose name is `resnet18_conv2*4`. */
function networkOf(record: ReadCase): string {
  const name = /n"([^"]*)"$/.exec(record.problem)?.[1] ?? "";
  return /^([^_]+)_./.exec(name)?.[1] ?? "";
}

/**
 * Networks of records: one a name and device, and an element type where layers ran in several. Each layer is the fastest right record
 * of the first maker, and beside it those of the others.
 *
 * @param ceilings What a case's device reaches at most.
 */
export function networksOf(
  cases: readonly ReadCase[],
  ceilings: (record: ReadCase) => Ceilings,
): Network[] {
  // Layers of two networks may have the same size: the later record of a case counts within each.
  const latest = [...Map.groupBy(withOneSpelling(cases), ({ problem }) => problem).values()]
    .flatMap((same) => latestCases(same).cases);
  const timed = withoutImageGradients(latest).filter((record) => uncounted(record) === undefined);
  const [maker, ...others] = usualMakers(timed);
  if (maker === undefined) return [];
  const own = timed.filter((record) => makerOf(record) === maker);
  const each = Map.groupBy(own, (record) => JSON.stringify([networkOf(record), record.device]));
  return [...each.values()].flatMap((ofDevice) => {
    const { device } = ofDevice[0]!;
    const types = Map.groupBy(ofDevice, dtypeText);
    const layers = new Set(ofDevice.map(layerKey)).size;
    const several = [...types.values()].reduce((sum, list) =>
      sum + new Set(list.map(layerKey)).size, 0) > layers;
    const parts = several ? [...types] : [["", ofDevice] as const];
    return parts.map(([type, part]) =>
      network(part, {
        title: [networkOf(ofDevice[0]!), device, type].filter(Boolean).join(", "),
        maker,
        ceilings,
        peers: others.map((other) => ({
          maker: other,
          cases: timed.filter((record) =>
            makerOf(record) === other && ["", device].includes(record.device)
          ),
        })),
      })
    );
  });
}

/** Layers that no record counts of, each with the reason: `conv2 fwd: its result is wrong`. */
export function uncountedLayers(cases: readonly ReadCase[]): string[] {
  const layers = Map.groupBy(withoutImageGradients(latestCases(cases).cases), layerKey);
  return [...layers.values()].flatMap((records) =>
    records.some((record) => uncounted(record) === undefined)
      ? []
      : [`${caseLabel(records[0]!)} ${records[0]!.op}: ${uncounted(records[0]!)}`]
  );
}

/** Why a network's table leaves a record out. */
function uncounted(record: Pick<ReadCase, "time_ms" | "verdict">): string | undefined {
  if (record.verdict === "fail") return "its result is wrong";
  return (record.time_ms?.median ?? 0) > 0 ? undefined : "it has no time";
}

/** What is one layer: its name too, since networks in one file may have layers of the same size. */
function layerKey({ problem, op }: ReadCase): string {
  return `${op} ${problem}`;
}

/** What another maker's record of the layer has in common. */
function sizesKey(record: ReadCase): string {
  return `${record.op} ${canonicalProblem(record)} ${dtypeText(record)}`;
}

function fastestBy(cases: readonly ReadCase[], key: (record: ReadCase) => string) {
  const best = new Map<string, ReadCase>();
  for (const record of cases) {
    const known = best.get(key(record));
    if (known !== undefined && known.time_ms!.median <= record.time_ms!.median) continue;
    best.set(key(record), record);
  }
  return best;
}

function network(
  cases: readonly ReadCase[],
  { title, maker, ceilings, peers }: Pick<Network, "title" | "maker"> & {
    readonly ceilings: (record: ReadCase) => Ceilings;
    readonly peers: readonly { readonly maker: string; readonly cases: readonly ReadCase[] }[];
  },
): Network {
  const best = [...fastestBy(cases, layerKey).values()];
  const timeOf = (record: ReadCase) => timesOf(record) * record.time_ms!.median;
  const ms = best.reduce((sum, record) => sum + timeOf(record), 0);
  const theirs = peers.map(({ maker, cases }) => [maker, fastestBy(cases, sizesKey)] as const);
  const layers = best.map((record): NetworkLayer => ({
    label: caseLabel(record).replace(/^[^_]+_(?=.)/, "").replace(/\*\d+$/, ""),
    record,
    count: timesOf(record),
    ms: timeOf(record),
    share: timeOf(record) / ms,
    roofline: rooflineShare(record, ceilings(record)),
    peers: new Map(theirs.flatMap(([maker, known]) => {
      const found = known.get(sizesKey(record));
      return found === undefined ? [] : [[maker, timesOf(record) * found.time_ms!.median]];
    })),
  }));
  const operations = [...Map.groupBy(layers, ({ record: { op } }) => op)]
    .map(([op, own]) => [op, sumOf(own, ({ ms }) => ms), sumOf(own, ({ count }) => count)] as const)
    .toSorted(([, one], [, other]) => other - one);
  return {
    title,
    maker,
    ms,
    layers,
    operations,
    peers: peers.flatMap(({ maker }) => {
      const shared = layers.filter(({ peers }) => peers.has(maker));
      return shared.length === 0 ? [] : [{
        maker,
        ms: sumOf(shared, ({ peers }) => peers.get(maker)!),
        ours: sumOf(shared, ({ ms }) => ms),
        layers: sumOf(shared, ({ count }) => count),
      }];
    }),
  };
}

/** The sum of a figure. */
export function sumOf<T>(values: readonly T[], figure: (value: T) => number): number {
  return values.reduce((sum, value) => sum + figure(value), 0);
}

/** The time that flops and bytes take at the ceilings at least, over the time. */
function rooflineShare(record: ReadCase, { peak, bandwidth }: Ceilings): number | null {
  const { flops, bytes } = caseFigures(record);
  if (peak === undefined || bandwidth === undefined || flops === null || bytes === null) {
    return null;
  }
  return Math.max(flops / peak, bytes / bandwidth) / 1e6 / record.time_ms!.median;
}

import { dtypeText, mathText } from "./case_key.ts";
import { formatMilliseconds, formatShare } from "./format.ts";
import { type Network, type NetworkLayer, sumOf } from "./network.ts";
import type { Column } from "./table.ts";

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
    `network ${maker}${of}: ${formatMilliseconds(ms)} for ${layersText(count)}`,
    ...operations.map(([op, own, layers]) =>
      `  ${op}: ${formatMilliseconds(own)}, ${formatShare(own / ms)}, ${layersText(layers)}`
    ),
    ...peers.map((peer) =>
      `  ${peer.maker}: ${formatMilliseconds(peer.ms)} for ${
        peer.layers === count ? "the same" : `${peer.layers} of ${layersText(count)}`
      }, ${maker} ${formatMilliseconds(peer.ours)}: ${
        (peer.ms / peer.ours).toFixed(2)
      } times as fast`
    ),
  ];
}

function layersText(count: number): string {
  return count === 1 ? "1 layer" : `${count} layers`;
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

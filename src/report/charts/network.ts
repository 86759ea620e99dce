import { shorten } from "../../printable.ts";
import { formatMilliseconds } from "../format.ts";
import type { Network, NetworkLayer } from "../network.ts";
import { type Chart, PALETTE } from "./theme.ts";

/** Segments of at least this share of the longest bar carry their name. */
const NAMED = 0.07;
const BAR_HEIGHT = 56;
const WIDTH = 1150;

/** Colours of operations, in the order in which a training step runs them. */
export const OPERATION_COLOURS: Readonly<Record<string, string>> = {
  "fwd": PALETTE[0]!,
  "bwd-data": PALETTE[1]!,
  "bwd-filter": PALETTE[2]!,
  "gemm": PALETTE[6]!,
};

/** A network as a bar of its layers in their order, and one of each other maker below it. */
export function networkChart({ title, maker, ms, layers, peers }: Network): Chart {
  const bars = [
    { name: maker, timeOf: (layer: NetworkLayer) => layer.ms, ms },
    ...peers.map((peer) => ({
      name: peer.maker,
      timeOf: (layer: NetworkLayer) => layer.peers.get(peer.maker) ?? 0,
      ms: peer.ms,
    })),
  ];
  const longest = Math.max(...bars.map(({ ms }) => ms));
  const values = bars.flatMap(({ name, timeOf }) => {
    let end = 0;
    return layers.map((layer) => {
      const begin = end;
      end += timeOf(layer);
      const wide = (end - begin) / longest >= NAMED;
      return {
        maker: name,
        begin,
        end,
        middle: (begin + end) / 2,
        op: layer.record.op,
        label: wide ? shorten(layer.label, 14) : "",
      };
    }).filter(({ begin, end }) => end > begin);
  });
  const ops = [...new Set(layers.map(({ record }) => record.op))];
  const y = {
    field: "maker",
    type: "nominal" as const,
    title: null,
    sort: bars.map(({ name }) => name),
    axis: { ticks: false, domain: false },
  };
  return {
    title: [`Time by layer`, ...(title === "" ? [] : [title])].join(", "),
    caption: `${bars.map(({ name, ms }) => `${name} ${formatMilliseconds(ms)}`).join(", ")}. ` +
      "A segment is a layer, times how often the network has it.",
    spec: {
      width: WIDTH,
      autosize: { type: "fit-x", contains: "padding" },
      height: { step: BAR_HEIGHT },
      data: { values },
      encoding: { y },
      layer: [
        {
          mark: { type: "bar", stroke: "#ffffff", strokeWidth: 0.6, height: { band: 0.7 } },
          encoding: {
            x: { field: "begin", type: "quantitative", title: "ms", scale: { nice: false } },
            x2: { field: "end" },
            color: {
              field: "op",
              type: "nominal",
              scale: { domain: ops, range: ops.map((op) => OPERATION_COLOURS[op] ?? PALETTE[7]!) },
              legend: null,
            },
          },
        },
        {
          transform: [{ filter: "datum.label !== ''" }],
          mark: { type: "text", fontSize: 10, color: "currentColor" },
          encoding: {
            x: { field: "middle", type: "quantitative" },
            text: { field: "label" },
          },
        },
      ],
    },
  };
}

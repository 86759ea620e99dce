import { byFacet, distinct, type Point } from "./points.ts";
import type { Chart } from "./theme.ts";

/** A cell of the map. */
interface Cell {
  readonly layer: string;
  readonly batch: string;
  readonly ratio: number;
  readonly text: string;
}

/**
 * Each provider's throughput over each baseline's, layers by batch: the best of each. A chart a facet, provider
 * and baseline; none where they have no case in common.
 */
export function speedupCharts(points: readonly Point[], baselines: readonly string[]): Chart[] {
  const others = distinct(points.map(({ record }) => record.provider))
    .filter((provider) => !baselines.includes(provider));
  return baselines.flatMap((baseline) =>
    facetsWithBaseline(points, baseline).flatMap(([facet, all]) =>
      others.flatMap((provider) => {
        const cells = cellsOf(all, provider, baseline);
        return cells.length === 0 ? [] : [heatMap(facet, provider, baseline, cells)];
      })
    )
  );
}

/** What speed-ups are over unless asked for: the peers of wgconv, or else the first of several providers. */
export function usualBaselines(points: readonly Point[]): string[] {
  const providers = distinct(points.map(({ record }) => record.provider));
  const peers = providers.filter((provider) => !provider.startsWith("wgconv"));
  if (peers.length > 0 && peers.length < providers.length) return peers;
  return providers.length > 1 ? [providers[0]!] : [];
}

/** Facets, those of a device with the baseline's records that do not name one. */
function facetsWithBaseline(points: readonly Point[], baseline: string): [string, Point[]][] {
  const ofNoDevice = points.filter(({ record }) =>
    record.provider === baseline && record.device === ""
  );
  return byFacet(points).map(([facet, own]) => {
    const borrowed = ofNoDevice.filter((point) =>
      point.facet !== facet && facet.startsWith(`${point.facet},`)
    );
    return [facet, [...own, ...borrowed]];
  });
}

function cellsOf(points: readonly Point[], provider: string, baseline: string): Cell[] {
  const groups = Map.groupBy(points, ({ layer, batch }) => JSON.stringify([layer, batch]));
  return [...groups.values()].flatMap((group) => {
    const ours = best(group, provider);
    const theirs = best(group, baseline);
    if (ours === null || theirs === null) return [];
    const ratio = ours / theirs;
    const { layer, batch } = group[0]!;
    return [{ layer, batch: String(batch), ratio, text: ratio.toFixed(2) }];
  });
}

/** Best throughput of a provider's right records. */
function best(points: readonly Point[], provider: string): number | null {
  const rates = points.flatMap(({ record, right, gflops }) =>
    record.provider === provider && right && gflops !== null ? [gflops] : []
  );
  return rates.length === 0 ? null : Math.max(...rates);
}

function heatMap(
  facet: string,
  provider: string,
  baseline: string,
  cells: readonly Cell[],
): Chart {
  const layers = distinct(cells.map(({ layer }) => layer));
  const batches = distinct(cells.map(({ batch }) => batch)).sort((a, b) => Number(a) - Number(b));
  const geomean = Math.exp(
    cells.reduce((sum, { ratio }) => sum + Math.log(ratio), 0) / cells.length,
  );
  const spec: Chart["spec"] = {
    data: { values: [...cells] },
    width: batches.length * 56,
    height: layers.length * 28,
    encoding: {
      x: {
        field: "batch",
        type: "ordinal",
        sort: batches,
        title: "batch",
        axis: { labelAngle: 0, domain: false, ticks: false },
      },
      y: {
        field: "layer",
        type: "nominal",
        sort: layers,
        title: null,
        axis: { domain: false, ticks: false, labelLimit: 260 },
      },
    },
    layer: [
      {
        mark: { type: "rect", stroke: null },
        encoding: {
          color: {
            field: "ratio",
            type: "quantitative",
            scale: {
              type: "log",
              domain: [0.4, 0.7, 1, 1.4, 2.5],
              range: ["#b35806", "#f1a340", "#f7f7f7", "#80b4d8", "#2166ac"],
              clamp: true,
            },
            legend: null,
          },
        },
      },
      {
        mark: { type: "text", fontSize: 12 },
        encoding: {
          text: { field: "text" },
          color: {
            condition: { test: "datum.ratio < 0.5 || datum.ratio > 2", value: "#ffffff" },
            value: "#111111",
          },
        },
      },
    ],
  };
  return {
    title: `${provider} over ${baseline}, ${facet}`,
    caption: `Throughput of the best of each; above 1 ${provider} is faster. ` +
      `Geometric mean ${geomean.toFixed(2)}.`,
    spec,
  };
}

/** What `bench/half_rivals.ts` found, in words. */

import type { Line, WayLine } from "./half_ways.ts";

/** Prints what was found: where f16 is slower than f32, where another way is faster, and where one backend's f32 is. */
export function summarize(lines: readonly Line[], backend: string): void {
  const timed = lines.map((line) => {
    const ran = line.ways.filter((way): way is WayLine & { ms: number } =>
      typeof way.ms === "number"
    );
    const least = (ways: typeof ran) =>
      ways.reduce<typeof ran[number] | undefined>((a, b) => a && a.ms <= b.ms ? a : b, undefined);
    const halves = ran.filter(({ dtype }) => dtype === "f16");
    return {
      line,
      auto: halves.find(({ names }) => names.includes("auto")),
      best: least(halves),
      whole: least(ran.filter(({ dtype }) => dtype === "f32")),
      pair: ["f32 threads", "f32 wgpu"].map((name) =>
        ran.find(({ names }) => names.includes(name))
      ),
    };
  }).flatMap(({ auto, best, whole, ...one }) =>
    auto && best && whole
      ? [{ ...one, auto, best, whole, ratio: whole.ms / auto.ms, missed: auto.ms / best.ms }]
      : []
  );
  const caseText = ({ name, op, layout }: Line) => `${name} ${op} ${layout}`;
  const wayText = ({ names, ms }: { names: readonly string[]; ms: number }) =>
    `${names[0]} ${(1e3 * ms).toFixed(1)}`;
  const mean = (of: readonly number[]) =>
    Math.exp(of.reduce((sum, one) => sum + Math.log(one), 0) / of.length).toFixed(3);
  console.log(`${lines.length} cases, ${timed.length} with f16 and f32 timed; times in us`);
  const slower = timed.filter(({ ratio }) => ratio < 0.97).toSorted((a, b) => a.ratio - b.ratio);
  console.log(`f16 below 0.97 of f32's speed: ${slower.length}; of the best f16, then what it is`);
  for (const { line, auto, best, whole, ratio } of slower) {
    console.log(
      `  ${ratio.toFixed(2)} ${(whole.ms / best.ms).toFixed(2)}  ${caseText(line)}: ${
        wayText(auto)
      }, ${wayText(whole)}, best ${wayText(best)}: ${best.kernel}`,
    );
  }
  const missed = timed.filter(({ missed }) => missed > 1.1).toSorted((a, b) => b.missed - a.missed);
  console.log(
    `f16's choice over the best f16: geometric mean ${
      mean(timed.map(({ missed }) => missed))
    }, above 1.1: ${missed.length}`,
  );
  for (const { line, auto, best, missed: by } of missed) {
    console.log(
      `  ${by.toFixed(2)}  ${caseText(line)}: ${wayText(auto)}, best ${
        wayText(best)
      }: ${best.kernel}, not ${auto.kernel}`,
    );
  }
  const same = timed.flatMap(({ line, pair: [dawn, wgpu] }) =>
    dawn && wgpu && dawn.key === wgpu.key ? [{ line, dawn, wgpu, ratio: dawn.ms / wgpu.ms }] : []
  ).toSorted((a, b) => b.ratio - a.ratio);
  console.log(
    `${backend}'s f32 over wgpu's, same plans: ${same.length}, geometric mean ${
      mean(same.map(({ ratio }) => ratio))
    }`,
  );
  for (const { line, dawn, wgpu, ratio } of same.filter(({ ratio }) => ratio > 1.08)) {
    console.log(
      `  ${ratio.toFixed(2)}  ${caseText(line)}: ${(1e3 * dawn.ms).toFixed(1)}, ${
        (1e3 * wgpu.ms).toFixed(1)
      }: ${dawn.kernel}`,
    );
  }
}

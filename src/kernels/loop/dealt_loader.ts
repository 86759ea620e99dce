import { lines } from "../lists.ts";
import { masked, zeroOf } from "../../elements/scalar.ts";
import {
  loadedTile,
  type LoadSchedule,
  scheduleLoads,
  sharesLines,
  tapReach,
  type TapRing,
  tapRingOf,
  tapRowOf,
  type TileAccess,
  type TileLoader,
  vectorSide,
} from "../loader.ts";
import type { OperandLoader } from "./mainloop.ts";
import type { FilledTile } from "./threads.ts";

/**
 * Whether a multiprocessor of an H200 runs a workgroup of so many threads on matrix units alone, for want of registers for two. Compilers
 * move its loads to what alone needs them, behind a branch or a barrier, where all wait for them: 1.02 to 1.03 times as fast is then a
 * load that every thread has, stored again where it is its first one, and 1.04 to 1.2 times loads that no compiler moves. Where
 * another workgroup multiplies meanwhile these are 0.95 to 0.97 and 0.9 to 0.98.
 */
export function runsAlone(threads: number): boolean {
  return threads >= 256;
}

/** A loader's text in the mainloop: the loads of its tile, dealt out to the threads. */
export function dealtLoader(
  loader: TileLoader,
  operand: "a" | "b",
  tile: FilledTile,
  extent: number,
  depth: number,
  threads: number,
): OperandLoader {
  const { access, state } = loader;
  const tiled = loadedTile(access, extent, depth);
  const banked = tile.banked === access.along && vectorSide(access) === access.along &&
    !sharesLines(access);
  const duplicateLoad = tapRowOf(access) !== undefined && runsAlone(threads);
  const schedule = scheduleLoads(access, ...tiled, threads, { banked, duplicateLoad });
  const ring = tapRingOf(access);
  const zero = zeroOf(access.value, access.vector === 1 ? 1 : 4);
  const registers = lines(schedule.loads.map((_, i) => [
    `  var ${operand}_load${i} = ${zero};`,
    loader.mask === "per-load" && `  var keep_${operand}_load${i} = false;`,
  ]));
  const fetch = fetchText(loader, schedule, operand);
  const store = storeText(loader, schedule, operand, tile, threads);
  return {
    places: placeText(loader, schedule, operand, ring),
    begin: state?.begin ?? "",
    registers,
    advance: state?.advance ?? "",
    rowBegin: state?.rowBegin ?? "",
    fetch,
    store,
    prologueSteps: ring === undefined ? 0 : tapReach(ring),
  };
}

function placeText(
  loader: TileLoader,
  schedule: LoadSchedule,
  operand: "a" | "b",
  ring: TapRing | undefined,
): string {
  const begin = operand === "a" ? "first_row" : "first_column";
  const first = ring === undefined ? begin : `${begin} / ${ring.taps}u`;
  return lines(
    schedule.places.map((place, slot) => [
      `  let ${operand}_place${slot} = ${place};`,
      loader.place(slot, `(${first} + ${operand}_place${slot})`),
    ]),
    schedule.depths.map((depth, slot) => `  let ${operand}_depth${slot} = ${depth};`),
  );
}

function fetchText(loader: TileLoader, schedule: LoadSchedule, operand: "a" | "b"): string {
  return lines(
    loader.state?.step,
    schedule.depths.map((_, slot) => {
      const within = schedule.inRuns?.[slot];
      return within === undefined
        ? loader.depth(slot, `${operand}_depth${slot}`)
        : loader.depth(slot, `(${within.row})`, within.run);
    }),
    schedule.places.map((_, slot) => loader.placeStep?.(slot)),
    schedule.loads.map(({ placeSlot, depthSlot }, i) =>
      loader.load(placeSlot, depthSlot, `${operand}_load${i}`)
    ),
  );
}

function storeText(
  loader: TileLoader,
  schedule: LoadSchedule,
  operand: "a" | "b",
  tile: FilledTile,
  threads: number,
): string {
  const kept = (placeSlot: number, loaded: string, guarded: boolean) =>
    loader.mask === "per-load"
      ? keptText(loader.access, loaded, runsAlone(threads) && !guarded)
      : loader.mask?.(placeSlot, loaded) ?? loaded;
  return lines(schedule.loads.map(({ placeSlot, depthSlot, guard }, i) => {
    const place = `${operand}_place${placeSlot}`;
    const depth = `${operand}_depth${depthSlot}`;
    const loaded = `${operand}_load${i}`;
    const stored = tile.store({
      place,
      depth,
      value: kept(placeSlot, loaded, guard !== undefined),
      vector: loader.access.vector,
      side: vectorSide(loader.access),
    });
    return guard === undefined ? stored : [`    if (${guard}) {`, stored, "    }"];
  }));
}

/**
 * A loaded value under the mask that is kept with it.
 *
 * @param hidden Whether compilers are not to see that nothing needs the load where the mask is false: a subgroup then shuffles its masks
 *   to where they are.
 */
function keptText(
  { value, vector }: Pick<TileAccess, "value" | "vector">,
  loaded: string,
  hidden: boolean,
): string {
  return hidden && value === "u32" && vector > 1
    ? `(${loaded} & vec4<u32>(subgroupShuffle(select(0u, 0xffffffffu, keep_${loaded}), lane)))`
    : masked(loaded, zeroOf(value, vector === 1 ? 1 : 4), [`keep_${loaded}`]);
}

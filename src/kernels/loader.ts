import type { Scalar } from "./scalar.ts";

/**
 * A loader brings one operand of a product from storage into its workgroup tile. It is text: the main
 * loop decides which thread loads what and asks the loader for the code of each part.
 *
 * A tile is `depth` rows of `extent` places (rows of A or columns of B). A thread's loads have *place
 * slots* (places fixed for the whole loop) and *depth slots* (depth coordinates that move each step).
 */
export interface TileLoader {
  /** Elements of one load, along {@linkcode along}. */
  readonly vector: 1 | 4;
  /** What loads give and the tile holds; f32 where absent. */
  readonly value?: Scalar;
  /** Along which side of the tile neighbouring threads, and a vector's elements, lie in memory. */
  readonly along: "place" | "depth";
  /** Declares the state of the loop, given `first_step`. */
  readonly begin: string;
  /** Statements of each step before its loads. */
  readonly step: string;
  /** Moves the state to the next step. */
  readonly advance: string;
  /** Declares what is fixed for a place slot; `place` is the index in the whole operand, `group` is in scope. */
  place(slot: number, place: string): string;
  /** Declares what a depth slot needs this step; `row` is the depth within the tile. */
  depth(slot: number, row: string): string;
  /** Declares what a place slot needs this step. */
  placeStep(slot: number): string;
  /** Assigns the value, one or four by `vector`, to `target`; zero where depth or padding lies outside. */
  load(placeSlot: number, depthSlot: number, target: string): string;
}

/** One load of a thread: `row` and `place` are its coordinates inside the tile. */
export interface TileLoad {
  readonly placeSlot: number;
  readonly depthSlot: number;
}

/** Which elements of a tile a thread loads; indexes are WGSL over the thread index `t`. */
export interface LoadSchedule {
  /** Place within the tile of each place slot. */
  readonly places: readonly string[];
  /** Depth within the tile of each depth slot. */
  readonly depths: readonly string[];
  readonly loads: readonly TileLoad[];
}

/**
 * Deals the tile out to the threads so that neighbours read neighbours in memory.
 *
 * @throws {Error} if the threads do not divide the tile evenly: a policy that no kernel can use.
 */
export function scheduleLoads(
  loader: Pick<TileLoader, "along" | "vector">,
  extent: number,
  depth: number,
  threads: number,
): LoadSchedule {
  const inner = (loader.along === "place" ? extent : depth) / loader.vector;
  const outer = loader.along === "place" ? depth : extent;
  const count = (inner * outer) / threads;
  const fits = Number.isInteger(inner) && Number.isInteger(count) &&
    (threads % inner === 0 || inner % threads === 0);
  if (!fits) {
    throw new Error(
      `Cannot deal a tile of ${extent} x ${depth} by ${loader.vector} to ${threads} threads`,
    );
  }
  const innerSlots = Math.max(1, inner / threads);
  const outerSlots = count / innerSlots;
  const scaled = (index: string) => loader.vector === 1 ? index : `(${index}) * ${loader.vector}u`;
  const inners = Array.from(
    { length: innerSlots },
    (_, slot) => scaled(innerSlots === 1 ? `t % ${inner}u` : `t + ${slot * threads}u`),
  );
  const step = innerSlots === 1 ? threads / inner : 1;
  const outers = Array.from(
    { length: outerSlots },
    (_, slot) => innerSlots === 1 ? `t / ${inner}u + ${slot * step}u` : `${slot}u`,
  );
  const byPlace = loader.along === "place";
  const loads: TileLoad[] = [];
  for (let out = 0; out < outerSlots; out++) {
    for (let inn = 0; inn < innerSlots; inn++) {
      loads.push(
        byPlace ? { placeSlot: inn, depthSlot: out } : { placeSlot: out, depthSlot: inn },
      );
    }
  }
  return byPlace
    ? { places: inners, depths: outers, loads }
    : { places: outers, depths: inners, loads };
}

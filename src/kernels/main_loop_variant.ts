import { InputRangeError } from "../errors.ts";

/**
 * The main loop's optimisations, each of which an ablation can take away or add. What is left out is as
 * the tuned kernel has it.
 */
export interface MainLoopVariant {
  /** Four elements a load from storage where they lie together; the loaders' `vector` says it. On. */
  readonly vectorLoads?: boolean;
  /** The next tile travels to registers while this one is multiplied. On. */
  readonly prefetch?: boolean;
  /** Two tiles of each operand in workgroup memory, and so one barrier a step. Off. */
  readonly doubleBuffer?: boolean;
  /** Tiles are arrays of arrays, so that an unrolled depth is a constant index. On. */
  readonly arrays2d?: boolean;
  /** The depth of a tile is text, not a loop. On. */
  readonly unroll?: boolean;
  /** The last step is a text of its own, where that pays: it loads nothing and multiplies no further than the depth goes. On. */
  readonly peel?: boolean;
  /** A tile of results a thread in registers; without it 1 x 4, and A is read one element at a time. On. */
  readonly microKernel?: boolean;
  /** f16 operands stay f16 in workgroup memory, and are converted as they are multiplied. Off. */
  readonly halfTile?: boolean;
  /** Products on matrix units, where the device has them for the operands. On. */
  readonly matrixUnits?: boolean;
  /** Implicit GEMM packs its filter first, also where it is predicted to be faster read as it lies. Off. */
  readonly packedFilter?: boolean;
  /** Of f16: what Winograd in separate passes transforms lies in half the bytes. Off. */
  readonly halfTransforms?: boolean;
  /** Rows of tiles that workgroups go down before they turn to the next column of tiles; 0, for all rows, where absent. */
  readonly raster?: number;
}

/** What is on or off. */
export type MainLoopSwitch = Exclude<keyof MainLoopVariant, "raster">;

/** Every choice of the main loop made. */
export type FullMainLoopVariant = Required<MainLoopVariant>;

/** The kernel as it is tuned. */
export const TUNED_VARIANT: FullMainLoopVariant = {
  vectorLoads: true,
  prefetch: true,
  doubleBuffer: false,
  arrays2d: true,
  unroll: true,
  peel: true,
  microKernel: true,
  halfTile: false,
  matrixUnits: true,
  packedFilter: false,
  halfTransforms: false,
  raster: 0,
};

/** A variant's optimisations by the names of the command line and of kernels. */
export const VARIANT_TRAITS: Readonly<Record<string, MainLoopSwitch>> = {
  "vector-load": "vectorLoads",
  "prefetch": "prefetch",
  "double-buffer": "doubleBuffer",
  "arrays-2d": "arrays2d",
  "unroll": "unroll",
  "peel": "peel",
  "micro-kernel": "microKernel",
  "half-tile": "halfTile",
  "matrix-units": "matrixUnits",
  "packed-filter": "packedFilter",
  "half-transforms": "halfTransforms",
};

/** Names of the optimisations that the tuned kernel has, or has not. */
export function variantNames(on: boolean): string[] {
  return Object.entries(VARIANT_TRAITS)
    .filter(([, key]) => TUNED_VARIANT[key] === on).map(([name]) => name);
}

/** The variant with what it leaves out as {@linkcode TUNED_VARIANT} has it. */
export function fullVariant(variant: MainLoopVariant = {}): FullMainLoopVariant {
  return { ...TUNED_VARIANT, ...variant };
}

/** Whether anything of the main loop itself is not as tuned. */
export function variesLoop({ halfTransforms: _, ...loop }: MainLoopVariant = {}): boolean {
  return Object.keys(loop).length > 0;
}

/** What differs from the tuned kernel, as it stands in names: `_no_prefetch_double_buffer`; empty where nothing does. */
export function variantTrait(variant: MainLoopVariant = {}): string {
  const full = fullVariant(variant);
  return Object.entries(VARIANT_TRAITS)
    .filter(([, key]) => full[key] !== TUNED_VARIANT[key])
    .map(([name, key]) => `${full[key] ? "" : "_no"}_${name.replaceAll("-", "_")}`)
    .join("") + rasterTrait(full.raster);
}

/** `_grouped8`: how tiles are ordered, as it stands in names; empty where that is as tuned. */
export function rasterTrait(raster = 0): string {
  return raster === 0 ? "" : `_grouped${raster}`;
}

/**
 * The variant without and with the named optimisations, and with an order of tiles; undefined where that is the tuned kernel.
 *
 * @throws {RangeError} for a name that is none, or that stands in both lists.
 */
export function parseVariant(
  without: readonly string[],
  withs: readonly string[],
  raster = 0,
): MainLoopVariant | undefined {
  const variant: { -readonly [key in MainLoopSwitch]?: boolean } = {};
  for (const [names, value] of [[without, false], [withs, true]] as const) {
    for (const name of names) {
      const key = Object.hasOwn(VARIANT_TRAITS, name) ? VARIANT_TRAITS[name] : undefined;
      if (key === undefined) {
        throw new InputRangeError(
          `Cannot vary the main loop: ${name} is none of ${Object.keys(VARIANT_TRAITS).join(", ")}`,
        );
      }
      if (variant[key] === !value) {
        throw new InputRangeError(`Cannot vary the main loop: ${name} is asked for and left out`);
      }
      variant[key] = value;
    }
  }
  const changed = Object.values(VARIANT_TRAITS)
    .filter((key) => variant[key] !== undefined && variant[key] !== TUNED_VARIANT[key]);
  return changed.length === 0 && raster === 0 ? undefined : {
    ...Object.fromEntries(changed.map((key) => [key, variant[key]])),
    ...(raster === 0 ? {} : { raster }),
  };
}

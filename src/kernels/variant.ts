import { InputRangeError } from "../errors.ts";

/** How the mainloop goes over its k-tiles. */
export interface LoopChoices {
  /** The next tile travels to registers while this one is multiplied. On. */
  readonly prefetch: boolean;
  /** Two tiles of each operand in workgroup memory, and so one barrier a step. Off. */
  readonly doubleBuffer: boolean;
  /** The depth of a tile is text, not a loop. On. */
  readonly unroll: boolean;
  /** Software pipelining, where that pays: the loop is long and threads make sums in f32. On. */
  readonly rotatedLoop: boolean;
  /** The last step has a text of its own, where that pays: it loads nothing and multiplies no further than the depth goes. On. */
  readonly peel: boolean;
  /** Products on matrix units, where the device has them for the operands. On. */
  readonly matrixUnits: boolean;
  /**
   * Swizzle: rows of tiles that workgroups go down before they turn to the next column of tiles; 0 for all rows. Where absent, `gemm`
   * takes what is planned, and all else takes all rows.
   */
  readonly raster: number;
}

/** How operands and sums lie, for algorithms that choose it. */
export interface OperandChoices {
  /** f16 operands stay f16 in workgroup memory, and are converted as they are multiplied. Off. */
  readonly halfTile: boolean;
  /** Implicit GEMM packs its filter first, also where it is predicted to be faster read as it lies. Off. */
  readonly packedFilter: boolean;
  /**
   * Implicit GEMM writes its images once with channels innermost, on matrix units in whole eights, also where it is predicted
   * to be faster without. Off.
   */
  readonly channelsLast: boolean;
  /**
   * Implicit GEMM on matrix units loads the places of a row of taps once for all of them, also where it is predicted to be faster
   * tap by tap. Off.
   */
  readonly tapRows: boolean;
}

/** Every choice of a kernel made. */
export type FullKernelVariant = LoopChoices & OperandChoices;

/** Choices that an ablation takes away or adds. What is left out is as the tuned kernel has it. */
export type KernelVariant = Partial<FullKernelVariant>;

/** What is on or off. */
export type KernelSwitch = Exclude<keyof KernelVariant, "raster">;

/** The kernel as it is tuned. */
export const TUNED_VARIANT: FullKernelVariant = {
  prefetch: true,
  doubleBuffer: false,
  unroll: true,
  rotatedLoop: true,
  peel: true,
  halfTile: false,
  matrixUnits: true,
  packedFilter: false,
  channelsLast: false,
  tapRows: false,
  raster: 0,
};

/** A variant's optimisations by the names of the command line and of kernels. */
export const VARIANT_TRAITS: Readonly<Record<string, KernelSwitch>> = {
  "prefetch": "prefetch",
  "double-buffer": "doubleBuffer",
  "unroll": "unroll",
  "rotated-loop": "rotatedLoop",
  "peel": "peel",
  "half-tile": "halfTile",
  "matrix-units": "matrixUnits",
  "packed-filter": "packedFilter",
  "channels-last": "channelsLast",
  "tap-rows": "tapRows",
};

/** Names of the optimisations that the tuned kernel has, or has not. */
export function variantNames(on: boolean): string[] {
  return Object.entries(VARIANT_TRAITS)
    .filter(([, key]) => TUNED_VARIANT[key] === on).map(([name]) => name);
}

/** The variant with what it leaves out as {@linkcode TUNED_VARIANT} has it. */
export function fullVariant(variant: KernelVariant = {}): FullKernelVariant {
  return { ...TUNED_VARIANT, ...variant };
}

/** How many tiles of each operand lie in workgroup memory, filled in turn. */
export function bufferCount({ doubleBuffer }: KernelVariant): number {
  return doubleBuffer ? 2 : 1;
}

/** Whether anything of the mainloop is asked for. */
export function variesLoop(variant: KernelVariant = {}): boolean {
  return Object.keys(TUNED_VARIANT).some((key) => Object.hasOwn(variant, key));
}

/** What differs from the tuned kernel, as it stands in names: `_no_prefetch_double_buffer`; empty where nothing does. */
export function variantTrait(variant: KernelVariant = {}): string {
  const full = fullVariant(variant);
  return Object.entries(VARIANT_TRAITS)
    .filter(([, key]) => full[key] !== TUNED_VARIANT[key])
    .map(([name, key]) => `${full[key] ? "" : "_no"}_${name.replaceAll("-", "_")}`)
    .join("") + rasterTrait(full.raster);
}

/** The same of what is asked for, as it stands in records: all rows (`_rows`) are what is planned for some, and asked for here. */
export function askedVariant(variant: KernelVariant): string {
  return variantTrait(variant) + (variant.raster === 0 ? "_rows" : "");
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
  raster?: number,
): KernelVariant | undefined {
  const variant: { -readonly [key in KernelSwitch]?: boolean } = {};
  for (const [names, value] of [[without, false], [withs, true]] as const) {
    for (const name of names) {
      const key = Object.hasOwn(VARIANT_TRAITS, name) ? VARIANT_TRAITS[name] : undefined;
      if (key === undefined) {
        throw new InputRangeError(
          `Cannot vary the main loop: ${name} is none of ${Object.keys(VARIANT_TRAITS).join(", ")}`,
        );
      }
      if (variant[key] === !value) {
        throw new InputRangeError(
          `Cannot vary the main loop: ${name} is asked for and left out`,
        );
      }
      variant[key] = value;
    }
  }
  const changed = Object.values(VARIANT_TRAITS)
    .filter((key) => variant[key] !== undefined && variant[key] !== TUNED_VARIANT[key]);
  return changed.length === 0 && raster === undefined ? undefined : {
    ...Object.fromEntries(changed.map((key) => [key, variant[key]])),
    ...(raster === undefined ? {} : { raster }),
  };
}

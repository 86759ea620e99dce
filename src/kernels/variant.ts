import { InputRangeError } from "../errors.ts";

/**
 * How the sums of a tile's slices lie in workgroup memory on their way to the output transform of fused Winograd. `threads`: each
 * thread's vectors of four columns as threads follow each other, without gaps. The others are openCNN's (section 4.1): `reference`,
 * of Yan et al., is rows of the result, padded, to which half of each warp's threads store four columns at once (Figure 5);
 * `sts64` is pairs of rows in halves of vectors, padded, to which all threads store two columns (Figure 7); `sts64-compact` turns
 * the places of each line in place of padding (Figure 8).
 */
export type OutputLayout = "threads" | "reference" | "sts64" | "sts64-compact";

/** How the mainloop goes over its k-tiles. */
export interface LoopChoices {
  /** Four elements a load from storage where they lie together; the loaders' `vector` says it. On. */
  readonly vectorLoads: boolean;
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
  /** A tile of results a thread in registers; without it 1 x 4, and A is read one element at a time. On. */
  readonly microKernel: boolean;
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
  /** Layout of the sums before fused Winograd's output transform. */
  readonly outputLayout: OutputLayout;
}

/** Every choice of a kernel made. */
export type FullKernelVariant = LoopChoices & OperandChoices;

/** Choices that an ablation takes away or adds. What is left out is as the tuned kernel has it. */
export type KernelVariant = Partial<FullKernelVariant>;

/** What is on or off. */
export type KernelSwitch = Exclude<keyof KernelVariant, "raster" | "outputLayout">;

/** The kernel as it is tuned. */
export const TUNED_VARIANT: FullKernelVariant = {
  vectorLoads: true,
  prefetch: true,
  doubleBuffer: false,
  unroll: true,
  rotatedLoop: true,
  peel: true,
  microKernel: true,
  halfTile: false,
  matrixUnits: true,
  packedFilter: false,
  channelsLast: false,
  tapRows: false,
  raster: 0,
  outputLayout: "threads",
};

/** A variant's optimisations by the names of the command line and of kernels. */
export const VARIANT_TRAITS: Readonly<Record<string, KernelSwitch>> = {
  "vector-load": "vectorLoads",
  "prefetch": "prefetch",
  "double-buffer": "doubleBuffer",
  "unroll": "unroll",
  "rotated-loop": "rotatedLoop",
  "peel": "peel",
  "micro-kernel": "microKernel",
  "half-tile": "halfTile",
  "matrix-units": "matrixUnits",
  "packed-filter": "packedFilter",
  "channels-last": "channelsLast",
  "tap-rows": "tapRows",
};

/** Layouts that the tuned kernel has not, by the names of the command line; at most one is asked for. */
export const OUTPUT_LAYOUTS: Readonly<Record<string, OutputLayout>> = Object.fromEntries(
  (["reference", "sts64", "sts64-compact"] as const)
    .map((layout) => [outputLayoutName(layout), layout]),
);

/** `output-sts64`: the layout's name on the command line. */
export function outputLayoutName(layout: OutputLayout): string {
  return `output-${layout}`;
}

/** Names of the optimisations that the tuned kernel has, or has not. */
export function variantNames(on: boolean): string[] {
  const switches = Object.entries(VARIANT_TRAITS)
    .filter(([, key]) => TUNED_VARIANT[key] === on).map(([name]) => name);
  return on ? switches : [...switches, ...Object.keys(OUTPUT_LAYOUTS)];
}

/** The variant with what it leaves out as {@linkcode TUNED_VARIANT} has it. */
export function fullVariant(variant: KernelVariant = {}): FullKernelVariant {
  return { ...TUNED_VARIANT, ...variant };
}

/** How many tiles of each operand lie in workgroup memory, filled in turn. */
export function bufferCount({ doubleBuffer }: KernelVariant): number {
  return doubleBuffer ? 2 : 1;
}

/** Whether anything of the mainloop itself is asked for. */
export function variesLoop(
  { outputLayout: _, ...loop }: KernelVariant = {},
): boolean {
  return Object.keys(loop).length > 0;
}

/** Whether a variant leaves products to matrix units, where there are any; some of it is of threads' products alone. */
export function allowsUnits(variant: KernelVariant = {}): boolean {
  const { matrixUnits, microKernel } = fullVariant(variant);
  return matrixUnits && microKernel;
}

/** What differs from the tuned kernel, as it stands in names: `_no_prefetch_double_buffer`; empty where nothing does. */
export function variantTrait(variant: KernelVariant = {}): string {
  const full = fullVariant(variant);
  return Object.entries(VARIANT_TRAITS)
    .filter(([, key]) => full[key] !== TUNED_VARIANT[key])
    .map(([name, key]) => `${full[key] ? "" : "_no"}_${name.replaceAll("-", "_")}`)
    .join("") +
    (full.outputLayout === TUNED_VARIANT.outputLayout
      ? ""
      : `_${outputLayoutName(full.outputLayout).replaceAll("-", "_")}`) +
    rasterTrait(full.raster);
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
 * @throws {RangeError} for a name that is none, or that stands in both lists, and for two layouts.
 */
export function parseVariant(
  without: readonly string[],
  withs: readonly string[],
  raster?: number,
): KernelVariant | undefined {
  const variant: { -readonly [key in KernelSwitch]?: boolean } = {};
  const asked: string[] = [];
  for (const [names, value] of [[without, false], [withs, true]] as const) {
    for (const name of names) {
      if (Object.hasOwn(OUTPUT_LAYOUTS, name)) {
        if (value && without.includes(name)) throw bothWays(name);
        if (value && !asked.includes(name)) asked.push(name);
        continue;
      }
      const key = Object.hasOwn(VARIANT_TRAITS, name) ? VARIANT_TRAITS[name] : undefined;
      if (key === undefined) {
        const names = [...Object.keys(VARIANT_TRAITS), ...Object.keys(OUTPUT_LAYOUTS)];
        throw new InputRangeError(
          `Cannot vary the main loop: ${name} is none of ${names.join(", ")}`,
        );
      }
      if (variant[key] === !value) throw bothWays(name);
      variant[key] = value;
    }
  }
  if (asked.length > 1) {
    throw new InputRangeError(
      `Cannot vary the main loop: ${asked.join(" and ")} are layouts of the same sums`,
    );
  }
  const changed = Object.values(VARIANT_TRAITS)
    .filter((key) => variant[key] !== undefined && variant[key] !== TUNED_VARIANT[key]);
  const outputLayout = asked[0] === undefined ? undefined : OUTPUT_LAYOUTS[asked[0]];
  return changed.length === 0 && raster === undefined && outputLayout === undefined ? undefined : {
    ...Object.fromEntries(changed.map((key) => [key, variant[key]])),
    ...(raster === undefined ? {} : { raster }),
    ...(outputLayout === undefined ? {} : { outputLayout }),
  };
}

function bothWays(name: string): InputRangeError {
  return new InputRangeError(`Cannot vary the main loop: ${name} is asked for and left out`);
}

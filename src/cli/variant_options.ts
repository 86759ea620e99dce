import { InputRangeError, InputTypeError } from "../errors.ts";
import { InvalidArgumentError } from "#cli-types";
import {
  type MainLoopVariant,
  outputLayoutName,
  parseVariant,
  variantNames,
} from "../algorithms/choices.ts";
import { meant } from "./other_words.ts";
import { reporter } from "./output.ts";

/** The main loop's optimisations that a product can be without, or with. */
export const VARIANT_HELP = {
  without: variantNames(true).join(", "),
  with: variantNames(false).join(", "),
} as const;

export const RASTER_HELP =
  "order of tiles: rows (all rows, then the next column), or grouped:N (N rows, all columns, then the " +
  "next N rows)";

/** Parses `rows` or `grouped:8`: rows of tiles that workgroups go down first, 0 for all. */
export function parseRaster(text: string): number {
  const rows = /^(?:rows|grouped:([1-9]\d{0,4}))$/i.exec(text.trim());
  if (rows === null) throw new InvalidArgumentError("expected rows, or grouped:8.");
  return Number(rows[1] ?? 0);
}

/**
 * The variant that `--without`, `--with` and `--raster` name; says on stderr which of the names change nothing.
 *
 * @throws {RangeError} for a name that is none, or that stands in both lists, and for two layouts.
 * @throws {TypeError} if f16 tiles are asked for where nothing is f16 and summed in f32, or layouts of sums before an output
 * transform of a product.
 */
export function variantOption(
  options: {
    readonly without?: readonly string[];
    readonly with?: readonly string[];
    readonly raster?: number;
  },
  { dtypes, accumulate = "f32", product = false }: {
    readonly dtypes: readonly string[];
    readonly accumulate?: string;
    readonly product?: boolean;
  },
): MainLoopVariant | undefined {
  const { without = [], with: withs = [], raster } = options;
  // Convolutions take all rows anyhow.
  const asked = product ? raster : raster || undefined;
  const [has, lacks] = [variantNames(true), variantNames(false)];
  const names = [...has, ...lacks];
  const unknown = [...without, ...withs].find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new InputRangeError(
      `Cannot vary the main loop: ${unknown} is none of ${names.join(", ")}${
        meant(unknown, names)
      }`,
    );
  }
  const variant = parseVariant(without, withs, asked);
  for (const name of without.filter((name) => !has.includes(name))) {
    reporter("stderr").line(
      `wgconv: note: --without ${name} changes nothing, it is off by default`,
    );
  }
  for (const name of withs.filter((name) => !lacks.includes(name))) {
    reporter("stderr").line(
      `wgconv: note: --with ${name} changes nothing, it is on by default`,
    );
  }
  if (product && variant?.outputLayout !== undefined) {
    throw new InputTypeError(
      `Cannot vary the main loop: ${outputLayoutName(variant.outputLayout)} is of convolutions`,
    );
  }
  if (variant?.halfTile && (!dtypes.includes("f16") || accumulate === "f16")) {
    throw new InputTypeError(
      "Cannot vary the main loop: half-tile is of f16 products that are summed in f32",
    );
  }
  return variant;
}

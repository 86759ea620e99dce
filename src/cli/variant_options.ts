import { InputTypeError } from "../errors.ts";
import { type MainLoopVariant, parseVariant, variantNames } from "../kernels/main_loop_variant.ts";
import { printer } from "./output.ts";

/** The main loop's optimisations that a convolution's product can be without, or with. */
export const VARIANT_HELP = {
  without: variantNames(true).join(", "),
  with: variantNames(false).filter((name) => name !== "half-tile").join(", "),
} as const;

/** The variant that `--without` and `--with` name; says on stderr which of the names change nothing. */
export function variantOption(
  options: { readonly without?: readonly string[]; readonly with?: readonly string[] },
): MainLoopVariant | undefined {
  const { without = [], with: withs = [] } = options;
  const variant = parseVariant(without, withs);
  const has = variantNames(true);
  for (const name of without.filter((name) => !has.includes(name))) {
    printer("stderr").line(
      `wgconv: note: --without ${name} changes nothing, the tuned kernel has none`,
    );
  }
  for (const name of withs.filter((name) => has.includes(name))) {
    printer("stderr").line(`wgconv: note: --with ${name} changes nothing, the tuned kernel has it`);
  }
  return variant;
}

/**
 * The same of convolutions, whose dtype is f32.
 *
 * @throws {TypeError} if f16 tiles are asked for.
 */
export function convVariantOption(
  options: Parameters<typeof variantOption>[0],
): MainLoopVariant | undefined {
  const variant = variantOption(options);
  if (variant?.halfTile) {
    throw new InputTypeError(
      "Cannot vary the main loop: half-tile is of f16 products of wgconv gemm",
    );
  }
  return variant;
}

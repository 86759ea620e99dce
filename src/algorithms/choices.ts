/** What users may choose of kernels: names of tile policies, and variants of the mainloop. */
import { isMatrixTile, MATRIX_POLICY_NAMES, TAP_POLICY_NAMES } from "../kernels/matrix_policies.ts";
import { findPolicy, GEMV, TILE_POLICIES } from "../kernels/policy.ts";

export {
  askedVariant,
  type KernelVariant,
  parseVariant,
  variantNames,
  variantTrait,
  variesLoop,
} from "../kernels/variant.ts";

/** Policies whose threads multiply by themselves. */
export const THREAD_POLICY_NAMES: readonly string[] = TILE_POLICIES.map(({ name }) => name);

/** Policies of tiles that matrix products take. */
export const TILE_POLICY_NAMES: readonly string[] = [
  ...THREAD_POLICY_NAMES,
  ...MATRIX_POLICY_NAMES,
];

/** Policies of matrix products; `gemv` has no tiles. */
export const PRODUCT_POLICY_NAMES: readonly string[] = [GEMV, ...TILE_POLICY_NAMES];

/** Policies of convolutions. */
export const CONV_POLICY_NAMES: readonly string[] = [...TILE_POLICY_NAMES, ...TAP_POLICY_NAMES];

/** Whether it is the sizes of a tile: `128x32x8_8x4`, or `128x256x32_64x64m` on matrix units. */
export function isTile(text: string): boolean {
  return isMatrixTile(text) || findPolicy(text) !== undefined;
}

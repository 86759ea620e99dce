import type { Kernel } from "../../../src/kernels/kernel.ts";
import { full } from "../../drivers/driver.ts";

/** The traits that a kernel's name carries; what stands behind the point is its text's hash. */
function traits({ name }: Kernel): string[] {
  return [...new Set(name.split(".")[0]!.split("_"))].sort();
}

/**
 * So many of the kernels that each pair of traits that some kernel has is that of one which is kept: what a text is made of
 * is what its traits choose, by one or two at a time. Shorter texts come first, since compilers take as long as texts are.
 * With WGCONV_TEST_MATRIX=full all of them.
 */
export function coverPairs(kernels: readonly Kernel[]): Kernel[] {
  if (full) return [...kernels];
  const seen = new Set<string>();
  return kernels.toSorted((a, b) => a.wgsl.length - b.wgsl.length).filter((kernel) => {
    const own = traits(kernel);
    const pairs = own.flatMap((one, i) => own.slice(i).map((other) => `${one} ${other}`));
    const kept = pairs.some((pair) => !seen.has(pair));
    pairs.forEach((pair) => seen.add(pair));
    return kept;
  });
}

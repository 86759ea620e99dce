/** WGSL of a sum of terms, halves first. */
export function treeSum(terms: readonly string[]): string {
  if (terms.length === 1) return terms[0]!;
  const half = Math.ceil(terms.length / 2);
  return `(${treeSum(terms.slice(0, half))} + ${treeSum(terms.slice(half))})`;
}

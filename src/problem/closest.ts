/**
 * The candidate that takes the fewest edits to become `word`, the first of equals; undefined where even that
 * takes more edits than a third of its letters, rounded, and of a single letter, which is as near to any other. Case alone is no edit.
 */
export function closest(word: string, candidates: readonly string[]): string | undefined {
  const alike = candidates.find((one) => one.toLowerCase() === word.toLowerCase());
  if (alike !== undefined || word.length < 2) return alike;
  let best: string | undefined;
  let fewest = Math.round(word.length / 3) + 1;
  for (const candidate of candidates) {
    const edits = editDistance(word, candidate);
    if (edits < fewest) [best, fewest] = [candidate, edits];
  }
  return best;
}

/** `, did you mean "x"?` for the {@linkcode closest} candidate; empty where there is none. */
export function suggestion(word: string, candidates: readonly string[]): string {
  const found = closest(word, candidates);
  return found === undefined ? "" : `, did you mean "${found}"?`;
}

/** Insertions, deletions, substitutions and swaps of neighbours between two words. */
export function editDistance(from: string, to: string): number {
  let above: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const substituted = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      const swap = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      const swapped = swap ? above[j - 2]! + 1 : Infinity;
      next.push(Math.min(substituted, swapped, row[j]! + 1, next[j - 1]! + 1));
    }
    [above, row] = [row, next];
  }
  return row[to.length]!;
}

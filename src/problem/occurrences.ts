/**
 * How often a network has the layer of that name: N of `res2a_branch2b*3`, as benchdnn's shape files say it; else 1.
 */
export function occurrences(name: string | undefined): number {
  const count = /\*(\d+)$/.exec(name ?? "")?.[1];
  return count === undefined ? 1 : Number(count);
}

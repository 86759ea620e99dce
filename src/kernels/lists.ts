/** 0, 1 and so on, so many. */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

/** The product of numbers; 1 of none. */
export function product(values: readonly number[]): number {
  return values.reduce((all, one) => all * one, 1);
}

/** 0, 1 and so on, so many. */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

/** The product of numbers; 1 of none. */
export function product(values: readonly number[]): number {
  return values.reduce((all, one) => all * one, 1);
}

/** A line of a text, or several, or none. */
export type Lines = string | false | undefined | readonly Lines[];

/** A text of lines. */
export function lines(...all: readonly Lines[]): string {
  return all.map((one) => typeof one === "object" ? lines(...one) : one || "")
    .filter((line) => line !== "").join("\n");
}

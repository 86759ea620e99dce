import type { ClassResults } from "./class_output.ts";
import type { RingColumns } from "./loaders/rings.ts";

/** How results lie by rows and columns: strides in elements, as `OutputMap` has them. */
export interface LinearPlaces {
  readonly row: number;
  readonly outer: number;
  readonly inner: number;
  readonly interleave?: number;
  readonly period: number;
  /** Places of a period that are results, the first ones; all where absent. */
  readonly results?: number;
  /** How the product counts its columns, and how many results have, where that is another order. */
  readonly ring?: RingColumns & { readonly columns: number };
  readonly classes?: undefined;
}

/** Where a product's results lie, or those of classes of strides. */
export type ResultPlaces = (LinearPlaces | { readonly classes: ClassResults }) & {
  /** From one group to the next. */
  readonly group: number;
};

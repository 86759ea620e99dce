/**
 * How the columns of a product count (image, place). With `interleave` 4, four images at one place follow each
 * other: column = 4·(⌊image / 4⌋·places + place) + image mod 4. So a vector of four lies on whole fours whatever
 * the sizes of the image, and neighbouring vectors at neighbouring places. With 1: column = image·places + place.
 */
export interface ColumnOrder {
  /** A multiple of `interleave`. */
  readonly images: number;
  /** Places of the result, one entry a spatial axis. */
  readonly places: readonly number[];
  readonly interleave: 1 | 4;
}

/** Places of one image. */
export function spotsOf({ places }: Pick<ColumnOrder, "places">): number {
  return places.reduce((product, size) => product * size, 1);
}

/** Columns of the product. */
export function columnsOf(order: ColumnOrder): number {
  return order.images * spotsOf(order);
}

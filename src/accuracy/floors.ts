/**
 * What Σ|a||b| of an output, by its canonical flat index, counts for at least: of Winograd's, whose tiles err by all that their transforms
 * meet, also where an output's own products are tiny or none.
 */
export type Floors = (index: number) => number;

import type { MatrixUnits } from "../../src/kernels/matrix_units.ts";

/** What Dawn offers of an H200's tensor cores. */
export const H200_UNITS: MatrixUnits = {
  lanes: 32,
  cutsOff: true,
  units: [
    { component: "f16", result: "f32", m: 16, n: 16, k: 16 },
    { component: "f16", result: "f32", m: 16, n: 8, k: 16 },
    { component: "f16", result: "f32", m: 16, n: 8, k: 8 },
    { component: "i8", result: "i32", m: 16, n: 16, k: 32 },
    { component: "i8", result: "i32", m: 16, n: 8, k: 32 },
  ],
};

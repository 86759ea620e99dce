/** Exact fractions. */
export { default as Fraction } from "npm:fraction.js@5.3.4";

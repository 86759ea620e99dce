/** Templates of shaders. */
export { Eta } from "npm:eta@4.6.0/core";

import { InputRangeError } from "../errors.ts";
import type { Algorithm } from "./algorithm.ts";
import { depthwise } from "./depthwise/algorithm.ts";
import { direct } from "./direct/algorithm.ts";
import { implicitGemm } from "./implicit_gemm/algorithm.ts";
import type { AlgorithmName } from "./plan.ts";
import { im2col, im2win, im2winFused } from "./windows/algorithm.ts";
import { winograd1d, winograd2d } from "./winograd_fused/algorithm.ts";
import { winogradNonfused } from "./winograd_nonfused/algorithm.ts";
import { winrs } from "./winrs/price.ts";

const registry: Algorithm[] = [
  direct,
  depthwise,
  implicitGemm,
  im2col,
  im2win,
  im2winFused,
  winogradNonfused,
  winograd2d,
  winograd1d,
  winrs,
];

/** Every algorithm, in the order of lists; of equal candidates `auto` takes the first. */
export function algorithms(): readonly Algorithm[] {
  return registry;
}

/** Their names. */
export function algorithmNames(): AlgorithmName[] {
  return registry.map(({ name }) => name);
}

/** The algorithm of a name; undefined if there is none. */
export function algorithmOf(name: AlgorithmName): Algorithm | undefined {
  return registry.find((one) => one.name === name);
}

/**
 * Adds an algorithm, which is planned, listed, tuned and timed as the others from then on, until what is returned is
 * disposed.
 *
 * @throws {RangeError} if there is one of its name, or it is called `auto`.
 * @example
 * ```ts
 * import { algorithmNames, algorithms, registerAlgorithm } from "@wgconv/wgconv/internals";
 * import assert from "node:assert/strict";
 *
 * const direct = algorithms().find(({ name }) => name === "direct")!;
 * using _ = registerAlgorithm({ ...direct, name: "mine" });
 * assert.equal(algorithmNames().at(-1), "mine");
 * ```
 */
export function registerAlgorithm(algorithm: Algorithm): Disposable {
  const { name } = algorithm;
  if (name === "auto" || algorithmOf(name) !== undefined) {
    throw new InputRangeError(`Cannot register ${name}: there is an algorithm of that name`);
  }
  registry.push(algorithm);
  return { [Symbol.dispose]: () => void registry.splice(registry.indexOf(algorithm), 1) };
}

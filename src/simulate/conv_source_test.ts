import assert from "#assert";
import { parseDescriptor } from "../problem/descriptor.ts";
import { convOperands, convSource } from "./conv_source.ts";
import { simulateSums } from "./sums.ts";

Deno.test("low halves are made of all of an image that has one fine value, met or not, and of no other", () => {
  const problem = parseDescriptor("mb2ic96ih4oc4kh1sh2");
  const input = Float32Array.from({ length: 2 * 96 * 16 }, (_, i) => i * 7 % 13);
  const filter = Float32Array.from({ length: 4 * 96 }, (_, i) => 1 + i * 5 % 13);
  // Row 1 and column 1 of the first image: of stride 2 no filter meets it.
  input[5] = 1 + 2 ** -9;
  const operands = convOperands(problem, {
    input: { data: input, layout: "nchw" },
    filter: { data: filter, layout: "kcrs" },
  });
  const lefts = [[0, 0, 0, 0], [1, 0, 0, 0]] as const;
  const arithmetic = { unit: 16, math: "f16x3", highs: "away", drift: 3 } as const;
  const block = { group: 0, lefts, rights: [0, 1, 2, 3] };
  const source = convSource(operands, block, undefined, arithmetic);
  const { values, exact } = simulateSums(source, arithmetic);
  const differs = [...values].map((value, i) => value !== exact[i]);
  assert.deepEqual(differs, [true, true, true, true, false, false, false, false]);
});

/** bf16 in the memory of the driver at hand: two a word, which threads that store one each share. */
import assert from "#assert";
import { moduleBuilder, WHOLE } from "../../src/kernels/module.ts";
import { eachElement } from "../../src/kernels/sized_kernel.ts";
import { fromBf16, toBf16 } from "../../src/tensor/convert.ts";
import { RandomWords } from "../../src/tensor/random.ts";
import { test } from "./driver.ts";
import { throughText } from "./through_text.ts";

/** Ties to either side, NaN of all kinds, what rounds to infinity, what is below the normal numbers, and any bits. */
function values(count: number): Float32Array<ArrayBuffer> {
  const words = new Uint32Array(count);
  new RandomWords(7).fill(words);
  words.set([
    ...[0x3f808000, 0x3f818000, 0x3f808001, 0x3f807fff, 0xbf808000, 0xbf818000],
    ...[0x7fc00000, 0x7f800001, 0xff800001, 0xffffffff, 0x7f800000, 0xff800000],
    ...[0x7f7fffff, 0x7f7f7fff, 0x7f7f8000, 0xff7fffff, 0x00008000, 0x00018000, 0x80000001, 0],
  ]);
  return new Float32Array(words.buffer);
}

function isNan(bits: number): boolean {
  return (bits & 0x7fff) > 0x7f80;
}

for (const vector of [1, 4] as const) {
  test(`stores of ${vector} are rounded once to the nearest, and leave their neighbours alone`, async (gpu) => {
    // The last word is half a tensor's.
    const count = vector === 1 ? 1001 : 1000;
    const given = values(count);
    const module = moduleBuilder("constant");
    const from = module.tensor("values", "read", vector, WHOLE);
    const to = module.tensor("results", "write", vector, WHOLE, "bf16");
    const body = [
      eachElement(`${count / vector}u`),
      `  ${to.store("i", `-${from.load("i")}`)}`,
      `  ${to.store("i", from.load("i"))}`,
      "}",
    ];
    const code = [module.declarations(), ...body].join("\n");
    const results = new Float32Array(Math.ceil(count / 2));
    await throughText(gpu.device, code, given, { results, workgroups: 4 });
    const got = new Uint16Array(results.buffer);
    toBf16(given).forEach((bits, i) => {
      assert.ok(isNan(bits) ? isNan(got[i]!) : got[i] === bits, `${given[i]} is ${got[i]}`);
    });
    if (vector === 1) assert.equal(got[count], 0);
  });

  test(`loads of ${vector} give every value of bf16`, async (gpu) => {
    const bits = Uint16Array.from({ length: 2 ** 16 }, (_, i) => i);
    const module = moduleBuilder("constant");
    const from = module.tensor("values", "read", vector, WHOLE, "bf16");
    const to = module.tensor("results", "write", vector, WHOLE, "u32");
    const type = vector === 1 ? "u32" : "vec4u";
    const store = to.store("i", `bitcast<${type}>(${from.load("i")})`);
    const code = [module.declarations(), eachElement(`${bits.length / vector}u`), store, "}"];
    const results = new Float32Array(bits.length);
    const data = new Float32Array(bits.buffer);
    await throughText(gpu.device, code.join("\n"), data, { results, workgroups: 256 / vector });
    const expected = new Float32Array(bits.length);
    fromBf16(bits, expected);
    const words = new Uint32Array(results.buffer);
    new Uint32Array(expected.buffer).forEach((word, i) => {
      assert.ok(isNan(i) ? isNan(words[i]! >>> 16) : words[i] === word, `${i} is ${words[i]}`);
    });
  });
}

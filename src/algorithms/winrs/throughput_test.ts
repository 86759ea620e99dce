import assert from "#assert";
import { H200 } from "../device/h200.ts";
import { omegaName, OMEGAS, parseOmega, throughputOf } from "./omega.ts";

Deno.test("throughputOf() gives the table's rate and refuses one that is missing or not positive", () => {
  const rate = throughputOf({ a8n3r6: 61.5, a4n3r2: 0 });
  assert.equal(rate(parseOmega("a8n3r6")), 61.5);
  assert.throws(() => rate(parseOmega("a4n2r3")), /a4n2r3 is undefined/);
  assert.throws(() => rate(parseOmega("a4n3r2")), RangeError);
});

Deno.test("an H200's model has the rate of every kernel", () => {
  for (const omega of OMEGAS) assert.ok(H200.rates.winrs[omegaName(omega)]! > 0);
});

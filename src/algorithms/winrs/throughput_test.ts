import assert from "#assert";
import { H200 } from "../device/h200.ts";
import { omegaName, OMEGAS } from "./omega.ts";

Deno.test("an H200's model has the rate of every kernel", () => {
  for (const omega of OMEGAS) assert.ok(H200.rates.winrs[omegaName(omega)]! > 0);
});

/** The gate on some ways to sum; tests/long/gate_test.ts has all, on every operation and kind of data. */
import { ARITHMETICS, assertGate, assertGateOnZeros } from "../../tests/support/gate_cases.ts";

/** What sums in one chain, in chunks, in tiles, in buckets and in halves. */
const SOME = ["one chain", "split depth", "F(4x4,3x3)", "F(3x3,4x4) in halves", "WinRS, a pair"];

for (const [name, arithmetic, operations] of ARITHMETICS) {
  if (!SOME.includes(name)) continue;
  Deno.test(`judge() passes a healthy result and finds faults: ${name}`, async () => {
    const op = operations.at(-1)!;
    assertGate(arithmetic, op, "normal", true);
    await assertGateOnZeros(arithmetic, op);
  });
}

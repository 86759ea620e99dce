import assert from "#assert";
import { omegaName, OMEGAS, parseOmega } from "./omega.ts";
import { DEFAULT_THROUGHPUT, throughputOf, throughputTable } from "./throughput.ts";

Deno.test("throughputTable() takes the sweep's records and passes over everything else", () => {
  const record = { kind: "tuning", algorithm: "winrs", kernel: "a8n3r6", gflops: 61_500 };
  const lines = [
    "one\tF3c64\talone",
    JSON.stringify(record),
    JSON.stringify({ ...record, kernel: "a4n3r2", gflops: 40_000 }),
    JSON.stringify({ ...record, algorithm: "implicit-gemm", kernel: "wide" }),
    "",
  ];
  assert.deepEqual(throughputTable(lines.join("\n")), { a8n3r6: 61.5, a4n3r2: 40 });
});

Deno.test("throughputOf() falls back to the default rate and refuses one that is not positive", () => {
  const rate = throughputOf({ a8n3r6: 61.5, a4n3r2: 0 });
  assert.equal(rate(parseOmega("a8n3r6")), 61.5);
  assert.equal(rate(parseOmega("a4n2r3")), DEFAULT_THROUGHPUT["a4n2r3"]);
  assert.throws(() => rate(parseOmega("a4n3r2")), RangeError);
});

Deno.test("every kernel has a default rate", () => {
  for (const omega of OMEGAS) assert.ok(DEFAULT_THROUGHPUT[omegaName(omega)]! > 0);
});

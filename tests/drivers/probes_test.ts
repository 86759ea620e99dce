/** The benchmarks of workgroup memory and of products do what they say, on the driver at hand. */
import assert from "#assert";
import { timeProbe } from "../../bench/probes/probe.ts";
import {
  wayBytes,
  wayFault,
  wayName,
  wayProbe,
  ways,
} from "../../bench/probes/workgroup_memory.ts";
import {
  productCount,
  productFault,
  productLoopName,
  productLoopProbe,
  productLoops,
} from "../../bench/probes/products.ts";
import { openDevice } from "../../src/gpu/device.ts";
import { backend } from "./driver.ts";

Deno.test("loads and stores of every width, stride and half leave what they should", async () => {
  using gpu = await openDevice({ backend });
  for (const way of ways()) {
    const { ns, result } = await timeProbe(gpu, { ...wayProbe(way, 3, 2), fillNs: 1 });
    assert.equal(wayFault(way, 3, result), -1, wayName(way));
    assert.ok(ns > 0);
    // Another number of rounds leaves something else.
    assert.equal(wayFault(way, 4, result), 0, wayName(way));
  }
});

Deno.test("each width has strides without and with conflicts, and half of its threads", () => {
  const names = ways().map(wayName);
  assert.equal(new Set(names).size, names.length);
  for (const name of ["STS.32 stride 33", "STS.128 stride 4 half", "LDS.64 stride 32"]) {
    assert.ok(names.includes(name), name);
  }
  const [store, , , , , , , half] = ways();
  assert.equal(wayBytes(store!, 2, 3), 4 * 8 * 2 * 256 * 3);
  assert.equal(wayBytes(half!, 2, 3), wayBytes(store!, 2, 3) / 2);
});

Deno.test("loops of products leave the sums of as many rounds, from memory and registers", async () => {
  using gpu = await openDevice({ backend });
  const names = productLoops().map(productLoopName);
  assert.equal(new Set(names).size, names.length);
  // Each form once; longer texts are the same row again.
  const forms = productLoops().filter(({ depth, columns, loads, barrier }) =>
    depth <= 4 || columns < 16 || loads && barrier
  );
  for (const loop of forms) {
    const { result } = await timeProbe(gpu, { ...productLoopProbe(loop, 3, 2), fillNs: 1 });
    assert.equal(productFault(loop, 3, result), -1, productLoopName(loop));
    assert.equal(productFault(loop, 4, result), 0, productLoopName(loop));
    assert.equal(productCount(loop, 3, 2), 8 * loop.columns * loop.depth * loop.threads * 6);
  }
});

import { MOST_PIPELINES, pipelineOf, pipelinesOf } from "./prepare.ts";
import assert from "#assert";
import { SAXPY } from "../../tests/support/test_plans.ts";
import { test } from "../../tests/drivers/driver.ts";

test("pipelineOf() keeps the latest pipelines, and no more than it may", async (gpu) => {
  const named = (index: number) => ({ ...SAXPY, name: `test_saxpy_${index}` });
  for (let index = 0; index <= MOST_PIPELINES; index++) await pipelineOf(gpu, named(index));
  assert.equal(pipelinesOf(gpu).size, MOST_PIPELINES);
  assert.deepEqual([0, 1].map((index) => pipelinesOf(gpu).has(named(index).name)), [false, true]);
});

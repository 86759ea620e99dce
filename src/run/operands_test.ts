import assert from "#assert";
import { aheadOf } from "./operands.ts";

/** Chunks, and what was done with them so far. */
function watched(...values: (number | Error)[]) {
  const done: string[] = [];
  const chunks = async function* () {
    try {
      for (const value of values) {
        done.push(`read ${value}`);
        await new Promise((read) => setTimeout(read, 1));
        if (value instanceof Error) throw value;
        yield Float32Array.of(value);
      }
    } finally {
      done.push("end");
    }
  };
  return { chunks, done };
}

async function valuesOf(data: unknown): Promise<number[]> {
  const values: number[] = [];
  for await (const chunk of (data as () => AsyncIterable<Float32Array>)()) values.push(...chunk);
  return values;
}

Deno.test("aheadOf() asks for the first chunk at once, and gives each of them once", async () => {
  const { chunks, done } = watched(1, 2, 3);
  const filter = Float32Array.of(5);
  await using begun = aheadOf({ input: chunks, filter });
  assert.deepEqual(done, ["read 1"]);
  assert.equal(begun.operands.filter, filter);
  assert.deepEqual(await valuesOf(begun.operands.input), [1, 2, 3]);
  assert.deepEqual(done, ["read 1", "read 2", "read 3", "end"]);
});

Deno.test("aheadOf() tells a failure where the chunk is taken", async () => {
  const { chunks } = watched(new Error("no disk"));
  await using begun = aheadOf({ input: chunks });
  await new Promise((passed) => setTimeout(passed, 5));
  await assert.rejects(valuesOf(begun.operands.input), /no disk/);
});

Deno.test("what aheadOf() began and nobody takes is over when it is disposed of", async () => {
  const { chunks, done } = watched(1, 2);
  await aheadOf({ input: chunks })[Symbol.asyncDispose]();
  assert.deepEqual(done, ["read 1", "end"]);
});

import assert from "#assert";
import { elementsOf } from "../elements/elements.ts";
import { NO_STEPS } from "./epilogue.ts";
import { gemvKernel, treeSteps } from "./gemv.ts";
import {
  gemvBlocks,
  gemvMultiplications,
  gemvRounds,
  type GemvShape,
  gemvWorkgroups,
} from "./gemv_shape.ts";
import { moduleBuilder, WHOLE } from "./module.ts";
import { treeSum } from "./sums.ts";

const SHAPE: GemvShape = {
  side: "rows",
  vectors: 1,
  places: 4096,
  depth: 4096,
  word: 1,
  batches: 1,
  splits: 1,
  matrix: "place",
  vector: "depth",
  threads: { lanes: 64, groups: 16, each: 1, ahead: 2 },
};

const TENSORS = { a: WHOLE, b: WHOLE, result: WHOLE };

function wgsl(shape: Partial<GemvShape>, dtype: "f32" | "f16" | "i8" | "f64" = "f32"): string {
  const module = moduleBuilder("constant", TENSORS);
  return gemvKernel(module, { ...SHAPE, ...shape }, elementsOf({ dtype }), NO_STEPS).kernel.wgsl;
}

Deno.test("a matrix is loaded by fours where its contiguous side is whole fours", () => {
  assert.match(wgsl({}), /b_data: array<vec4<f32>>/);
  assert.match(wgsl({ places: 4097 }), /b_data: array<f32>/);
  assert.match(wgsl({ places: 4097, matrix: "depth" }), /b_data: array<vec4<f32>>/);
  assert.match(wgsl({ depth: 4097, matrix: "depth" }), /b_data: array<f32>/);
  // The vectors along the depth alone.
  assert.match(wgsl({ places: 4097 }), /a_data: array<vec4<f32>>/);
  assert.match(wgsl({ depth: 4097 }), /a_data: array<f32>/);
});

Deno.test("the other operand is the matrix where vectors are columns", () => {
  const text = wgsl({ side: "columns", depth: 4097 });
  assert.match(text, /a_data: array<vec4<f32>>/);
  assert.match(text, /b_data: array<f32>/);
});

Deno.test("four results leave at once where places follow each other", () => {
  const four = /result_data: array<vec4<f32>>/;
  assert.match(wgsl({ vectors: 3 }), four);
  assert.match(wgsl({ side: "columns" }), four);
  assert.doesNotMatch(wgsl({ side: "columns", vectors: 3 }), four);
  assert.doesNotMatch(wgsl({ matrix: "depth" }), four);
});

Deno.test("blocks that are no whole rounds are masked, in a round behind the loop", () => {
  assert.doesNotMatch(wgsl({}), /select\(/);
  assert.match(wgsl({ depth: 4100 }), /select\(/);
  assert.match(wgsl({ splits: 3 }), /select\(/);
});

Deno.test("int8 in words is multiplied four at once, other int8 by integers", () => {
  assert.match(wgsl({ word: 4, depth: 1024, matrix: "depth" }, "i8"), /dot4I8Packed/);
  assert.match(wgsl({}, "i8"), /unpack4xI8\(b_data/);
  assert.match(wgsl({ places: 4097 }, "i8"), /extractBits\(bitcast<i32>\(b_data/);
  assert.doesNotMatch(wgsl({}, "i8"), /fma\(/);
});

Deno.test("sums pass through 16 KiB of workgroup memory at most, or through none", () => {
  for (const vectors of [1, 2, 5, 16]) {
    for (const matrix of ["place", "depth"] as const) {
      for (let lanes = 1; lanes <= 256; lanes *= 4) {
        for (const dtype of ["f32", "f64"] as const) {
          const threads = { lanes, groups: 256 / lanes, each: 2, ahead: 1 };
          const { kernel } = gemvKernel(
            moduleBuilder("uniform", TENSORS),
            { ...SHAPE, vectors, matrix, threads },
            elementsOf({ dtype }),
            NO_STEPS,
          );
          const { workgroupBytes } = kernel;
          assert.ok(workgroupBytes <= 16_384, `${kernel.name}: ${workgroupBytes}`);
          assert.equal(workgroupBytes === 0, lanes === 1);
          assert.equal(kernel.wgsl.includes("workgroupBarrier"), lanes > 1);
        }
      }
    }
  }
});

Deno.test("workgroups have all places, and products are counted with those that are not there", () => {
  assert.equal(gemvWorkgroups(SHAPE), 64);
  assert.equal(gemvMultiplications(SHAPE), 4096 * 4096);
  assert.equal(gemvWorkgroups({ ...SHAPE, places: 4100, splits: 3, batches: 5 }), 65 * 15);
  assert.deepEqual(gemvBlocks({ ...SHAPE, depth: 4100, splits: 3 }), {
    blocks: 1025,
    perSplit: 342,
  });
  assert.equal(gemvRounds({ ...SHAPE, depth: 4100, splits: 3 }), 3);
  assert.equal(gemvRounds({ ...SHAPE, depth: 4099 }), 33);
});

Deno.test("treeSteps() adds all lanes, at most eight at once", () => {
  for (let lanes = 1; lanes <= 1024; lanes *= 2) {
    const { before, last } = treeSteps(lanes);
    assert.equal(before.reduce((all, one) => all * one, last), lanes);
    assert.ok([...before, last].every((one) => one <= 8 && (one > 1 || lanes === 1)), `${lanes}`);
  }
});

Deno.test("treeSum() adds every term once, halves first", () => {
  assert.equal(treeSum(["a"]), "a");
  assert.equal(treeSum(["a", "b"]), "(a + b)");
  assert.equal(treeSum(["a", "b", "c", "d"]), "((a + b) + (c + d))");
});

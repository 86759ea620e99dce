import assert from "#assert";
import { convProblem, type ConvProblemInit } from "../problem/conv_problem.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import type { Layout } from "../tensor/layout.ts";
import { prefersSingleImages } from "./geometry.ts";
import { DEFAULT_LIMITS } from "./plan.ts";

/** The im2win paper's cv7, 27 products a result, with changes. */
function prefers(more: Partial<ConvProblemInit> = {}, layout: Layout = "nchw"): boolean {
  return prefersSingleImages({
    problem: convProblem({
      batch: 128,
      inChannels: 3,
      outChannels: 64,
      inputSize: [224, 224],
      filterSize: [3, 3],
      ...more,
    }),
    dtype: "f32",
    layout,
    filterLayout: "kcrs",
    epilogue: NO_EPILOGUE,
    algorithm: "im2win",
    limits: DEFAULT_LIMITS,
  });
}

Deno.test("results of few products leave four places at a time, where these lie together", () => {
  assert.ok(prefers());
  assert.ok(!prefers({}, "nhwc"));
  assert.ok(!prefers({}, "chwn"));
});

Deno.test("deep products, odd numbers of places and backward operations keep four images", () => {
  assert.ok(!prefers({ inChannels: 8 }));
  assert.ok(prefers({ inChannels: 16, groups: 4 }));
  assert.ok(!prefers({ inputSize: [223, 223] }));
  assert.ok(!prefers({ op: "bwd-filter" }));
});

/**
 * What a reader takes from a line of the record stream, whoever wrote it: wgconv, or a peer's script that
 * knows less. Fields it does not know are ignored.
 */

import * as v from "valibot";

const figure = v.nullish(v.number());
const text = v.optional(v.string());

const TimeSchema = v.object({
  median: v.number(),
  min: figure,
  mad: figure,
  samples: v.optional(v.array(v.number()), []),
  repeats: figure,
  clock: text,
});

const AccuracySchema = v.object({
  mare: figure,
  median_rel: figure,
  p99_rel: figure,
  max_rel: figure,
  rel_l2: figure,
  max_bound_ratio: figure,
  channel_rms_ratio: figure,
  bound_limit: figure,
  rel_l2_limit: figure,
  channel_rms_limit: figure,
  nan: figure,
  inf: figure,
  checked: figure,
  total: figure,
});

const ProjectionSchema = v.object({
  places: v.number(),
  members: v.number(),
  max_ratio: figure,
  limit: figure,
  patch_rms: figure,
  patch_limit: figure,
  size: figure,
  masked: figure,
  masked_checked: figure,
  activated: figure,
  reference_seconds: figure,
  seconds: figure,
  read_seconds: figure,
});

const MemorySchema = v.object({
  inputs: v.number(),
  output: v.number(),
  workspace: v.number(),
  peak: v.number(),
});

/** A case as it is read back; what a peer leaves out has a default or is absent. */
export const CaseSchema = v.object({
  schema: v.literal(1),
  kind: v.literal("case"),
  provider: v.string(),
  problem: v.string(),
  op: v.string(),
  algorithm: v.optional(v.string(), ""),
  requested: text,
  kernel: v.nullish(v.string(), null),
  device: v.optional(v.string(), ""),
  dtype: v.string(),
  accumulate: text,
  layout: v.optional(v.string(), ""),
  filter_layout: text,
  epilogue: text,
  policy: text,
  tile: text,
  pair: text,
  cache: text,
  time_ms: v.nullish(TimeSchema, null),
  gflops: v.nullish(v.number(), null),
  flops: v.nullish(v.number(), null),
  multiplications: v.nullish(v.number(), null),
  workspace_bytes: v.nullish(v.number(), null),
  memory_bytes: v.nullish(MemorySchema, null),
  accuracy: v.nullish(AccuracySchema, null),
  projection: v.optional(ProjectionSchema),
  verdict: v.optional(v.picklist(["pass", "fail", "none", "error"]), "none"),
  message: text,
  fill: text,
  seed: v.optional(v.number()),
});

/** First line of a stream of wgconv's. */
export const EnvironmentSchema = v.object({
  schema: v.literal(1),
  kind: v.literal("environment"),
  program: v.optional(v.string(), ""),
  version: v.optional(v.string(), ""),
  deno: v.optional(v.string(), ""),
  os: v.optional(v.string(), ""),
  backend: v.optional(v.string(), ""),
  adapter: v.optional(v.string(), ""),
  driver: v.optional(v.string(), ""),
  date: v.optional(v.string(), ""),
});

export type ReadCase = v.InferOutput<typeof CaseSchema>;
export type ReadTime = v.InferOutput<typeof TimeSchema>;
export type ReadAccuracy = v.InferOutput<typeof AccuracySchema>;
export type ReadEnvironment = v.InferOutput<typeof EnvironmentSchema>;

/**
 * What a reader takes from a line of the record stream, whoever wrote it: wgconv, or a peer's script that
 * knows less. Fields it does not know are ignored.
 */

import * as v from "valibot";
import { InputTypeError } from "../errors.ts";
import { schemaFault } from "../json.ts";

/** What a double holds: JSON's larger numbers are read as infinite. */
export const finiteNumber = v.pipe(
  v.number(),
  v.minValue(-Number.MAX_VALUE),
  v.maxValue(Number.MAX_VALUE),
);
const figure = v.nullish(finiteNumber);
/** What cannot be less than nothing. */
const amount = v.pipe(finiteNumber, v.minValue(0));
/** No call takes no time. */
const time = v.pipe(finiteNumber, v.gtValue(0));
/** What a result is off by. */
const error = v.nullish(amount);
const text = v.optional(v.string());

const TimeSchema = v.object({
  median: time,
  min: v.nullish(time),
  mad: v.nullish(amount),
  samples: v.optional(v.pipe(v.array(time), v.readonly()), []),
  repeats: figure,
  clock: text,
  warm_up: text,
});

const AccuracySchema = v.object({
  mare: error,
  median_rel: error,
  p99_rel: error,
  max_rel: error,
  rel_l2: error,
  max_bound_ratio: figure,
  bound_limit: figure,
  rel_l2_limit: figure,
  group_rms: figure,
  group_rms_limit: figure,
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
  inputs: amount,
  output: amount,
  workspace: amount,
  peak: amount,
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
  out_dtype: text,
  accumulate: text,
  math: text,
  arithmetic: text,
  diagnosis: text,
  layout: v.optional(v.string(), ""),
  filter_layout: text,
  epilogue: text,
  policy: text,
  tile: text,
  pair: text,
  segments: v.optional(finiteNumber),
  choice: text,
  cache: text,
  cuda_graph: v.optional(v.boolean()),
  time_ms: v.nullish(TimeSchema, null),
  gflops: v.nullish(amount, null),
  flops: v.nullish(amount, null),
  multiplications: v.nullish(amount, null),
  workspace_bytes: v.nullish(amount, null),
  memory_bytes: v.nullish(MemorySchema, null),
  accuracy: v.nullish(AccuracySchema, null),
  projection: v.optional(ProjectionSchema),
  verdict: v.optional(v.picklist(["pass", "fail", "none", "error"]), "none"),
  message: text,
  fill: text,
  seed: v.optional(finiteNumber),
  loss_scale: v.optional(finiteNumber),
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
  seed: v.optional(v.number()),
  model: v.optional(v.string()),
  options: v.optional(v.record(v.string(), v.union([v.string(), v.number()]))),
  tags: v.optional(v.record(v.string(), v.string())),
  date: v.optional(v.string(), ""),
});

/**
 * Reads a record by its schema.
 *
 * @param where File and line.
 * @throws {TypeError} with the field that is wrong, or the version where it is another one.
 */
export function readRecord<S extends v.GenericSchema>(
  schema: S,
  value: object,
  where: string,
): v.InferOutput<S> {
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  const issue = result.issues[0];
  const { field, what } = schemaFault(issue, "the record");
  throw new InputTypeError(
    field === "schema" && issue.received !== "undefined"
      ? `Cannot read ${where}: the record is of version ${issue.received}, this wgconv reads 1`
      : `Cannot read ${where}: ${what}`,
  );
}

export type ReadCase = v.InferOutput<typeof CaseSchema>;
export type ReadTime = v.InferOutput<typeof TimeSchema>;
export type ReadAccuracy = v.InferOutput<typeof AccuracySchema>;
export type ReadEnvironment = v.InferOutput<typeof EnvironmentSchema>;

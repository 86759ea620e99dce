/** The page and the JSON Schema of records, made of the schema that reads them. */
import { toJsonSchema } from "@valibot/to-json-schema";
import { CaseSchema, EnvironmentSchema } from "../src/report/record_schema.ts";

/** What each field means, nested ones by their path. */
const CASE: Readonly<Record<string, string>> = {
  schema: "version of the schema",
  kind: "kind of line",
  provider: "who computed: `wgconv`, `cudnn`, or the tag of `--provider`",
  problem: "descriptor; of products `m n k`",
  op: "`fwd`, `bwd-data`, `bwd-filter` or `gemm`",
  algorithm: "what ran",
  requested: "what was asked for, if another: `auto`",
  kernel: "name of the main kernel",
  device: "name of the device",
  dtype: "type of the operands",
  out_dtype: "type of the result, if not the usual one",
  accumulate: "type of the sums, if less than the usual one",
  math: "`f16x3` if f32 was multiplied as halves; of `verify` what the kernel claims",
  diagnosis: "of `verify`: where a result is wrong, and what it is in place of what it should be",
  arithmetic: "of `verify`: the arithmetic that explains the errors, or comes nearest",
  layout: "layout of activations; of products the transposes",
  filter_layout: "layout of filters",
  epilogue: "what follows the sums",
  policy: "tile policy that was asked for",
  tile: "Winograd tile that was asked for",
  pair: "WinRS kernels that were asked for",
  segments: "WinRS segments that were asked for",
  choice: "`measured`: `auto` took what was timed on this device, not what its model predicts",
  cache: "`hot` or `cold`",
  cuda_graph: "whether a peer's calls were replayed from a CUDA graph",
  time_ms: "milliseconds of one call; null if nothing was timed",
  "time_ms.median": "median of the samples",
  "time_ms.min": "smallest sample",
  "time_ms.mad": "median absolute deviation of the samples",
  "time_ms.samples": "each the mean of `repeats` back-to-back calls",
  "time_ms.repeats": "calls per sample",
  "time_ms.clock": "what measured: `timestamp` (the GPU's) or the host's",
  "time_ms.warm_up": "`brief` if clocks may not have risen yet",
  gflops: "flops over the median time",
  flops: "flops of the direct algorithm, two per multiply-add",
  multiplications: "multiplications that the kernels perform",
  workspace_bytes: "memory beside the tensors",
  memory_bytes: "device memory",
  "memory_bytes.inputs": "tensors that are read",
  "memory_bytes.output": "the result",
  "memory_bytes.workspace": "as `workspace_bytes`",
  "memory_bytes.peak": "all together",
  accuracy: "errors against FP64; null if not checked",
  "accuracy.mare": "mean absolute relative error",
  "accuracy.median_rel": "median relative error",
  "accuracy.p99_rel": "99th percentile of relative errors",
  "accuracy.max_rel": "largest relative error",
  "accuracy.rel_l2": "relative L2 error",
  "accuracy.max_bound_ratio": "largest error over u · Σ&#124;a&#124;&#124;b&#124;",
  "accuracy.bound_limit": "allowed bound ratio",
  "accuracy.rel_l2_limit": "allowed relative L2 error",
  "accuracy.group_rms": "largest RMS error of a channel, image or tile over the usual",
  "accuracy.group_rms_limit": "what of that is allowed",
  "accuracy.nan": "results that are NaN",
  "accuracy.inf": "results that are infinite",
  "accuracy.checked": "outputs that were compared",
  "accuracy.total": "outputs",
  projection: "projection of a large result's outputs",
  "projection.places": "sums that were compared",
  "projection.members": "outputs per sum",
  "projection.max_ratio": "largest difference of two sums over the noise",
  "projection.limit": "what of that is allowed",
  "projection.patch_rms": "RMS over the worst patch of sums",
  "projection.patch_limit": "what of that is allowed",
  "projection.size": "one output that is wrong by so many usual errors is detected",
  "projection.masked": "outputs in sums with a NaN or an infinity",
  "projection.masked_checked": "how many of those were compared one by one",
  "projection.activated": "outputs compared through the activation or int8 rounding",
  "projection.reference_seconds": "time of projecting the reference",
  "projection.seconds": "time of projecting the result",
  "projection.read_seconds": "time of reading the result back",
  verdict: "`none`: not checked; `error`: did not run to its end",
  message: "why it fails or has no verdict, or a note",
  fill: "kind of generated data; absent for files",
  seed: "seed of generated data",
  loss_scale: "factor of the output's gradient",
};
const ENVIRONMENT: Readonly<Record<string, string>> = {
  schema: "version of the schema",
  kind: "kind of line",
  program: "`wgconv`, or a peer's name",
  version: "version of the program",
  deno: "version of Deno",
  os: "operating system and architecture",
  backend: "`wgpu`, `dawn` or `cpu`",
  adapter: "name of the device",
  driver: "name and version of its driver",
  seed: "seed of the data",
  model: "name and hash of the device model that plans go by",
  options: "options that a resumed run must repeat",
  tags: "names of the run by `--tag`: `commit`",
  date: "ISO 8601",
};

/** A part of a JSON Schema, as far as this page reads it. */
interface Part {
  type?: string;
  const?: unknown;
  enum?: unknown[];
  description?: string;
  anyOf?: Part[];
  properties?: Record<string, Part>;
  required?: string[];
  items?: Part;
}

/** The two kinds of lines by their names, as JSON Schemas that say what each field means. */
function lines(): Readonly<Record<"environment" | "case", Part>> {
  const { $schema: _environment, ...environment } = toJsonSchema(EnvironmentSchema, OPTIONS);
  const { $schema: _case, ...one } = toJsonSchema(CaseSchema, OPTIONS);
  return {
    environment: described(environment as Part, ENVIRONMENT),
    case: described(one as Part, CASE),
  };
}

const OPTIONS = { ignoreActions: ["readonly"] };

/** Gives each field its meaning. */
function described(schema: Part, means: typeof CASE): Part {
  for (const { path, field } of fields(schema)) {
    const meaning = means[path];
    if (meaning === undefined) throw new Error(`Cannot describe ${path}: it has no meaning`);
    field.description = meaning.replaceAll("`", "").replaceAll("&#124;", "|");
  }
  return schema;
}

/** Every field of an object, those of objects in it behind it. */
function fields(schema: Part, above = ""): { path: string; field: Part; required: boolean }[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = above + name;
    const inner = field.anyOf?.find(({ properties }) => properties !== undefined) ?? field;
    const required = schema.required?.includes(name) ?? false;
    return [{ path, field, required }, ...fields(inner, `${path}.`)];
  });
}

/** `number or null`. */
function typeText({ type, const: only, enum: choices, anyOf, items }: Part): string {
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeText))].join(" or ");
  if (only !== undefined) return JSON.stringify(only);
  if (choices !== undefined) return choices.map((one) => JSON.stringify(one)).join(", ");
  return items === undefined ? type ?? "any" : `${typeText(items)}s`;
}

function table(schema: Part, means: typeof CASE): string {
  const rows = fields(schema).filter(({ path }) => !/^(projection|memory_bytes)\./.test(path)).map((
    { path, field, required },
  ) => `| \`${path}${required ? "" : "?"}\` | ${typeText(field)} | ${means[path]} |`);
  return ["| field | type | meaning |", "| --- | --- | --- |", ...rows].join("\n");
}

/** docs/record.schema.json. */
export function recordsSchema(): string {
  const { environment, case: one } = lines();
  const schema = {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "A line of wgconv's records",
    anyOf: [environment, one],
  };
  return `${JSON.stringify(schema, null, 1)}\n`;
}

/** docs/records.md. */
export function recordsPage(): string {
  const { environment, case: one } = lines();
  return [
    "# Records",
    "`--jsonl` writes a JSON object per line: the environment, then a line per case. `wgconv report` " +
    "and `compare` read such files, also of other programs. Fields with `?` may be absent, unknown " +
    "ones are ignored. A change that old readers would misread gets another `schema` number. " +
    "[`record.schema.json`](record.schema.json) is the JSON Schema of a line, with the fields of " +
    "`memory_bytes` and `projection`. `deno task docs` makes this page.",
    "## A case",
    table(one, CASE),
    "## The environment",
    table(environment, ENVIRONMENT),
  ].join("\n\n") + "\n";
}

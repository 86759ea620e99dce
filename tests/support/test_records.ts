/** Made records, for tests. */

/** Nine samples within 0.4 % of a median of 1 ms, none equal. */
export const SAMPLES = [0.996, 0.997, 0.998, 0.999, 1, 1.001, 1.002, 1.003, 1.004];

export const ENVIRONMENT = {
  schema: 1,
  kind: "environment",
  program: "wgconv",
  version: "0.0.0",
  deno: "2",
  os: "linux",
  backend: "wgpu",
  adapter: "TestGPU",
  driver: "1",
  limits: {},
  seed: 1,
  date: "2026-01-01T00:00:00Z",
};

/** Times of a call that takes about `ms`. */
export function timeOf(ms: number, samples: readonly number[] = SAMPLES) {
  const scaled = samples.map((sample) => sample * ms);
  const sorted = [...scaled].sort((a, b) => a - b);
  const median = sorted[sorted.length >> 1] ?? ms;
  return { median, min: sorted[0] ?? ms, samples: scaled, repeats: 1, clock: "timestamp" };
}

export const ACCURACY = {
  mare: 1e-7,
  rel_l2: 1e-7,
  max_bound_ratio: 10,
  bound_limit: 48,
  rel_l2_limit: 1e-6,
  group_rms: 1.2,
  group_rms_limit: 2.5,
  checked: 100,
  total: 100,
};

/** A case record's fields; `changes` take the place of the usual ones. */
export function caseFields(changes: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return {
    schema: 1,
    kind: "case",
    provider: "wgconv",
    problem: 'mb2ic4ih8oc4kh3ph1n"LayerN2"',
    op: "fwd",
    algorithm: "implicit-gemm",
    kernel: "kernel_a",
    dtype: "f32",
    layout: "nchw",
    filter_layout: "kcrs",
    time_ms: timeOf(1),
    gflops: 1,
    workspace_bytes: 0,
    accuracy: ACCURACY,
    verdict: "pass",
    fill: "uniform01",
    seed: 1,
    ...changes,
  };
}

/** A case record as a line of a stream. */
export function caseLine(changes: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(caseFields(changes));
}

/** A stream of cases. */
export function stream(...cases: Readonly<Record<string, unknown>>[]): string {
  return [JSON.stringify(ENVIRONMENT), ...cases.map(caseLine)].map((line) => `${line}\n`).join("");
}

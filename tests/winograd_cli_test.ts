/** Fused Winograd from the command line: tiles, policies, sums in parts, and what is refused. */
import assert from "#assert";
import {} from "./cli.ts";
import { refuses, succeeds } from "./support/in_process.ts";

const PROBLEM = ["--problem", "mb1ic256ih14oc32kh3ph1"];

Deno.test("wgconv plan shows a row's tiles, the policy and when sums are stored", async () => {
  const tile = ["--algorithm", "winograd1d", "--tile", "F(6,3)", "--policy", "32x32x8_8x8"];
  const plan = ["plan", "--problem", "mb64ic256ih14oc256kh3ph1", ...tile, "--flush", "96"];
  const { stdout } = await succeeds([...plan, "--splits", "1"]);
  assert.match(stdout, /note +F\(6,3\): 2 tiles of a row of 14, 8 products in place of 18\n/);
  assert.match(stdout, /note +F\(2,3\): 1 tile of a row of 14, 4 products in place of 6\n/);
  assert.match(stdout, /32x32x8_8x8: .* sums are stored every 96 products/);
  // 8·3·256·256 floats of F(6,3) and 4·3·256·256 of F(2,3).
  assert.match(stdout, /workspace 9\.000 MiB/);
});

Deno.test("wgconv conv computes with fused Winograd, checked whole", async () => {
  const how = ["--algorithm", "winograd2d", "--policy", "16x16x4_4x4", "--flush", "16"];
  const run = ["--op", "bwd-data", "--check", "full", "--runs", "1", "--json"];
  const { stdout } = await succeeds(["conv", ...PROBLEM, ...how, ...run]);
  const record = JSON.parse(stdout);
  assert.equal(record.verdict, "pass");
  assert.equal(record.accuracy.checked, 256 * 14 * 14);
  assert.match(record.kernel, /^winograd2d_bwd_data_f32_a16n2x2r3x3_16x16x4_4x4_partial_/);
});

Deno.test("what fused Winograd cannot do exits 2 and says what is expected", async () => {
  const strided = ["--problem", "mb1ic8ih14oc8kh3ph1sh2"];
  const refusals: [string[], RegExp][] = [
    [["winograd2d", ...PROBLEM, "--policy", "huge"], /none of fused Winograd's, .* 64x32x8_8x8/],
    [["winograd1d", ...PROBLEM, "--tile", "F(2x2,3x3)"], /has 2 axes, winograd1d tiles 1$/m],
    [["winograd2d", ...strided], /stride 2 is not 1/],
    [["winograd1d", ...PROBLEM, "--flush", "-1"], /flush/],
  ];
  for (const [args, expected] of refusals) {
    await refuses(["plan", "--algorithm", ...args], expected);
  }
});

import assert from "#assert";
import { deno, ROOT } from "../../../tests/cli.ts";

Deno.test("the program that times libraries refuses wrong arguments in a sentence", async () => {
  for (
    const [args, message] of [
      [["foo", "resnet3x3"], /^peers: libraries: expected tfjs, .*\n$/],
      [["wgconv"], /^peers: suites: expected one at least, .*\n$/],
      [["wgconv", "resnet3x3", "--dtype", "i8"], /^peers: --dtype: expected f32, f16.*\n$/],
    ] as const
  ) {
    const program = `${ROOT}bench/peers/webgpu/peers.ts`;
    const { code, stderr } = await deno(["run", "-A", "--no-check", program, ...args]);
    assert.equal(code, 2);
    assert.match(stderr, message);
  }
});

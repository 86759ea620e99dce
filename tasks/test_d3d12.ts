/**
 * `deno task test:d3d12`: a small case of each algorithm and operation on Direct3D 12, computed and held against FP64, with the
 * smallest tiles, since Microsoft's compiler takes half a minute and more for a kernel of larger ones. Windows is Wine in the
 * Debian of tasks/mesa26.sh (`WGCONV_MESA26`, else `~/.cache/wgconv/mesa26`); adapter 0 is its GPU, which lavapipe computes for.
 * Slow: ten minutes. Exits with 1 where a case fails.
 */
const LAYER = "mb1ic4ih6oc4kh3ph1";
const BENCH = ["--op", "fwd,bwd-data,bwd-filter", "--runs", "1", "--algorithm"];
const CASES: readonly (readonly string[])[] = [
  ["bench", `g4${LAYER}`, "--layout", "nchw", ...BENCH, "direct,depthwise"],
  [
    ...["bench", LAYER, "--layout", "nhwc", "--policy", "tiny", ...BENCH],
    "implicit-gemm,im2col,im2win,im2win-fused,winograd2d-nonfused",
  ],
  [
    ...["bench", LAYER, "--layout", "nhwc", "--policy", "8x8x4_4x4", ...BENCH],
    "winograd1d,winograd2d",
  ],
  [
    ...["conv", "--problem", LAYER, "--layout", "nhwc", "--op", "bwd-filter", "--algorithm"],
    ...["winrs", "--pair", "a4n3r2", "--policy", "16x16x4_4x4"],
  ],
  ["gemm", "--size", "33,17,40", "--policy", "tiny"],
];

const NOT_ALLOWED = 75;
const root = Deno.env.get("WGCONV_MESA26") ?? `${Deno.env.get("HOME")}/.cache/wgconv/mesa26`;

async function run(command: string, args: readonly string[]): Promise<number> {
  return (await new Deno.Command(command, { args: [...args] }).spawn().status).code;
}

let failed = await run(Deno.execPath(), ["task", "--quiet", "bundle"]) === 0 ? 0 : 1;
for (const args of failed > 0 ? [] : CASES) {
  const code = await run("sh", ["tasks/d3d12.sh", root, ...args, "--adapter", "0"]);
  if (code === NOT_ALLOWED) {
    console.log("Direct3D 12: left out, since chroot is not allowed here");
    break;
  }
  if (code !== 0) failed++;
}
console.log(`Direct3D 12: ${failed} of ${CASES.length} commands failed`);
Deno.exit(failed > 0 ? 1 : 0);

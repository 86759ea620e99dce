import assert from "#assert";
import { temporaryDirectory } from "../../tests/cli.ts";
import { refuses, succeeds } from "../../tests/support/in_process.ts";
import { parseSuite } from "./suite.ts";

const LAYER = "mb1ic4ih5oc4kh3";

/** What a suite's problems are run as, and what of it is left aside. */
function readings(text: string) {
  const skips: string[] = [];
  const problems = parseSuite(text, "s", "fwd", undefined, {
    onSkip: (what) => void skips.push(what),
  });
  const said = problems.map(({ run }) => {
    const types = run?.types?.map(({ dtype, outDtype }) => [dtype, outDtype].join(">"));
    return [run?.ops, types, run?.layouts].map((list) => list?.join() ?? "-").join(" ");
  });
  return [said, skips];
}

Deno.test("parseSuite() applies benchdnn's --dir, --dt and tags to the problems below them", () => {
  const cases: [text: string, said: string[], skips: string[]][] = [
    [LAYER, ["- - -"], []],
    [`--dir=FWD_D ${LAYER} --dir=bwd_w,BWD_D ${LAYER}`, ["fwd - -", "bwd-filter,bwd-data - -"], []],
    [`--dir=FWD_B,FWD_I ${LAYER}`, ["fwd - -"], ["the bias of FWD_B (--dir)"]],
    [`--dir=BWD_WB ${LAYER}`, ["bwd-filter - -"], ["the bias of BWD_WB (--dir)"]],
    [`--dt=f32 ${LAYER}`, ["- f32> -"], []],
    [`--dt=f16:f16:f32,s8:s8:s32 ${LAYER}`, ["- f16>f32,i8> -"], []],
    [
      `--dt=f32,s8:s8:s8,s8:s8:u8,u8:s8:s32 ${LAYER}`,
      ["- f32> -"],
      ["s8:s8:s8 (--dt)", "s8:s8:u8 (--dt)", "u8:s8:s32 (--dt)"],
    ],
    [`--dt=f32,bf16:bf16:f32,f8_e4m3 ${LAYER}`, ["- f32>,bf16>f32 -"], ["f8_e4m3 (--dt)"]],
    [
      `--dt=f64 ${LAYER} ${LAYER} --dt=f16 ${LAYER}`,
      ["-  -", "-  -", "- f16> -"],
      ["f64 (--dt)"],
    ],
    [`--cfg=f16f16f32 ${LAYER} --reset ${LAYER}`, ["- f16>f32 -", "- - -"], []],
    [`--stag=axb --dtag=any ${LAYER}`, ["- - nhwc"], []],
    [`--stag=abx,nhwc --wtag=any ${LAYER}`, ["- - nchw,nhwc"], ["--wtag=any"]],
    [`--dtag=ndhwc ${LAYER} --stag=any --dtag=any ${LAYER}`, ["- - nhwc", "- - -"], []],
    [`--stag=axb --dtag=abx ${LAYER}`, ["- - nhwc"], ["outputs in nchw (--dtag)"]],
    [`--stag=aBx16b ${LAYER}`, ["- - -"], ["the layout abx16b (--stag)"]],
    [
      `--attr-post-ops=relu --skip-impl=ref -v1 ${LAYER}`,
      ["- - -"],
      ["--attr-post-ops=relu", "--skip-impl=ref", "-v1"],
    ],
  ];
  for (const [text, said, skips] of cases) assert.deepEqual(readings(text), [said, skips], text);
});

Deno.test("parseSuite() refuses values that benchdnn does not know either", () => {
  const refused: [text: string, message: RegExp][] = [
    ["--dir=forward", /expected --dir=FWD_B, a list of FWD_D, FWD_I, .*, at column 1/],
    ["--dt=float", /expected --dt=f32, a list of types/],
    ["--dri=FWD_D", /the option --dri is not part of a suite, did you mean --dir\?/],
    ["--algorithm=direct", /--algorithm is not part of a suite.*on the command line/],
  ];
  for (const [text, message] of refused) assert.throws(() => parseSuite(text, "s"), message);
});

Deno.test("bench runs what a suite says, the command line before it, and counts what it ignores", async () => {
  using folder = temporaryDirectory();
  const path = `${folder.path}/s`;
  Deno.writeTextFileSync(
    path,
    `--dir=BWD_D --stag=axb --attr-post-ops=relu ${LAYER}\n--dt=f64 ${LAYER}n"other"\n`,
  );
  const bench = ["bench", "--suite", path, "--device", "cpu", "--runs", "1", "--fill-ms", "0"];
  const ran = async (...more: string[]) => {
    const { stdout, stderr } = await succeeds([...bench, ...more, "--json"]);
    const [, ...cases] = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
    return [cases.map(({ op, layout, dtype }) => `${op} ${layout} ${dtype}`), stderr] as const;
  };
  const [cases, stderr] = await ran();
  assert.deepEqual(cases, ["bwd-data nhwc f32"]);
  assert.match(
    stderr,
    /^wgconv: ignored in suites: --attr-post-ops=relu, f64 \(--dt\); 1 problem of unsupported types left out$/m,
  );
  const [other] = await ran("--op", "fwd", "--dtype", "f32");
  assert.deepEqual(other, ["fwd nhwc f32", "fwd nhwc f32"]);
  Deno.writeTextFileSync(path, `--dt=f64 ${LAYER}`);
  await refuses(bench, /holds no problem .*; .*1 problem of unsupported types left out$/m);
});

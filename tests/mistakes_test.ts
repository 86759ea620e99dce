import assert from "#assert";
import { EXIT } from "../src/errors.ts";
import { writeNpy, writeNpz } from "../src/npy/mod.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { tensor } from "../src/tensor/tensor.ts";
import { temporaryDirectory, wgconv } from "./cli.ts";
import { MISTAKES } from "./mistakes.ts";
import { succeeds, wgconvHere } from "./support/in_process.ts";

const TENSORS = {
  "x.npy": [1, 3, 8, 8],
  "w.npy": [4, 3, 3, 3],
  "last.npy": [1, 8, 8, 3],
  "lastw.npy": [4, 5, 5, 3],
  "five.npy": [1, 5, 8, 8],
  "b.npy": [3],
} as const;

const TEXTS = {
  "words.txt": "mb1ic3ih8oc4kh3 x\n",

  "suite.txt": "mb1ic3ih8oc4kh3\nmb1ic3hi8oc4kh3\n",
  "limits.json": "maxBufferSize = 3",
  "list.json": "[1, 2]",
  "none.jsonl": "",
  "case.jsonl": '{"schema":1,"kind":"case"}\n',
} as const;

Deno.test("typical mistakes exit 2 with a message that names value, place and next step", async () => {
  assert.ok(MISTAKES.length >= 60, `${MISTAKES.length} mistakes`);
  using folder = temporaryDirectory();
  const at = (name: string) => `${folder.path}/${name}`;
  for (const [name, shape] of Object.entries(TENSORS)) {
    await writeNpy(at(name), fillTensor("f32", shape, "uniform01", 1));
  }
  await writeNpy(`${at("a.npz")}:x`, fillTensor("f32", [1, 3, 8, 8], "uniform01", 1));
  await writeNpz(at("zip.npz"), {
    x: fillTensor("f32", [1], "normal", 1),
    y: fillTensor("f32", [1], "normal", 2),
  });
  Deno.renameSync(at("zip.npz"), at("zip.npy"));
  await writeNpy(at("bytes.npy"), tensor("u8", [2, 2], Uint8Array.of(217, 1, 2, 3)));
  Deno.writeFileSync(at("picture.npy"), Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a));
  Deno.mkdirSync(at("dir.jsonl"));
  for (const name of ["circle.npy", "circle.jsonl"]) Deno.symlinkSync(name, at(name));
  for (const [name, text] of Object.entries(TEXTS)) Deno.writeTextFileSync(at(name), text);
  const poor: string[] = [];
  for (const [line, ...parts] of MISTAKES) {
    const args = line.split(" ").map((word) =>
      /\.(np[yz]|png|txt|jsonl?)(:|$)/.test(word) ? at(word) : word
    );
    const { code, stderr } = await wgconvHere(args);
    const message = stderr.replaceAll(at(""), "");
    const missing = parts.filter((part) => !message.includes(part));
    if (code !== EXIT.usage) missing.push(`exit ${code}`);
    if (!/^wgconv: [^\n]+\n( {2}[^\n]*\n)*$/.test(message)) missing.push("one sentence");
    if (missing.length > 0) {
      poor.push(`${line}\n  ${message.trim()}\n  lacks ${missing.join(" | ")}`);
    }
  }
  assert.equal(poor.join("\n"), "");
});

Deno.test("values of options are read in letters of any case", async () => {
  const line =
    "plan --problem MB1ic3ih8oc4kh3 --layout NHWC --op BWD-Data --algorithm Direct --json";
  const { stdout } = await succeeds(line.replace("MB", "mb").split(" "));
  const { layout, op, algorithm } = JSON.parse(stdout);
  assert.deepEqual([layout, op, algorithm], ["nhwc", "bwd-data", "direct"]);
});

Deno.test("words that stand in the place of a file are read in letters of any case", async () => {
  const [plan, check] = [
    "plan --problem mb1ic3ih8oc4kh3 --limits DEFAULT --device-model H200",
    "check --device cpu --op fwd --layout nchw --match pointwise --baseline NONE",
  ];
  await succeeds(plan.split(" "));
  await succeeds(check.split(" "));
  await succeeds("conv --problem mb1ic3ih8oc4kh3 --tuning NONE".split(" "));
});

Deno.test("devices reads its backend in letters of any case", async () => {
  // In a process of its own: `devices` names drivers in the environment, which all tests share.
  const { stdout, stderr } = await wgconv(["devices", "--backend", "WGPU", "--json"]);
  assert.equal(JSON.parse(stdout).backend, "wgpu", stderr);
});

Deno.test("help finds a command's command", async () => {
  const { stdout } = await succeeds(["help", "tensor", "make"]);
  assert.match(stdout, /^Usage: wgconv tensor make /);
});

Deno.test("fewer splits than asked for are told", async () => {
  const problem = "--problem mb1ic64ih4oc64kh3ph1 --algorithm implicit-gemm --layout nhwc";
  const line = `plan ${problem} --splits 64 --max-workspace 160KiB --json`;
  const { stdout, stderr } = await wgconvHere(line.split(" "));
  assert.equal(stderr, "");
  const { notes } = JSON.parse(stdout) as { notes: string[] };
  assert.ok(notes.some((note) => /^fewer splits than asked for: \d+ of 64/.test(note)), `${notes}`);
});

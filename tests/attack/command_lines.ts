import {
  allCommands,
  type CommandNode,
  commandTree,
  type ValueKind,
} from "../../src/cli/command_tree.ts";
import { wholeProgram } from "../../src/cli/program.ts";
import { Draw } from "./draw.ts";
import { attackedProgram, attackFolder } from "./folder.ts";
import { commandAttack, type Ended, holdEnded, runInProcess } from "./in_process.ts";
import { SAMPLE_FILES } from "./sample_files.ts";

/** Every so manieth command line is a process of its own. */
const PROCESS_EVERY = 20;
/** Share of lines that may compute on the device: it takes most of the time. */
const ON_DEVICE = 0.03;

/** The words of command lines, one a line. */
function commandLines(text: string): string[][] {
  return text.trim().split("\n").map((line) => line.trim().split(" "));
}

/** Values that no option asks for. */
const HOSTILE = [
  ...`
  0 -1 -0 1e999 NaN Infinity 1.5 0x10 ١٢ 9007199254740993 99999999999999999999999999
  4294967296 65536 undefined null __proto__ constructor toString hasOwnProperty all auto none
  - -- --help = , ,,, 1,2,3,4,5,6,7 1x1x1 1/0 0/1 F( F(0,3) F(2,3) F(4x4,3x3) F(14x14,3x3)
  F(99999999,3) F(2x2x2x2,3x3x3x3) F(1000000x1000000,3x3) a8n6r3 a8n3r6,a4n3r2 a999n1r1 ( [a-
  (a+)+$ % 101% ä 日本語 🦕 ../../etc/passwd /dev/null /dev/full /proc/self/mem folder
  folder/none/x.npy x.npy/y.npy both.npz both.npz:x both.npz:none both.npz: mb1ic4ih8oc4kh3ph1`
    .trim().split(/\s+/),
  "",
  " ",
  "\u001b[2J",
  "a\u0007b",
  "a\nb",
  "a\rb",
  "\u202egnp",
  "\u0000",
  "\ud800",
  "'",
  '"',
  "$(touch x)",
  "`id`",
  `both.npz:${"m".repeat(500)}`,
  "x".repeat(300),
  "x".repeat(5000),
  "9".repeat(400),
  "mb1ic4ih8oc4kh3ph1".repeat(40),
];

/** Descriptors: small ones, and such as no machine can hold. */
const DESCRIPTORS = [
  "mb1ic4ih8oc4kh3ph1",
  "mb2ic3ih7oc5kh3sh2ph1",
  "g2mb1ic4ih8oc4kh2",
  "mb1ic2iw9oc3kw3",
  "mb1ic2id4ih4iw4oc2kd2kh2kw2",
  "mb0ic4ih8oc4kh3ph1",
  "mb1ic0ih8oc4kh3ph1",
  "mb1ic4ih8oc4oh99kh3ph1",
  "mb1ic4ih8oc4kh33",
  "g3mb1ic4ih8oc4kh3",
  "mb1ic4ih8oc4kh3sh0",
  "mb1ic4ih8oc4kh3dh-1",
  "mb1ic4ih8oc4kh3ph99999999999",
  "mb99999999ic99999999ih99999999oc99999999kh3",
  "mb4294967296ic1ih1oc1kh1",
  "mb1ic1,2,3ih8oc1:9:2kh3",
  "mb1:9:0ic1ih8oc1kh3",
  'mb1ic4ih8oc4kh3n"\u001b[31m"',
  'mb1ic4ih8oc4kh3n"',
  "mb",
  "ic4",
  "mb1ic4ih8oc4kh3kh3",
  "mb1ic3hi8oc4kh3",
  "mb1ic4ih8oc4kh3ph1xyz",
];

const SIZES = [
  "8,8,8",
  "5,6,7",
  "1,1,1",
  "0,4,4",
  "3,3",
  "99999999,99999999,1",
  "4,4,4294967296",
  "1e3,2,2",
];

/** What options of these names take, beside what they refuse. */
const FITTING: Readonly<Record<string, readonly string[]>> = {
  problem: DESCRIPTORS,
  descriptor: DESCRIPTORS,
  size: SIZES,
  shape: ["1,4,8,8", "scalar", "0", "3,0,2", "1,1,1,1,1,1,1,1,1", "99999999999,9999999999"],
  "input-size": ["8,8", "8", "9,9"],
  "filter-size": ["3,3", "3", "2,2"],
  stride: ["1", "2", "1,2"],
  padding: ["0", "1", "1,1", "1,0,1,0"],
  dilation: ["1", "2"],
  groups: ["1", "2", "4"],
  splits: ["1", "2", "3", "1000000"],
  segments: ["1", "2", "1000000"],
  policy: ["auto", "tiny", "small", "wide", "64x32x8_8x8"],
  tile: ["auto", "F(2x2,3x3)", "F(4x4,3x3)", "F(2,3)"],
  flush: ["0", "64"],
  seed: ["0", "1", "9007199254740991"],
  filter: ["one", "."],
  shard: ["1/2", "2/2"],
  alpha: ["1", "-2.5", "1e38"],
  beta: ["0", "2", "4294967296"],
  "max-workspace": ["64MB", "0", "1", "1000000GiB"],
  "max-bound-ratio": ["10", "1e9"],
  runs: ["1", "2"],
  "fill-ms": ["0", "1"],
  spread: ["1%", "0.5"],
  provider: ["wgconv", "a,b"],
  threshold: ["5%", "0"],
  margin: ["2%", "0"],
  by: ["best", "algorithm"],
  only: ["fwd", "none", "fwd,nchw"],
  title: ["a title", "<script>"],
  baseline: ["baseline.json", "none", "wgconv"],
  tuning: ["tuning.jsonl", "none"],
  limits: ["default", "limits.json", "text"],
  length: ["9", "1000000"],
  range: ["0,1", "-1,1"],
  index: ["0", "5"],
  channel: ["0", "5"],
  without: ["prefetch", "unroll,peel"],
  with: ["double-buffer"],
  batch: ["1", "3"],
};

/** Options whose large values are what was asked for, and take as long. */
const LONG = ["runs", "fill-ms"];

const FILES = [
  ...Object.keys(SAMPLE_FILES),
  "none.npy",
  "folder",
  "new.npy",
  "new.npz",
  "new.jsonl",
  "-",
];

/** Lines that do something, to be spoilt. */
const GOOD = commandLines(`
  tensor make new.npy --shape 2,3
  tensor info x.npy both.npz
  tensor convert x.npy new.npy --dtype f16
  tensor diff x.npy dy.npy
  tensor show x.npy new.png --channel 0
  transform F(2,3)
  transform F(4x4,3x3) --format decimals
  report run.jsonl
  report run.jsonl --format csv
  compare run.jsonl other.jsonl
  history run.jsonl other.jsonl --output new.html
  plan --problem mb1ic4ih8oc4kh3ph1
  plan --input x.npy --filter w.npy --padding 1
  conv --problem mb1ic4ih8oc4kh3ph1 --device cpu
  conv --input x.npy --filter w.npy --device cpu --output new.npy
  conv --op bwd-data --grad-output dy.npy --filter w.npy --padding 1 --device cpu
  gemm --size 8,8,8 --device cpu
  gemm --a a.npy --b b.npy --device cpu --output new.npy
  help conv
  completions bash`);

/** The same on the device. */
const ON_DEVICE_LINES = commandLines(`
  conv --problem mb1ic4ih8oc4kh3ph1 --runs 1
  conv --input x.npy --filter w.npy --runs 1 --output new.npy
  conv --input blank.npy --filter sharpen.npy --chunk 1 --runs 1
  gemm --a infinite.npy --b b.npy --activation tanh --runs 1
  gemm --size 8,8,8 --runs 1
  bench mb1ic4ih8oc4kh3ph1 --algorithm direct --runs 1 --fill-ms 0 --jsonl new.jsonl
  check --suite suite.txt --algorithm direct --op fwd --layout nchw --baseline none
  tune mb1ic4ih8oc4kh3ph1 --algorithm direct --policy tiny --runs 1 --output new.jsonl
  devices`);

/** Commands that open a device whatever they are given, and stay away from random lines. */
const DEVICE_COMMANDS = ["conv", "gemm", "bench", "check", "tune", "devices"];

/** Draws command lines over all commands and options. */
function lineMaker(root: CommandNode): (draw: Draw) => string[] {
  const commands = allCommands(root);
  const byName = new Map(commands.map((command) => [command.path.slice(1).join(" "), command]));
  const valueOf = (draw: Draw, name: string, value: ValueKind): string => {
    const long = LONG.includes(name);
    if (draw.chance(0.3)) {
      const hostile = draw.pick(HOSTILE);
      return long && /^\d{2,}$/.test(hostile) ? "-1" : hostile;
    }
    const fitting = FITTING[name];
    if (fitting && draw.chance(0.8)) return draw.pick(fitting);
    if (value.kind === "choice") return draw.pick(value.choices);
    if (value.kind === "list") {
      return draw.times(draw.int(1, 2), () => draw.pick(value.choices)).join(",");
    }
    if (value.kind === "file" || draw.chance(0.3)) return draw.pick(FILES);
    return long ? "1" : `${draw.int(0, 20)}`;
  };
  return (draw) => {
    const device = draw.chance(ON_DEVICE);
    const begun = draw.chance(0.6) || device;
    const args = begun ? [...draw.pick(device ? ON_DEVICE_LINES : GOOD)] : [];
    let command = begun
      ? byName.get(args.slice(0, 2).join(" ")) ?? byName.get(args[0]!) ?? root
      : draw.pick(commands);
    if (!begun) {
      args.push(...command.path.slice(1));
      if (draw.chance(0.05)) args.splice(0, args.length, draw.pick(HOSTILE));
      for (const argument of command.arguments) {
        for (let count = draw.int(0, 2); count > 0; count--) {
          args.push(valueOf(draw, "file", argument));
        }
      }
    }
    if (command.options.length === 0) command = root;
    for (let count = draw.int(begun ? 0 : 1, 4); count > 0; count--) {
      const option = draw.pick(command.options);
      const name = option.names.at(-1)!;
      if (name === "--search" || name === "--backend") continue;
      const spelled = draw.chance(0.05) ? name.slice(0, -1) : name;
      if (option.value === undefined) args.push(spelled);
      else {
        const text = valueOf(draw, name.slice(2), option.value);
        if (draw.chance(0.8)) args.push(spelled, text);
        else args.push(`${spelled}=${text}`);
      }
    }
    if (draw.chance(0.1)) args.splice(draw.int(0, args.length), 0, draw.pick(HOSTILE));
    if (draw.chance(0.05) && args.length > 1) args.splice(draw.int(0, args.length - 1), 1);
    // Without a device asked for, what would compute on one does so on the CPU, or not at all.
    if (!device && DEVICE_COMMANDS.includes(args[0]!)) {
      if (args[0] === "conv" || args[0] === "gemm") args.push("--device", "cpu");
      else if (args[0] !== "devices") args.push("--seed", "x");
    }
    return args;
  };
}

/** Random command lines through `main()`, some as processes. */
export const COMMAND_LINES = commandAttack("command-lines", 60, async (seed) => {
  const make = lineMaker(commandTree(await wholeProgram()));
  return {
    commandOf: (number) => ({
      args: make(new Draw(seed, "command-lines", number)),
      files: SAMPLE_FILES,
    }),
    async run({ args }, number) {
      const alone = number % PROCESS_EVERY === 0 && !args.some((arg) => arg.includes("\0"));
      const outcome = holdEnded(await (alone ? runAsProcess : runInProcess)(args), { args });
      return alone ? `${outcome} as processes` : outcome;
    },
  };
});

/** Runs a command line as users do. */
async function runAsProcess(args: readonly string[]): Promise<Ended> {
  const folder = attackFolder();
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: attackedProgram(folder, new URL("../../main.ts", import.meta.url), args),
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

/** Faults that are put into the system under a command, drawn from a seed. */
import { Draw } from "./draw.ts";

/** Shares of the kinds of faults: what opens a device or a process takes longer. */
const SHARES = { write: 0.8, device: 0.14, signal: 0.06 };

/** A command that writes a file, and what is at that place before. */
export interface WriteCase {
  readonly args: readonly string[];
  readonly output: string;
}

const SMALL = "mb1ic4ih8oc4kh3ph1";
const CHECK = "check --suite suite.txt --op fwd --layout nchw --algorithm direct --baseline none";

/** Commands whose writes fail; OUTPUT is what they write. */
const WRITES = [
  "tensor make OUTPUT --shape 40,50",
  "tensor convert x.npy OUTPUT --dtype f64",
  "tensor show x.npy OUTPUT --channel 0",
  "transform F(4x4,3x3) --output OUTPUT",
  "report run.jsonl --format csv --output OUTPUT",
  "report run.jsonl --format html --output OUTPUT",
  "conv --input x.npy --filter w.npy --device cpu --output OUTPUT",
  "gemm --a a.npy --b b.npy --device cpu --output OUTPUT",
];

/** The same where a device computes. */
const DEVICE_WRITES = [
  `bench ${SMALL} --algorithm direct --runs 1 --fill-ms 0 --jsonl OUTPUT`,
  `${CHECK} --junit OUTPUT`,
  `${CHECK} --jsonl OUTPUT`,
  `tune ${SMALL} --algorithm direct --policy tiny --runs 1 --output OUTPUT`,
];

/** Commands during which the device is lost. */
const DEVICE_LINES = [
  `conv --problem ${SMALL} --algorithm implicit-gemm --policy tiny --runs 2`,
  "gemm --size 8,8,8 --policy tiny --runs 2",
  `bench ${SMALL} mb1ic4ih9oc4kh3ph1 --algorithm direct --runs 2 --fill-ms 0`,
  CHECK,
];

/** Commands that a signal ends. */
const SIGNALLED_LINES = [
  "tensor make new.npy --shape 3000,3000 --fill normal --force",
  "conv --problem mb2ic16ih56oc16kh3ph1 --device cpu --check none --output new.npy --force",
];

export type Operation = "write" | "sync" | "rename" | "open";

export type Fault =
  | {
    readonly kind: "write";
    readonly one: WriteCase;
    readonly at: Operation;
    readonly after: number;
    readonly old: boolean;
  }
  | { readonly kind: "full"; readonly one: WriteCase }
  | { readonly kind: "device"; readonly args: readonly string[]; readonly after: number }
  | {
    readonly kind: "signal";
    readonly args: readonly string[];
    readonly signal: "SIGINT" | "SIGTERM" | "SIGHUP";
    readonly ms: number;
  };

export function faultOf(seed: number, number: number): Fault {
  const draw = new Draw(seed, "faults", number);
  const at = draw.word() / 2 ** 32;
  if (at < SHARES.write) {
    const line = draw.pick(draw.chance(0.05) ? DEVICE_WRITES : WRITES);
    const writing = (output: string): WriteCase => ({
      args: line.split(" ").map((word) => word === "OUTPUT" ? output : word),
      output,
    });
    if (draw.chance(0.1)) return { kind: "full", one: writing("/dev/full") };
    return {
      kind: "write",
      one: writing("new.npy"),
      at: draw.pick(["write", "write", "sync", "rename", "open"] as const),
      after: draw.pick([0, 0, 1, 2, draw.int(0, 10)]),
      old: draw.chance(0.5),
    };
  }
  if (at < SHARES.write + SHARES.device) {
    return { kind: "device", args: draw.pick(DEVICE_LINES).split(" "), after: draw.int(0, 60) };
  }
  return {
    kind: "signal",
    args: draw.pick(SIGNALLED_LINES).split(" "),
    signal: draw.pick(["SIGINT", "SIGTERM", "SIGHUP"] as const),
    // The commands take some 200 ms on an idle machine.
    ms: draw.int(20, 300),
  };
}

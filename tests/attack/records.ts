import { Finding } from "./attack.ts";
import { Draw } from "./draw.ts";
import { type Command, commandAttack, holdEnded, runInProcess } from "./in_process.ts";
import { mutateBytes, spoilValue } from "./mutate.ts";
import { BASELINE, recordsText, SAMPLE_FILES, TUNING } from "./sample_files.ts";

/** Share of cases whose reader opens a device first. */
const ON_DEVICE = 0.08;

/** Damages a file of records: a value in one of its documents, or its bytes. */
function damage(draw: Draw, text: string): string | Uint8Array {
  if (draw.chance(0.3)) {
    const bytes = new TextEncoder().encode(text);
    return mutateBytes(draw, bytes, new TextEncoder().encode(recordsText(3)));
  }
  const whole = text.startsWith("{\n");
  const documents = whole ? [text] : text.split("\n").filter((line) => line !== "");
  for (let count = draw.int(1, 3); count > 0; count--) {
    const at = draw.int(0, documents.length - 1);
    switch (whole ? 9 : draw.int(0, 9)) {
      case 0:
        documents.splice(at, 0, documents[draw.int(0, documents.length - 1)]!);
        break;
      case 1:
        documents[at] = draw.pick(["null", "[]", "1", '"kind"', "{}", '{"kind":"case"}', "{", ""]);
        break;
      case 2:
        documents.reverse();
        break;
      default:
        documents[at] = spoilText(draw, documents[at]!, whole);
    }
  }
  return documents.join("\n") + (draw.chance(0.9) ? "\n" : "");
}

function spoilText(draw: Draw, text: string, indented: boolean): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // It was spoilt before.
    return text;
  }
  const spoilt = JSON.stringify(spoilValue(draw, value), null, indented ? 1 : undefined);
  // Numbers that JavaScript has no value of.
  return draw.chance(0.1) ? spoilt.replace(/:\d+(\.\d+)?/, ":1e999") : spoilt;
}

const SMALL = "mb1ic4ih8oc4kh3ph1";

/** Commands that read records. */
const READERS = [
  ...["table", "csv", "tsv", "markdown"].map((format) => `report damaged --format ${format}`),
  "report run.jsonl damaged --format html",
  "compare run.jsonl damaged",
  "compare damaged run.jsonl --json",
  "compare damaged run.jsonl --markdown",
  `plan --problem ${SMALL} --limits damaged`,
];
const CHECK = "check --suite suite.txt --match one --op fwd --layout nchw --algorithm direct";
/** Commands that open a device, and what they read. */
const DEVICE_READERS: readonly (readonly [line: string, text: string])[] = [
  [
    `bench ${SMALL} --algorithm direct --runs 1 --fill-ms 0 --jsonl damaged --resume`,
    recordsText(1),
  ],
  [`${CHECK} --baseline damaged`, BASELINE],
  [`${CHECK} --baseline damaged --update`, BASELINE],
  [`conv --problem ${SMALL} --runs 1 --tuning damaged`, TUNING],
  [`tune ${SMALL} --algorithm direct --policy tiny --runs 1 --output damaged`, TUNING],
];

/** A damaged file, and a command that reads it. */
function commandOf(seed: number, number: number): Command {
  const draw = new Draw(seed, "records", number);
  const command = (line: string, text: string) => ({
    args: line.split(" "),
    files: { ...SAMPLE_FILES, damaged: damage(draw, text) },
  });
  if (!draw.chance(ON_DEVICE)) return command(draw.pick(READERS), recordsText(1));
  if (!draw.chance(0.2)) {
    const [line, text] = draw.pick(DEVICE_READERS);
    return command(line, text);
  }
  const args = ["conv", "--problem", SMALL, "--runs", "1"];
  return { args, files: SAMPLE_FILES, cache: damage(draw, TUNING) };
}

/** Damaged records, tuning files and baselines, read by the commands that take them. */
export const RECORDS = commandAttack("records", 60, (seed) => ({
  commandOf: (number) => commandOf(seed, number),
  shown: () => ["damaged"],
  async run({ args, cache }) {
    const ended = await runInProcess(args);
    const outcome = holdEnded(ended, { args });
    // What is only remembered must stop nothing.
    if (cache !== undefined && ended.code !== 0) {
      throw new Finding(`a damaged cache ends it with ${ended.code}: ${ended.stderr.trim()}`);
    }
    return outcome;
  },
}));

import assert from "#assert";
import { ENVIRONMENT } from "../../tests/support/test_records.ts";
import type { ReportRecord } from "../report/record.ts";
import { commandWrites, ExitCode } from "./failure.ts";
import { openRecords, type StreamOptions } from "./record_stream.ts";

const LINE = `${JSON.stringify(ENVIRONMENT)}\n`;
const RECORD = ENVIRONMENT as unknown as ReportRecord;

/** Runs a body with a path in a folder of its own; nothing but the path's file may be left in it. */
function withPath(body: (path: string) => void) {
  const folder = Deno.makeTempDirSync();
  try {
    body(`${folder}/out.jsonl`);
    const left = [...Deno.readDirSync(folder)].map(({ name }) => name);
    assert.deepEqual(left.filter((name) => name !== "out.jsonl" && name !== "link"), []);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

function open(path: string, options: StreamOptions = {}) {
  return openRecords(path, commandWrites(), options);
}

Deno.test("openRecords() changes nothing until the first record, and leaves no empty file", () => {
  withPath((path) => {
    open(path)[Symbol.dispose]();
    assert.throws(() => Deno.statSync(path), Deno.errors.NotFound);
    Deno.writeTextFileSync(path, "# a suite\n");
    open(path, { force: true })[Symbol.dispose]();
    assert.equal(Deno.readTextFileSync(path), "# a suite\n");
    using records = open(path, { force: true });
    records.write(RECORD);
    assert.equal(Deno.readTextFileSync(path), LINE);
  });
});

Deno.test({
  name: "openRecords() makes what a link leads to, and leaves the link",
  ignore: Deno.build.os === "windows",
  fn() {
    withPath((path) => {
      const link = path.replace("out.jsonl", "link");
      Deno.symlinkSync("out.jsonl", link);
      open(link)[Symbol.dispose]();
      assert.throws(() => Deno.statSync(path), Deno.errors.NotFound);
      using records = open(link);
      records.write(RECORD);
      assert.equal(Deno.readTextFileSync(path), LINE);
      assert.ok(Deno.lstatSync(link).isSymlink);
    });
  },
});

Deno.test("openRecords() refuses a file that is not empty, and says what may be done", () => {
  withPath((path) => {
    Deno.writeTextFileSync(path, LINE);
    assert.throws(() => open(path), {
      name: "TypeError",
      message: `Cannot write ${path}: it is not empty, --force overwrites it`,
    });
    assert.throws(() => open(path, { resume: false }), {
      message: `Cannot write ${path}: it is not empty, --resume continues it, ` +
        "--force overwrites it",
    });
    assert.equal(Deno.readTextFileSync(path), LINE);
  });
});

Deno.test("openRecords() lets one writer at a file at a time, by whatever name", () => {
  withPath((path) => {
    const first = open(path);
    const link = path.replace("out.jsonl", "link");
    Deno.symlinkSync(path, link);
    for (const name of [path, link]) {
      assert.throws(() => open(name, { force: true, resume: true }), {
        name: "Busy",
        message: `Cannot write ${name}: another program is writing records to it`,
      });
    }
    first.write(RECORD);
    // Who asks for no lock loses nothing either.
    Deno.writeTextFileSync(path, LINE, { append: true });
    first.write(RECORD);
    first[Symbol.dispose]();
    using second = open(link, { resume: true });
    assert.equal(second.previous?.environment.adapter, "TestGPU");
    second.write(RECORD);
    assert.equal(Deno.readTextFileSync(path), LINE.repeat(4));
  });
});

Deno.test("openRecords() resumes behind the last whole line, ended or not", () => {
  withPath((path) => {
    const rests: [string, string][] = [
      ["", LINE + LINE],
      ['{"schema":1,"kind":"ca', LINE + LINE],
      [LINE.trimEnd(), LINE + LINE + LINE],
    ];
    for (const [rest, expected] of rests) {
      Deno.writeTextFileSync(path, LINE + rest);
      open(path, { resume: true })[Symbol.dispose]();
      assert.equal(Deno.readTextFileSync(path), LINE + rest);
      using records = open(path, { resume: true });
      records.write(RECORD);
      assert.equal(Deno.readTextFileSync(path), expected);
    }
  });
});

Deno.test("openRecords() reads what it resumes through the schema, and keeps a file that is none", () => {
  withPath((path) => {
    const record = {
      schema: 1,
      kind: "case",
      provider: "p",
      problem: "q",
      op: "fwd",
      dtype: "f32",
    };
    const cases: [Record<string, unknown>, string][] = [
      [
        { ...record, verdict: "perhaps" },
        'verdict is "perhaps", expected "pass", "fail", "none" or "error"',
      ],
      [{ ...record, time_ms: {} }, "time_ms.median is missing"],
      [{ ...record, time_ms: { median: "1" } }, 'time_ms.median is "1", expected a number'],
      [{ ...record, accuracy: 1 }, "accuracy is 1, expected an object"],
      [{ ...record, schema: 2 }, "the record is of version 2, this wgconv reads 1"],
      [{ ...record, problem: null }, "problem is null, expected a text"],
    ];
    for (const [bad, message] of cases) {
      const text = `${LINE}${JSON.stringify(bad)}\n`;
      Deno.writeTextFileSync(path, text);
      assert.throws(
        () => open(path, { resume: true }),
        (error: unknown) =>
          error instanceof TypeError &&
          error.message.startsWith(`Cannot read ${path}:2: ${message}`),
      );
      assert.equal(Deno.readTextFileSync(path), text);
    }
    Deno.writeTextFileSync(path, `${JSON.stringify(record)}\n`);
    assert.throws(() => open(path, { resume: true }), {
      message: `Cannot resume: ${path}:1: expected the environment of a run`,
    });
  });
});

Deno.test({
  name: "a record that cannot be written is said once, and is the exit code of a success alone",
  ignore: Deno.build.os !== "linux",
  fn() {
    for (const [found, expected] of [[0, 2], [1, 1], [5, 5]] as const) {
      const writes = commandWrites();
      using records = openRecords("/dev/full", writes);
      for (let i = 0; i < 3; i++) records.write(RECORD);
      assert.throws(
        () => writes.conclude(found),
        (error: unknown) => error instanceof ExitCode && error.code === expected,
      );
    }
  },
});

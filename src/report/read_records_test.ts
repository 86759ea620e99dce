import assert from "#assert";
import { caseLine, ENVIRONMENT } from "../../tests/support/test_records.ts";
import { parseRecords } from "./read_records.ts";

Deno.test("parseRecords() reads wgconv's lines and takes the device from the environment", () => {
  const text = [JSON.stringify(ENVIRONMENT), caseLine({}), caseLine({ device: "other" }), ""]
    .join("\n");
  const { environments, cases } = parseRecords(text, "a.jsonl");
  assert.equal(environments[0]!.adapter, "TestGPU");
  assert.deepEqual(cases.map(({ device }) => device), ["TestGPU", "other"]);
  assert.deepEqual(cases[0]!.time_ms!.samples.length, 9);
});

Deno.test("parseRecords() reads a peer's line, which says less", () => {
  const line = '{"schema": 1, "kind": "case", "provider": "cudnn", "problem": "ic4ih8oc4kh3", ' +
    '"op": "fwd", "dtype": "f32", "time_ms": {"median": 2, "min": 1}, "accuracy": {"mare": null}}';
  const { cases } = parseRecords(`${line}\r\n`, "peer.jsonl");
  const [record] = cases;
  assert.equal(record!.verdict, "none");
  assert.equal(record!.layout, "");
  assert.equal(record!.workspace_bytes, null);
  assert.deepEqual(record!.time_ms!.samples, []);
});

Deno.test("parseRecords() ignores kinds and fields it does not know", () => {
  const text = '{"schema":1,"kind":"weather","sun":true}\n' + caseLine({ novelty: [1] });
  const { cases } = parseRecords(text, "a.jsonl");
  assert.equal(cases.length, 1);
  assert.ok(!("novelty" in cases[0]!));
});

Deno.test("parseRecords() names file and line of what it cannot read", () => {
  const line = caseLine({});
  const refusals: [text: string, error: RegExp][] = [
    [`${line}\n${line.slice(0, 50)}`, /^SyntaxError: Cannot read a:2: the last record is cut off/],
    [`${line.slice(0, 50)}\n${line}`, /^SyntaxError: Cannot read a:1: the line ends in the mid/],
    [
      `${line}\n{"a":NaN}`,
      /^SyntaxError: Cannot read a:2: the line has NaN, which JSON lacks; write null$/,
    ],
    ["{kind:1}", /^SyntaxError: Cannot read a:1: the line is no JSON: \{kind:1\}$/],
    ["3\n", /^TypeError: Cannot read a:1: no record, expected an object with a "kind"/],
    [
      caseLine({ schema: 2 }),
      /^TypeError: Cannot read a:1: the record is of version 2, this wgconv reads 1/,
    ],
    [
      caseLine({ time_ms: { median: "x" } }),
      /^TypeError: Cannot read a:1: time_ms.median is "x", expected a number/,
    ],
    ...[{ median: 0 }, { median: 1, samples: [1, -1] }, { median: 1, min: 0 }].map((time_ms) =>
      [
        caseLine({ time_ms }),
        /^TypeError: .* a:1: time_ms\.\S+ is -?[01], expected more than 0$/,
      ] as [
        string,
        RegExp,
      ]
    ),
    [caseLine({ op: undefined }), /^TypeError: Cannot read a:1: op is missing/],
  ];
  for (const [text, error] of refusals) assert.throws(() => parseRecords(text, "a"), error);
});

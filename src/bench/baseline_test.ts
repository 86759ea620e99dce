import assert from "#assert";
import {
  type Baseline,
  type BaselineCase,
  baselineDiff,
  parseBaseline,
  printBaseline,
  regressions,
} from "./baseline.ts";

const CASE: BaselineCase = { max_bound_ratio: 6, rel_l2: 2e-7, mare: 1e-7, checked: 1000 };
const BASELINE: Baseline = {
  schema: 1,
  kind: "baseline",
  version: "0.1.0",
  adapter: "a device",
  fill: "uniform01",
  seed: 1,
  cases: { "fwd b": CASE, 'fwd a"x"': { ...CASE, mare: null } },
};

Deno.test("parseBaseline() reads what printBaseline() prints: a case a line, in order", () => {
  const text = printBaseline(BASELINE);
  assert.deepEqual(parseBaseline(text, "b.json"), BASELINE);
  assert.equal(text.split("\n").findIndex((line) => line.includes("fwd b")), 9);
  assert.deepEqual(JSON.parse(printBaseline({ ...BASELINE, cases: {} })).cases, {});
});

Deno.test("parseBaseline() names the line where a baseline is cut off, no JSON, or no baseline", () => {
  const text = printBaseline(BASELINE);
  const message = (broken: string) => {
    try {
      parseBaseline(broken, "b.json");
    } catch (error) {
      if (error instanceof SyntaxError) return error.message;
    }
    return "no SyntaxError";
  };
  const place = "Cannot read the baseline: b.json:";
  assert.equal(message(text.slice(0, -30)), `${place}10: the line ends in the middle`);
  for (let end = 0; end < text.trimEnd().length; end++) {
    assert.match(message(text.slice(0, end)), /^Cannot read the baseline: b\.json:\d+: /);
  }
  assert.equal(message(""), `${place}1: the line ends in the middle`);
  assert.equal(message(text.replace('"seed": 1', '"seed" 1')), `${place}7: the line is no JSON`);
  assert.equal(
    message(text.replace('"fwd b": {"max_bound_ratio":6', '"fwd b": {"max_bound_ratio":"6"')),
    `${place}10: cases.fwd b.max_bound_ratio is "6", expected a number`,
  );
  assert.equal(message("{}"), `${place}1: schema is missing`);
  assert.match(
    message(text.replace('"schema": 1', '"schema": 2')),
    /:2: it is of version 2, this wgconv reads 1$/,
  );
});

Deno.test("regressions() finds what is beyond the factor and beyond noise", () => {
  const now = (change: Partial<BaselineCase>) => regressions({ ...CASE, ...change }, CASE);
  assert.deepEqual(now({}), []);
  assert.deepEqual(now({ rel_l2: 3.3e-7, max_bound_ratio: 13 }), []);
  assert.deepEqual(now({ rel_l2: 3.5e-7 }), [
    "relative L2 error 3.5e-7 was 2e-7 in the baseline, 3.38e-7 allowed",
  ]);
  assert.match(now({ max_bound_ratio: 14 })[0]!, /^bound ratio 14 was 6 in the baseline, 13\.5/);
  const exact = { ...CASE, rel_l2: 0, max_bound_ratio: 0 };
  assert.deepEqual(regressions({ ...CASE, rel_l2: 5e-8, max_bound_ratio: 1.9 }, exact), []);
  assert.equal(regressions({ ...CASE, rel_l2: 7e-8, max_bound_ratio: 2.1 }, exact).length, 2);
  const few = { ...CASE, checked: 4 };
  assert.deepEqual(regressions({ ...few, rel_l2: 8e-7 }, few), []);
});

Deno.test("baselineDiff() tells new, gone and changed cases", () => {
  const after = { ...BASELINE, cases: { "fwd b": { ...CASE, rel_l2: 3e-7 }, "fwd c": CASE } };
  assert.deepEqual(baselineDiff(BASELINE, after), [
    '- fwd a"x"',
    "~ fwd b rel_l2 2e-7 -> 3e-7",
    '+ fwd c {"max_bound_ratio":6,"rel_l2":2e-7,"mare":1e-7,"checked":1000}',
  ]);
  assert.equal(baselineDiff(undefined, after).length, 2);
});

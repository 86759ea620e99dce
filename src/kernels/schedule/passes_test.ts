import assert from "#assert";
import { BARRIER, block, forLoop, printStatements, text } from "../ir/tree.ts";
import { multiBuffer, registerDoubleBuffer } from "./buffers.ts";
import type { LoopTree, Pass } from "./loop_tree.ts";
import { pipeline } from "./pipeline.ts";
import { prefetch } from "./prefetch.ts";
import { splitLast } from "./split_last.ts";
import { stripMine } from "./strip_mine.ts";
import { countTrips, hideTrips, unroll } from "./trip_count.ts";

/** A loop whose step is a letter a statement. */
const PLAIN: LoopTree = {
  state: [],
  sums: [text("sums")],
  main: [
    forLoop("step", "first_step", "end_step", [
      block([text("fetch")], "", "fetch"),
      text("store", "store"),
      BARRIER,
      text("advance", "advance"),
      text("multiply", "multiply"),
      text("more", "multiply"),
      BARRIER,
    ]),
  ],
  finish: [text("finish")],
  output: [text("output")],
};

/** What passes make of it, in a line: loops by their bounds, `|` is a barrier. */
function after(...passes: readonly Pass[]): string {
  const { state, sums, main, finish, output } = passes.reduce((tree, pass) => pass(tree), PLAIN);
  return printStatements([...state, ...sums, ...main, ...finish, ...output])
    .replaceAll(/\/\/.*/g, "")
    .replaceAll(/for \(var (\w+) = (.*?); \w+ < (.*?); .*?\)/g, "$1 $2..$3")
    .replaceAll("workgroupBarrier();", "|")
    .replaceAll(/\s+/g, " ").trim();
}

const PREFETCH = prefetch("fetch");

Deno.test("prefetch: the first tile is fetched before the loop, the next one behind the store", () => {
  assert.equal(
    after(PREFETCH),
    "{ fetch } sums step first_step..end_step { store | { advance fetch } multiply more | } finish output",
  );
});

Deno.test("tiles in turn: one barrier a step", () => {
  assert.equal(
    after(PREFETCH, multiBuffer(2, "turn")),
    "{ fetch } sums step first_step..end_step " +
      "{ let half = turn % 2u; store | { advance fetch } multiply more } finish output",
  );
});

Deno.test("register double buffers: the barrier follows the fetch, a tile is stored before the loop", () => {
  const buffer = {
    store: "store",
    fetchSecond: "fetch2",
    advance: "advance2",
    loadFragments: "load",
  };
  assert.equal(
    after(PREFETCH, registerDoubleBuffer("turn", buffer)),
    "{ fetch } sums { let fill = 0u; store fetch2 } | { let fill = 0u; load } " +
      "step first_step..end_step " +
      "{ let fill = 1u - turn % 2u; store { advance2 fetch } | multiply more } finish output",
  );
});

Deno.test("the last step stands behind the loop, fetches nothing and has products of its own", () => {
  const last = "{ let step = last_step; store | less } finish output";
  const step = "store | { advance fetch } multiply more |";
  const head = "{ fetch } sums let last_step = end_step - 1u;";
  assert.equal(
    after(PREFETCH, splitLast(["less"], 9)),
    `${head} step first_step..last_step { ${step} } ${last}`,
  );
  assert.equal(
    after(PREFETCH, splitLast(["less"], 2)),
    `${head} { let step = first_step; ${step} } ${last}`,
  );
  assert.equal(after(PREFETCH, splitLast(["less"], 1)), `${head} ${last}`);
});

Deno.test("strip-mining: parts of the loop clear the sums and move them on; a last step is of the last part", () => {
  const flush = { interval: "4u", clear: "clear", stored: true };
  const head = "sums var next_step = first_step;";
  const part = "let part_step = next_step; next_step = min(end_step, part_step + 4u);";
  const leave = "if (next_step >= end_step) { break; } |";
  const step = "{ { fetch } store | advance multiply more | }";
  assert.equal(
    after(stripMine(flush)),
    `${head} loop { ${part} let again = part_step > first_step; clear ` +
      `step part_step..next_step ${step} finish output ${leave} }`,
  );
  assert.equal(
    after(splitLast(["less"], Infinity), stripMine({ ...flush, stored: false })),
    "sums var next_step = first_step; let last_step = end_step - 1u; " +
      `loop { ${part} clear step part_step..min(next_step, last_step) ${step} ` +
      "if (next_step == end_step) { let step = last_step; { fetch } store | less } " +
      `finish ${leave} } output`,
  );
});

Deno.test("trip counts: counted, hidden, and unrolled with rows that end otherwise", () => {
  const step = "{ fetch } store | advance multiply more |";
  const rest = "finish output";
  assert.equal(
    after(countTrips("3u", "longer")),
    `sums turn 0u..3u { let step = first_step + turn; ${step} } ` +
      `if (longer) { let step = first_step + 3u; ${step} } ${rest}`,
  );
  assert.equal(
    after(hideTrips),
    "sums if (t == 0u) { loop_end = end_step; } " +
      `step first_step..workgroupUniformLoad(&loop_end) { ${step} } ${rest}`,
  );
  assert.equal(
    after(unroll(3, "begin", { before: ["first"], after: [] })),
    "sums round first_step..end_step { begin " +
      `{ let step = round + 0u; ${step.replace("multiply more", "first")} } ` +
      `turn 1u..3u { let step = round + turn; ${step} } } ${rest}`,
  );
});

Deno.test("software pipelining: the back edge lies within the products", () => {
  assert.equal(
    after(PREFETCH, pipeline({ rows: 1, early: false })),
    "{ fetch } sums if (first_step < end_step) { { store } | multiply " +
      "step first_step..end_step - 1u { { advance fetch } more | { store } | multiply } " +
      "more | } finish output",
  );
  assert.equal(
    after(PREFETCH, pipeline({ rows: 1, early: true })),
    "{ fetch } sums if (first_step < end_step) { " +
      "{ let step = first_step; { store } | { advance fetch } multiply } " +
      "step first_step + 1u..end_step { more | { store } | { advance fetch } multiply } " +
      "more | } finish output",
  );
});

Deno.test("passes compose: parts of a pipelined loop keep their bounds", () => {
  const flush = { interval: "4u", clear: "clear", stored: true };
  assert.match(
    after(PREFETCH, stripMine(flush), pipeline({ rows: 1, early: true })),
    /clear if \(part_step < next_step\) \{ .* step part_step \+ 1u\.\.next_step /,
  );
});

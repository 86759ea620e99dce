import assert from "#assert";
import { BARRIER, forLoop, printStatements, text } from "../ir/tree.ts";
import type { LoopTree } from "./loop_tree.ts";
import { applyPasses, traceMainloops, traceText } from "./trace.ts";

const PLAIN: LoopTree = {
  state: [],
  sums: [text("sum = 0.0;")],
  main: [
    forLoop("step", "first_step", "end_step", [
      text("  load();\n  // of both\n  more();\n  last();", "store"),
      BARRIER,
      text("multiply();", "multiply"),
    ]),
  ],
  finish: [],
  output: [text("store();")],
};

const write = ({ main, output }: LoopTree) => printStatements([...main, ...output]);

Deno.test("a trace has the plain tree, and what each pass changes of it", () => {
  const hoist = (tree: LoopTree): LoopTree => ({ ...tree, sums: [text("sum = 1.0;")] });
  const plain = applyPasses(PLAIN, [], write);
  const [wgsl, trace] = traceMainloops(() => applyPasses(PLAIN, [["hoist", hoist]], write));
  assert.equal(wgsl, plain);
  assert.deepEqual([...trace.keys()], [wgsl]);
  assert.equal(
    traceText(trace.get(wgsl)!),
    `plain loop
  sums:
    sum = 0.0;
  main:
    for step in first_step..end_step {
      load(); // store
      more();
      … 1 more
      workgroupBarrier();
      multiply(); // multiply
    }
  output:
    store();

after hoist
  sums:
-   sum = 0.0;
+   sum = 1.0;`,
  );
});

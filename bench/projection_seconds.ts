/**
 * What a projection takes of one core.
 *
 *     deno run -A bench/projection_seconds.ts [repeats]
 */
import process from "node:process";
import { convSubject, referenceInputs } from "../src/run/conv_subject.ts";
import { fillOperand, fillOperands } from "../src/run/operands.ts";
import {
  accumulationLength,
  OPERATIONS,
  resultTensor,
  tensorShape,
} from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { projectConv } from "../src/reference/projection.ts";
import { markdownTable } from "../src/report/table.ts";
import { filterLayoutFor, LAYOUTS } from "../src/tensor/layout.ts";
import { elementCount } from "../src/tensor/tensor.ts";

/** Milliseconds of processor time: what others run on the machine does not count. */
function coreMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** What a projection takes of one core, the least of some repeats. */
async function seconds(repeats: number): Promise<void> {
  const rows: string[][] = [];
  for (const text of ["mb8ic64ih224oc64kh3ph1", "mb32ic256ih14oc256kh3ph1"]) {
    for (const op of OPERATIONS) {
      for (const layout of LAYOUTS) {
        const problem = { ...parseDescriptor(text), op };
        const layouts = { layout, filterLayout: filterLayoutFor(layout) };
        const subject = convSubject({ problem, ...layouts });
        const inputs = referenceInputs(problem, fillOperands(subject, "normal", 1), layouts);
        const which = resultTensor(op);
        const result = fillOperand(subject.result, { fill: "normal", seed: 2 });
        const where = { ...inputs, result: which === "filter" ? layouts.filterLayout : layout };
        let reference = Infinity, own = Infinity;
        for (let repeat = 0; repeat < repeats; repeat++) {
          const start = coreMs();
          const projection = await projectConv(problem, where, { seed: 1, workers: 0 });
          const between = coreMs();
          projection.project(result);
          reference = Math.min(reference, between - start);
          own = Math.min(own, coreMs() - between);
        }
        const products = elementCount(tensorShape(problem, op === "fwd" ? "output" : "input")) *
          accumulationLength(problem) /
          (op === "fwd" ? problem.outChannels : problem.inChannels);
        rows.push([
          text,
          op,
          layout,
          `${reference.toFixed(0)} ms`,
          op === "bwd-filter" ? "-" : `${(reference / products * 1e6).toFixed(2)} s`,
          `${(result.length / own / 1e6).toFixed(2)}e9`,
        ]);
      }
    }
  }
  console.log(markdownTable(
    [
      { title: "problem" },
      { title: "operation" },
      { title: "layout" },
      { title: "reference", align: "right" },
      { title: "a 10⁹ products", align: "right" },
      { title: "outputs a second", align: "right" },
    ],
    rows,
  ));
}

await seconds(Number(Deno.args[0] ?? 5));

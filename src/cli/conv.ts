import { EXIT } from "../errors.ts";
import { caseReport } from "../report/case_report.ts";
import { writeNpy } from "../npy/mod.ts";
import { memoryShape } from "../run/operands.ts";
import { resultTensor } from "../problem/conv_problem.ts";
import { tensor } from "../tensor/tensor.ts";
import { computeOnCpu, computeOnGpu } from "./compute.ts";
import { convOptions } from "./conv_options.ts";
import { commandWrites } from "./failure.ts";
import { printer } from "./output.ts";
import { proveOutputs } from "./outputs.ts";
import { inputFiles, openSubject } from "./subject.ts";
import { tuningFile } from "./tuning_options.ts";

/** `wgconv conv`: one convolution or gradient, checked and timed. */
export function convCommand() {
  return convOptions()
    .action(async (options) => {
      const writes = commandWrites();
      await proveOutputs([{ option: "--output", path: options.output, kind: "npy" }], {
        inputs: [...inputFiles(options), tuningFile(options.tuning)],
        force: options.force,
      });
      using subject = await openSubject(options);
      const compute = options.device === "cpu" ? computeOnCpu : computeOnGpu;
      const { record, result } = await compute(subject, options);
      const out = printer(options.output === "-" ? "stderr" : "stdout");
      out.line(options.json ? JSON.stringify(record) : caseReport(record));
      const { output } = options;
      if (output !== undefined) {
        const shape = memoryShape(subject.problem, resultTensor(options.op), subject);
        await writes.attempt(() => writeNpy(output, tensor("f32", shape, result)));
      }
      writes.conclude(record.verdict === "fail" ? EXIT.accuracy : EXIT.ok);
    });
}

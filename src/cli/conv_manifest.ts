import { expectPlanned, isRefusal, type Refusal } from "../algorithms/refusal.ts";
import { EXIT, InputTypeError } from "../errors.ts";
import { printableMessage } from "../printable.ts";
import { defaultFill } from "../run/operands.ts";
import { isUnproved } from "../report/record.ts";
import type { CaseColumnName } from "../report/case_columns.ts";
import type { ReadCase } from "../report/record_schema.ts";
import { recordTable } from "../report/record_table.ts";
import { textTable } from "../report/table.ts";
import { cpuExecutor } from "../run/executor.ts";
import { compute } from "./compute.ts";
import type { ConvOptions } from "./conv_options.ts";
import { openLayer, readManifest } from "./dump_manifest.ts";
import { commandWrites } from "./failure.ts";
import { openGpuExecutor } from "./open_gpu.ts";
import { printer, reporter, terminalColumns } from "./output.ts";
import { sayFailedCase } from "./print_case.ts";
import { planningOptions } from "./problem_options.ts";
import { readTuning } from "./tuning_options.ts";

const DOING = "Cannot convolve";
const COLUMNS: readonly CaseColumnName[] = [
  ...["problem", "op", "dtype", "algorithm", "time", "mare", "l2", "bound", "verdict"] as const,
];

/**
 * Computes every layer of a manifest on its own activations: a row each, or a record with --json. Products run beside the
 * convolutions. Layers that cannot be planned as asked are named on stderr.
 *
 * @throws {ExitCode} 1 where a result failed. {RangeError | UnsupportedError} where no layer can be planned.
 */
export async function convManifest(path: string, options: ConvOptions): Promise<void> {
  const { dtype, seed, json, device, backend, adapter, fill = defaultFill(dtype) } = options;
  if (dtype === "i8") {
    throw new InputTypeError(`${DOING}: the layers of ${path} are not of int8, --dtype i8 must go`);
  }
  const { manifest: { layers }, folder } = readManifest(path);
  if (layers.length === 0) throw new InputTypeError(`${DOING}: ${path} has no layer`);
  const writes = commandWrites();
  const planning = planningOptions(options);
  const features = dtype === "f16" ? ["shader-f16"] : [];
  using executor = device === "cpu"
    ? cpuExecutor()
    : await openGpuExecutor({ backend, adapter }, features, planning);
  const tuned = options.algorithm === "auto" && device === "gpu" ? readTuning(options) : undefined;
  const cases: ReadCase[] = [];
  const refusals: Refusal[] = [];
  for (const layer of layers) {
    using opened = await openLayer(layer, folder, dtype, DOING);
    const { subject, files } = opened;
    const isProduct = "gemm" in subject.asked;
    const own = isProduct ? planning : { ...planning, algorithm: options.algorithm };
    const planned = executor.plan(subject, own);
    if (isRefusal(planned)) {
      refusals.push(planned);
      reporter("stderr").message(
        printableMessage(`wgconv: not computed: ${layer.name}: ${planned.text}`),
      );
      continue;
    }
    const { record } = await compute({
      subject,
      source: { files, fill, seed },
      algorithm: isProduct ? "gemm" : options.algorithm,
      planning: own,
      tuned,
      executor,
    }, options);
    cases.push(record);
    sayFailedCase(record);
    if (json) printer("stdout").line(JSON.stringify(record));
  }
  if (refusals.length === layers.length) expectPlanned(refusals[0]!);
  if (!json) {
    const { columns, rows } = recordTable(cases, COLUMNS);
    reporter("stdout").line(textTable(columns, rows, undefined, terminalColumns("stdout")));
  }
  writes.conclude(cases.some(isUnproved) ? EXIT.accuracy : EXIT.ok);
}

import { EXIT, InputTypeError } from "../errors.ts";
import { openNpy, type TensorSource } from "../npy/mod.ts";
import { isUnproved } from "../report/record.ts";
import { convSubject } from "../run/conv_subject.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import { defaultFill } from "../run/operands.ts";
import { channelFiles, inputFiles, openConvFor, operandFlags } from "./conv_files.ts";
import { commandWrites } from "./failure.ts";
import { fuzz } from "./fuzz.ts";
import { convCases, fuzzOptions, gemmCases } from "./fuzz_options.ts";
import { gemmFiles, openGemm } from "./gemm_files.ts";
import { printer, reporter } from "./output.ts";
import { proveOutputs } from "./outputs.ts";
import { printCase } from "./print_case.ts";
import { openRecords } from "./record_stream.ts";
import { givenOptions, refuseOptions, refuseWords } from "./refuse.ts";
import {
  convResultSource,
  openAs,
  productSource,
  type VerifiedFiles,
  verifyFiles,
  verifyManifest,
} from "./verify_files.ts";
import { type ClaimOptions, verifyGemmOptions, verifyOptions } from "./verify_options.ts";
import { CPU_DEVICE, environmentRecord } from "../report/environment.ts";
import { CHANNEL_OPERANDS } from "../problem/epilogue.ts";

const DOING = "Cannot verify";
/** What says the problem of files, or is one. */
const CONV_FILES = [
  ...[
    "input",
    "filter",
    "gradOutput",
    ...CHANNEL_OPERANDS,
    "output",
    "stride",
    "padding",
    "dilation",
    "groups",
  ],
  ...["filterLayout", "inputSize", "filterSize", "fill", "as", "inputZeroPoint"],
  ...["filterZeroPoint", "outputZeroPoint"],
];
/** What a manifest says of each layer, or has no place for. */
const SAID_BY_LAYERS = [
  ...["op", "layout", "activation", "stride", "padding", "dilation", "groups", "filterLayout"],
  ...["inputSize", "filterSize", "fill", "seed", "as", "scale", "inputZeroPoint"],
  ...["filterZeroPoint", "outputZeroPoint", "problem", "saveFailures", "provider"],
  ...["run", "worker", "kernel"],
];
const GEMM_FILES = ["a", "b", "c", "bias", "residual", "output", "fill", "as"];

/** `wgconv verify`: a result of another program, checked. */
export function verifyCommand() {
  return verifyOptions()
    // Options behind `gemm` are its own.
    .enablePositionalOptions()
    .helpCommand(false)
    .addCommand(verifyGemmCommand())
    .action(async (options, command) => {
      refuseWords(DOING, command.args, operandFlags(options.op));
      const fuzzing = fuzzOptions(command, CONV_FILES);
      if (options.manifest !== undefined) {
        const said = givenOptions(command, SAID_BY_LAYERS);
        refuseOptions(`${DOING}: --manifest says what the layers are`, said);
        return await concludeManifest(options);
      }
      if (fuzzing !== undefined) {
        const cases = await convCases({ ...options, ...fuzzing }, command);
        return await fuzz(cases, { ...options, ...fuzzing }, command);
      }
      await conclude(inputFiles(options), options, async (output) => {
        using opened = await openAs(
          (dtype) =>
            openConvFor(DOING, { ...options, dtype: dtype === "i8" ? "i8" : "f32" }, [output]),
          { output, claim: options.arithmetic, inputs: inputFiles(options) },
        );
        const dtype = opened.dtype === "i8" ? "i8" : "f32";
        const stored = ["i8", "u8"].includes(output.dtype)
          ? output.dtype as "i8" | "u8"
          : undefined;
        const subject = convSubject({
          ...opened,
          dtype,
          outDtype: dtype === "i8" ? stored : undefined,
        });
        const { files, form } = opened;
        const { fill = defaultFill(dtype), seed } = options;
        const result = convResultSource(output, subject, form);
        return await verifyFiles(subject, { files, fill, seed }, { output, result }, options);
      });
    });
}

function verifyGemmCommand() {
  return verifyGemmOptions().action(async (options, command) => {
    refuseWords(DOING, command.args, ["--a", "--b", "--output"]);
    const fuzzing = fuzzOptions(command, GEMM_FILES);
    if (fuzzing !== undefined) {
      const all = { ...options, ...fuzzing };
      return await fuzz(gemmCases(all), all, command);
    }
    await conclude(gemmFiles(options), options, async (output) => {
      using opened = await openAs(
        (dtype) => openGemm({ ...options, dtype }, [output]),
        { output, claim: options.arithmetic, inputs: gemmFiles(options), products: true },
      );
      const { dtype, files, problem, shape } = opened;
      const subject = gemmSubject(problem, { dtype });
      const { fill = defaultFill(dtype), seed } = options;
      const result = productSource(output, subject, shape);
      return await verifyFiles(subject, { files, fill, seed }, { output, result }, options);
    });
  });
}

/** Verifies the layers of a manifest, and ends with the exit code of all. */
async function concludeManifest(
  { manifest = "", ...options }: ClaimOptions & {
    readonly manifest?: string | undefined;
    readonly input?: string | undefined;
    readonly filter?: string | undefined;
    readonly gradOutput?: string | undefined;
    readonly bias?: string | undefined;
  },
): Promise<void> {
  const { input, filter, output, jsonl, seed, json } = options;
  refuseOptions(`${DOING}: --manifest names the files`, {
    ...{ input, filter, ...Object.fromEntries(channelFiles(options)), output },
    "grad-output": options.gradOutput,
  });
  const writes = commandWrites();
  await proveOutputs([{ option: "--jsonl", path: jsonl, kind: "records" }], { inputs: [manifest] });
  using records = openRecords(jsonl, writes, { resume: jsonl !== "-" });
  if (jsonl !== undefined && records.previous === undefined) {
    records.write(environmentRecord(CPU_DEVICE, seed));
  }
  const right = await verifyManifest(manifest, options, (record) => {
    records.write(record);
    if (json) printer("stdout").line(JSON.stringify(record));
  });
  writes.conclude(right ? EXIT.ok : EXIT.accuracy);
}

/** Opens the result, verifies it, prints and keeps the record, and ends with its exit code. */
async function conclude(
  inputs: readonly (string | undefined)[],
  options: ClaimOptions,
  verify: (output: TensorSource) => Promise<VerifiedFiles>,
): Promise<void> {
  const { output: path, as, jsonl, seed, json, saveFailures } = options;
  if (path === undefined) {
    throw new InputTypeError(`${DOING}: --output names no file, expected the result to check`);
  }
  if (path === "-" && inputs.includes("-")) {
    throw new InputTypeError(`${DOING}: only one file can come from stdin`);
  }
  const writes = commandWrites();
  await proveOutputs([
    { option: "--jsonl", path: jsonl, kind: "records" },
    { option: "--save-failures", path: saveFailures, kind: "folder" },
  ], { inputs: [...inputs, path] });
  using output = await openNpy(path, { as });
  using records = openRecords(jsonl, writes, { resume: jsonl !== "-" });
  const { record, save } = await verify(output);
  if (jsonl !== undefined && records.previous === undefined) {
    records.write(environmentRecord(CPU_DEVICE, seed));
  }
  records.write(record);
  printCase(record, { json, output: jsonl === "-" ? "-" : undefined });
  const saved = await writes.attempt(save);
  saved?.forEach((line) => reporter(jsonl === "-" ? "stderr" : "stdout").line(line));
  writes.conclude(isUnproved(record) ? EXIT.accuracy : EXIT.ok);
}

/** `wgconv check` and `bench` with faults put into plans. */
import { type CliResult, deno, ROOT } from "../cli.ts";

/** Runs `wgconv <args>` with a fault put into its plans. */
export function faulty(fault: string, args: readonly string[]): Promise<CliResult> {
  return deno(["run", "-A", `${ROOT}tests/faults.ts`, fault, ...args]);
}

/** A few cases of the built-in suite; the fault is in normal_3x3. */
export const SOME = ["--op", "fwd", "--layout", "nhwc", "--algorithm", "implicit-gemm"];
export const FEW = [...SOME, "--match", '"(normal_3x3|pointwise|filter_1x7)"'];
export const CASE = `fwd nhwc f32 implicit-gemm mb2ic32ih10oc32oh10kh3ph1n"normal_3x3"`;

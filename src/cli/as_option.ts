import { InputTypeError } from "../errors.ts";
import { fileDType, type TensorSource } from "../npy/mod.ts";

/** Types that `--as` takes bits as. */
export const AS_DTYPES = ["bf16"] as const;

export const AS_HELP = "bf16: read uint16, int16 and V2 files as bits of bfloat16";

/** @throws {TypeError} where `--as` is given and none of the files that are opened is of such bits. */
export function refuseUnusedAs(
  doing: string,
  as: "bf16" | undefined,
  files: readonly (Pick<TensorSource, "path" | "header" | "dtype"> | undefined)[],
): void {
  const there = files.filter((file) => file !== undefined);
  if (as === undefined || there.some((file) => fileDType(file) === as)) return;
  const types = [...new Set(there.map((file) => `${file.path} is ${fileDType(file)}`))].join(", ");
  throw new InputTypeError(
    `${doing}: --as ${as} reads files of uint16, int16 and V2, ${types || "there are none"}`,
  );
}

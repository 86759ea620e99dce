import { InputRangeError } from "../errors.ts";
import { caseLabel } from "./case_label.ts";
import type { ReadCase } from "./record_schema.ts";

/** Fields that a word of {@linkcode onlyCases} may name, in the order they are looked through. */
const FIELDS: readonly ((record: ReadCase) => string)[] = [
  ({ op }) => op,
  ({ provider }) => provider,
  ({ algorithm }) => algorithm,
  ({ dtype }) => dtype,
  ({ math = "" }) => math,
  ({ layout }) => layout,
  ({ verdict }) => verdict,
  ({ cache = "" }) => cache,
];

/**
 * The cases that words ask for. A word is an operation, provider, algorithm, dtype, math, layout, verdict or cache;
 * any other is a part of problems' names or descriptors. Words of one kind are alternatives, kinds add up:
 * `fwd,bwd-data,nhwc` are the forward and backward-data cases in nhwc.
 *
 * @throws {RangeError} when no case has a word.
 */
export function onlyCases(cases: readonly ReadCase[], words: readonly string[]): ReadCase[] {
  const byField = Map.groupBy(words, (word) => {
    const field = FIELDS.findIndex((of) => cases.some((record) => of(record) === word));
    if (field >= 0) return field;
    if (cases.some((record) => names(record, word))) return FIELDS.length;
    throw new InputRangeError(`Cannot report: no case has "${word}"`);
  });
  return cases.filter((record) =>
    [...byField].every(([field, choices]) =>
      choices.some((word) =>
        FIELDS[field]?.(record) === word || !FIELDS[field] && names(record, word)
      )
    )
  );
}

function names(record: ReadCase, word: string): boolean {
  return record.problem.includes(word) || caseLabel(record).includes(word);
}

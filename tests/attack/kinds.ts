import type { Attack } from "./attack.ts";
import { COMMAND_LINES } from "./command_lines.ts";
import { FAULTS } from "./faults.ts";
import { FILES } from "./files.ts";
import { KERNELS } from "./kernels.ts";
import { MODELS } from "./models.ts";
import { PROBLEMS } from "./problems.ts";
import { RECORDS } from "./records.ts";

/** All attacks. */
export const ATTACKS: readonly Attack[] = [
  FILES,
  COMMAND_LINES,
  RECORDS,
  MODELS,
  KERNELS,
  PROBLEMS,
  FAULTS,
];

export function findAttack(kind: string): Attack {
  const found = ATTACKS.find((attack) => attack.kind === kind);
  if (found) return found;
  throw new TypeError(
    `Cannot attack: there is no kind ${kind}, only ${ATTACKS.map(({ kind }) => kind).join(", ")}`,
  );
}

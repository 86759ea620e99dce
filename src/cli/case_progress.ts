import { formatDuration } from "../report/format.ts";
import { type Progress, progress } from "./output.ts";

/** Shows on a terminal which of how many cases runs, and how long the others will take. */
export interface CaseProgress extends Pick<Progress, "done" | "visible"> {
  /** Says that a case begins: the `index`-th of `count`, from 1. */
  begin(index: number, count: number, what: string): void;
  /** Cases that have ended, and all of them. */
  readonly counts: { readonly ended: number; readonly all: number };
}

/** Begins to count the time. */
export function caseProgress(): CaseProgress {
  const shown = progress();
  const start = performance.now();
  let counts = { ended: 0, all: 0 };
  return {
    get counts() {
      return counts;
    },
    begin(index, count, what) {
      counts = { ended: index - 1, all: count };
      shown.update(
        `case ${index} of ${count}${timeLeft(counts, performance.now() - start)}: ${what}`,
      );
    },
    visible: shown.visible,
    done: () => shown.done(),
  };
}

/** How long what is left will take if it goes on as before; nothing before the first case has ended. */
export function timeLeft(
  { ended, all }: { readonly ended: number; readonly all: number },
  spentMs: number,
): string {
  return ended === 0 ? "" : `, about ${formatDuration(spentMs / ended * (all - ended))} left`;
}

import { formatDuration } from "../report/format.ts";
import { type Progress, progress } from "./output.ts";

/** Shows on a terminal which of how many cases runs, and how long the others will take. */
interface CaseProgress extends Pick<Progress, "done" | "visible"> {
  /** Says that a case begins, or goes on: the `index`-th of `count`, from 1. */
  begin(index: number, count: number, what: string): void;
}

/**
 * Counts the time from the first case on, and anew where a first case begins again.
 *
 * @param noun What is counted.
 * @param before Of them, how many an earlier run has done.
 */
export function caseProgress(noun = "case", before = 0, shown = progress()): CaseProgress {
  let start = performance.now();
  let last = 0;
  return {
    begin(index, count, what) {
      const now = performance.now();
      if (index === 1 && last !== 1) start = now;
      last = index;
      const left = timeLeft({ ended: index - 1, all: count }, now - start);
      shown.update(`${noun} ${before + index} of ${before + count}${left}: ${what}`);
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

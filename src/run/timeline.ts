/** What a command spends its time on. */
type Part =
  /** The program's own start, until the command begins. */
  | "modules"
  /** Outputs are proven and headers of files read. */
  | "files"
  | "device"
  /** Data of files into the host's memory. Where it goes to the device in pieces, that is `upload`. */
  | "read"
  /** The best ways are timed, of a problem that is new to the device. */
  | "tune"
  | "plan"
  | "pipelines"
  /** Buffers are made and filled. */
  | "upload"
  /** How long a tick of the device's clock is. */
  | "clock"
  | "warm-up"
  | "run"
  | "read back"
  | "reference"
  | "check"
  /** All of what is cut along the batch. */
  | "chunks"
  | "write"
  /** The device, and its buffers before. */
  | "close";

/** Times a part: `work`, until its promise settles. */
export type During = <T>(part: Part, work: () => T) => T;

export const untimed: During = (_, work) => work();

/** How long a part took by the wall's clock. */
interface PartTime {
  readonly part: Part;
  /** When it began, since the program's start. */
  readonly start_ms: number;
  /** While it was going on. */
  readonly ms: number;
  /** While nothing else was. */
  readonly alone_ms: number;
}

/** Where the time of a command went. */
export interface Timings {
  /** By their beginnings. */
  readonly parts: readonly PartTime[];
  /** While several parts were going on. */
  readonly overlap_ms: number;
  /** While none was. */
  readonly other_ms: number;
  /** Since the program's start: what parts have alone, `overlap_ms` and `other_ms`. */
  readonly total_ms: number;
}

/** Times the parts of a command. */
interface Timeline {
  readonly during: During;
  /** What was timed until now; a part that is going on ends now. */
  timings(): Timings;
}

interface Span {
  readonly part: Part;
  readonly start: number;
  end: number | undefined;
}

/**
 * Begins to time a command, whose first part was its modules.
 *
 * @param now The clock: milliseconds since the program's start.
 */
export function timeline(now = () => performance.now()): Timeline {
  const spans: Span[] = [{ part: "modules", start: 0, end: now() }];
  return {
    during(part, work) {
      const span: Span = { part, start: now(), end: undefined };
      spans.push(span);
      const end = () => span.end = now();
      let result: ReturnType<typeof work>;
      try {
        result = work();
      } catch (error) {
        end();
        throw error;
      }
      if (result instanceof Promise) result.then(end, end);
      else end();
      return result;
    },
    timings: () => timingsOf(spans, now()),
  };
}

/** Adds up spans until `total`. Spans of a part may overlap each other. */
function timingsOf(spans: readonly Span[], total: number): Timings {
  const whole = spans.map(({ part, start, end = total }) => ({ part, start, end }));
  const moments = [...new Set([0, ...whole.flatMap(({ start, end }) => [start, end]), total])]
    .sort((a, b) => a - b);
  const parts = [...new Set(whole.map(({ part }) => part))];
  const going = new Map(parts.map((part) => [part, { ms: 0, alone: 0 }]));
  let overlap = 0, other = 0;
  for (let place = 1; place < moments.length; place++) {
    const [from, to] = [moments[place - 1]!, moments[place]!];
    const now = new Set(
      whole.filter(({ start, end }) => start <= from && end >= to).map(({ part }) => part),
    );
    for (const part of now) {
      going.get(part)!.ms += to - from;
      if (now.size === 1) going.get(part)!.alone += to - from;
    }
    if (now.size === 0) other += to - from;
    else if (now.size > 1) overlap += to - from;
  }
  return {
    parts: parts.map((part) => ({
      part,
      start_ms: rounded(whole.find((span) => span.part === part)!.start),
      ms: rounded(going.get(part)!.ms),
      alone_ms: rounded(going.get(part)!.alone),
    })),
    overlap_ms: rounded(overlap),
    other_ms: rounded(other),
    total_ms: rounded(total),
  };
}

function rounded(ms: number): number {
  return Number(ms.toPrecision(4));
}

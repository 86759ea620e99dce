/** Channels whose errors are to be compared. */
export interface ChannelErrors {
  /**
   * Adds one output.
   *
   * @param scaledError Its error / Σ|a||b|.
   * @param drift |ref| / Σ|a||b|: 1 where no product cancels another.
   */
  add(channel: number, scaledError: number, drift: number): void;
  /** The channel that stands out most against the median one. */
  worst(): WorstChannel;
}

export interface WorstChannel {
  readonly ratio: number;
  readonly channel: number;
  /** Outputs of that channel, equal ones once. */
  readonly checked: number;
  /** Channels with at least one output. */
  readonly channels: number;
  /** How much less a channel stands out for what is known of its sums, at most: near 1 where channels are alike. */
  readonly unlikeness: number;
}

/** Healthy channels differ by their data: measured 0.81 to 1.14 of the median (docs/accuracy.md). */
const HEALTHY_SPREAD = 1.15;
/** Normal quantile of one false alarm in 10⁵ checks. */
const ALARM_Z = 4.26;
/** How far the median channel itself may lie below its expectation, in its standard deviations. */
const MEDIAN_Z = 3;

/**
 * The variance of errors / Σ|a||b| up to a factor, for `length` products that are not 0 and the square of
 * |sum| / Σ|a||b|.
 */
type ErrorModel = (length: number, driftSquare: number) => number;

/** Channels are alike. */
const PLAIN: ErrorModel = () => 1;
/**
 * Every addition rounds in proportion to the partial sum. Partial sums of random signs wander: in one long chain that
 * makes a variance of about 0.4, whatever its length; a sum that drifts to y adds length·(y / Σ|a||b|)² / 3.
 */
const CHAIN: ErrorModel = (length, driftSquare) => 0.4 + length * driftSquare / 3;
/** Short chains that are summed in turn, as splits of the depth and flushed accumulators are, drift less. */
const BLOCKS: ErrorModel = (length, driftSquare) => 0.4 + Math.sqrt(length) * driftSquare;
/** Chains of a fixed length wander less the more of them there are. */
const shortened = (model: ErrorModel): ErrorModel => (length, driftSquare) =>
  model(length, driftSquare) / length;
const MODELS = [PLAIN, CHAIN, BLOCKS, shortened(PLAIN), shortened(CHAIN), shortened(BLOCKS)];

/**
 * Makes an empty table of `count` channels.
 *
 * Σ|a||b| alone says what a channel's errors should be when channels are alike. Where they are not (one filter
 * sums to 0, the next does not; one has 9 taps that are not zero, the next has 25), a healthy kernel's differ too,
 * in a way that depends on how it sums. So a channel stands out only as far as it does by every one of the
 * models; on channels that are alike they agree.
 *
 * @param unitRoundoff Stands in for a median of 0.
 * @param lengths Products that are not 0 in an output of each channel; without them, Σ|a||b| alone.
 */
export function channelErrors(
  count: number,
  unitRoundoff: number,
  lengths?: ArrayLike<number>,
): ChannelErrors {
  const models = lengths === undefined ? [PLAIN] : MODELS;
  const squares = models.map(() => new Float64Array(count));
  const counts = new Float64Array(count);
  const repeats = repetitions();
  let exact = 0;
  return {
    add(channel, scaledError, drift) {
      // The same sum again says nothing new: constant data must not make few errors look like many.
      if (repeats(channel, scaledError, drift)) return;
      const square = scaledError * scaledError;
      const length = Math.max(1, lengths?.[channel] ?? 1);
      for (let i = 0; i < models.length; i++) {
        squares[i]![channel]! += square / models[i]!(length, drift * drift);
      }
      counts[channel]!++;
      if (scaledError === 0) exact++;
    },
    worst() {
      const channels = counts.filter((n) => n > 0).length;
      const total = counts.reduce((sum, n) => sum + n, 0);
      const mostlyExact = 2 * exact > total;
      const byModel = squares.map((sums) => overMedian(sums, counts, unitRoundoff, mostlyExact));
      let unlikeness = 1;
      let worst = { ratio: 0, channel: 0, checked: 0 };
      let most = -1;
      byModel[0]!.forEach((plain, channel) => {
        const checked = counts[channel]!;
        if (checked === 0) return;
        const ratio = Math.min(...byModel.map((ratios) => ratios[channel]!));
        if (ratio > 0) unlikeness = Math.max(unlikeness, plain / ratio);
        const excess = ratio / noiseAllowance(checked, channels, 1);
        if (excess > most) {
          most = excess;
          worst = { ratio, channel, checked };
        }
      });
      return { ...worst, channels, unlikeness };
    },
  };
}

/**
 * Tells whether an output equals an earlier one of its channel. It remembers the latest of each of 2¹⁶ hashes, so it may
 * miss a repetition, but mistakes nothing for one (by chance one output in 2³²).
 */
function repetitions(): (channel: number, scaledError: number, drift: number) => boolean {
  const bits = 16;
  const seen = new Uint32Array(1 << bits);
  const pair = new Float64Array(2);
  const words = new Uint32Array(pair.buffer);
  return (channel, scaledError, drift) => {
    pair[0] = scaledError;
    pair[1] = drift;
    let place = Math.imul(channel + 1, 0x9e3779b1);
    let mark = ~place;
    for (let i = 0; i < words.length; i++) {
      place = Math.imul(place ^ words[i]!, 0x85ebca6b);
      place ^= place >>> 15;
      mark = Math.imul(mark ^ words[i]!, 0xc2b2ae35);
      mark ^= mark >>> 13;
    }
    // 0 says that there is none yet.
    mark = (mark >>> 0) || 1;
    const at = (place >>> 0) >>> (32 - bits);
    if (seen[at] === mark) return true;
    seen[at] = mark;
    return false;
  };
}

/** Each channel's RMS over the median one's. */
function overMedian(
  squares: Float64Array,
  counts: Float64Array,
  unitRoundoff: number,
  mostlyExact: boolean,
): Float64Array {
  const rms = squares.map((sum, channel) => Math.sqrt(sum / Math.max(1, counts[channel]!)));
  const used = rms.filter((_, channel) => counts[channel]! > 0).sort();
  // The lower median, so that one bad channel of two is seen.
  let base = used[(used.length - 1) >> 1] ?? 0;
  // Integers and the like are mostly exact: there a last place is no sign of a bad channel.
  if (base === 0 || mostlyExact) base = Math.max(base, unitRoundoff);
  return rms.map((value) => value / base);
}

/**
 * What the ratio of one channel's RMS to the median channel's may reach by chance, when each is the RMS of
 * `checked` errors and the largest of `channels` is looked at: the χ² quantile by Wilson and Hilferty's
 * cube root, over the low side of the median, times the spread of healthy kernels. It falls to that spread
 * as `checked` grows; docs/accuracy.md has a table.
 *
 * @param tail How many errors say as little about the RMS as one normal error does: 1 for normal ones.
 */
export function noiseAllowance(checked: number, channels: number, tail: number): number {
  if (channels < 2) return HEALTHY_SPREAD;
  const sigma = Math.sqrt((2 * tail) / (9 * checked));
  const mean = Math.max(1 - sigma * sigma, 0.5);
  // The largest of many: the normal quantile of p / channels, by its tail's leading term.
  const z = Math.sqrt(ALARM_Z * ALARM_Z + 2 * Math.log(channels));
  const low = mean - MEDIAN_Z * sigma * Math.sqrt(Math.PI / (2 * channels));
  return HEALTHY_SPREAD * ((mean + z * sigma) / Math.max(low, mean / 3)) ** 1.5;
}

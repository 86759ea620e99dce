/** Channels whose errors are to be compared. */
export interface ChannelErrors {
  /** Adds one output's error / Σ|a||b|. */
  add(channel: number, scaledError: number): void;
  /** The channel that stands out most against the median one. */
  worst(): WorstChannel;
}

export interface WorstChannel {
  readonly ratio: number;
  readonly channel: number;
  /** Outputs of that channel. */
  readonly checked: number;
  /** Channels with at least one output. */
  readonly channels: number;
}

/** Healthy channels differ by their data: measured 0.81 to 1.14 of the median (docs/accuracy.md). */
const HEALTHY_SPREAD = 1.15;
/** Normal quantile of one false alarm in 10⁵ checks. */
const ALARM_Z = 4.26;
/** How far the median channel itself may lie below its expectation, in its standard deviations. */
const MEDIAN_Z = 3;

/** Makes an empty table of `count` channels; `unitRoundoff` stands in for a median of 0. */
export function channelErrors(count: number, unitRoundoff: number): ChannelErrors {
  const squares = new Float64Array(count);
  const counts = new Float64Array(count);
  let exact = 0;
  return {
    add(channel, scaledError) {
      squares[channel]! += scaledError * scaledError;
      counts[channel]!++;
      if (scaledError === 0) exact++;
    },
    worst() {
      const rms = squares.map((sum, channel) => Math.sqrt(sum / Math.max(1, counts[channel]!)));
      const used = rms.filter((_, channel) => counts[channel]! > 0).sort();
      const channels = used.length;
      const total = counts.reduce((sum, n) => sum + n, 0);
      // The lower median, so that one bad channel of two is seen.
      let base = used[(channels - 1) >> 1] ?? 0;
      // Integers and the like are mostly exact: there a last place is no sign of a bad channel.
      if (base === 0 || 2 * exact > total) base = Math.max(base, unitRoundoff);
      let worst = { ratio: 0, channel: 0, checked: 0, channels };
      let most = -1;
      rms.forEach((value, channel) => {
        const checked = counts[channel]!;
        if (checked === 0) return;
        const ratio = value / base;
        const excess = ratio / noiseAllowance(checked, channels, 1);
        if (excess > most) {
          most = excess;
          worst = { ratio, channel, checked, channels };
        }
      });
      return worst;
    },
  };
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

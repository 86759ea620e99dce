/** Numbers as reports show them. */

/** A time in a unit that suits it: `1.234 ms`. */
export function formatMilliseconds(ms: number): string {
  if (ms >= 1000) return `${significant(ms / 1000)} s`;
  return ms >= 1 ? `${significant(ms)} ms` : `${significant(ms * 1000)} us`;
}

/** A long time, roughly: `40 s`, `3 min`, `2 h 5 min`. */
export function formatDuration(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 100) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 100 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A rate given in GFLOP/s, in TFLOP/s from 1000 on. */
export function formatGflops(gflops: number): string {
  return gflops >= 1000
    ? `${significant(gflops / 1000)} TFLOP/s`
    : `${significant(gflops)} GFLOP/s`;
}

/** Bytes in B, KiB, MiB or GiB. */
export function formatBytes(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return unit === 0 ? `${bytes} B` : `${significant(bytes)} ${units[unit]}`;
}

/** A share of 1 in percent: `1.23 %`, `12.3 %`. */
export function formatShare(share: number): string {
  return `${(100 * share).toFixed(share < 0.1 ? 2 : 1)} %`;
}

/** A count with thousands separated. */
export function formatCount(count: number): string {
  return count.toLocaleString("en-US");
}

/** `1 case`, `2 cases`. */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** An error metric: `2.41e-7`; `-` where there is none. */
export function formatError(value: number | null): string {
  if (value === null) return "-";
  return value === 0 ? "0" : value.toExponential(2);
}

/** Four significant digits, without an exponent for what reports hold. */
export function significant(value: number): string {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const digits = Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(digits, 9));
}

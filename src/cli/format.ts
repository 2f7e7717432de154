const units = ["B", "kB", "MB", "GB", "TB"];

/** `24.3 MB`, decimal units. */
export function formatBytes(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : significant(value)} ${units[unit]}`;
}

/** `25.8M`, for counts of parameters. */
export function formatCount(count: number): string {
  for (const [size, suffix] of [
    [1e12, "T"],
    [1e9, "B"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const) {
    if (count >= size) return `${significant(count / size)}${suffix}`;
  }
  return String(count);
}

/** `3.2 s`, `2:05 min`, `1:02:03 h`. */
export function formatSeconds(seconds: number): string {
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const two = (value: number) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)} h` : `${minutes}:${two(whole % 60)} min`;
}

/** Three digits that say something: `0.0712`, `7.12`, `71.1`, `711`. */
export function significant(value: number): string {
  if (value < 0.9995) return String(Number(value.toPrecision(3)));
  return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

/**
 * Progress of a download: bytes, rate, time left.
 *
 * @module
 */

/** What a progress bar shows. Bytes count the whole pull, files found on disk included. */
export interface Progress {
  /** The file that bytes just came for. */
  readonly file: string;
  readonly receivedBytes: number;
  readonly totalBytes: number;
  /** Over the last few seconds; 0 until known. */
  readonly bytesPerSecond: number;
  /** At that rate; undefined until known. */
  readonly secondsLeft: number | undefined;
}

/** Counts bytes and reports them, at most ten times a second and once at the end. */
export interface ProgressMeter {
  /** `bytes` came over the network for `file`; negative when they have to come again. */
  add(file: string, bytes: number): void;
  /** `bytes` of `file` were on disk already. */
  skip(file: string, bytes: number): void;
}

const WINDOW_MS = 5000;
const INTERVAL_MS = 100;

/** @param now clock in milliseconds. */
export function progressMeter(
  totalBytes: number,
  report: (progress: Progress) => void,
  now: () => number = () => performance.now(),
): ProgressMeter {
  let received = 0;
  let downloaded = 0;
  let reportedAt = Number.NEGATIVE_INFINITY;
  const samples: { at: number; downloaded: number }[] = [{ at: now(), downloaded: 0 }];

  const tell = (file: string) => {
    const at = now();
    if (at - reportedAt < INTERVAL_MS && received < totalBytes) return;
    reportedAt = at;
    samples.push({ at, downloaded });
    while (samples.length > 2 && at - samples[1].at >= WINDOW_MS) samples.shift();
    const seconds = (at - samples[0].at) / 1000;
    const bytesPerSecond = seconds > 0 ? Math.max(0, (downloaded - samples[0].downloaded) / seconds) : 0;
    const secondsLeft = bytesPerSecond > 0 ? (totalBytes - received) / bytesPerSecond : undefined;
    report({ file, receivedBytes: received, totalBytes, bytesPerSecond, secondsLeft });
  };
  return {
    add(file, bytes) {
      received += bytes;
      downloaded += bytes;
      tell(file);
    },
    skip(file, bytes) {
      received += bytes;
      tell(file);
    },
  };
}

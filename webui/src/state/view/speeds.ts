// The speeds of playback. Pure functions.

// From 1/10,000 of the real speed to 10 times.
// prettier-ignore
export const SPEEDS = [
  0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10,
] as const;

export const speedText = (speed: number): string =>
  speed >= 1
    ? `${speed}×`
    : `1/${Math.round(1 / speed)
        .toLocaleString('en')
        .replace(',', ' ')}`;

// In the list of speeds.
export const speedName = (speed: number): string =>
  speed < 1
    ? `slow motion (${speedText(speed)})`
    : `${speedText(speed)} ${speed === 1 ? 'real time' : 'speed'}`;

const READABLE_MS = 4000;

// The speed at which a step can be watched.
export function readableSpeed(stepNs: number): number {
  const limit = stepNs / 1e6 / READABLE_MS;
  return SPEEDS.findLast((speed) => speed <= limit) ?? SPEEDS[0];
}

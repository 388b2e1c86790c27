// Bounds on times in tests count the share of the processors that other programs leave: while they
// leave a tenth, a bound of 2 s is 20 s. On an otherwise idle machine it is 2 s. The same as
// tests/support/fair_clock.h.
import { readFileSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { expect } from 'vitest';

const TICK_MS = 10; // of the kernel's counts: USER_HZ is 100 everywhere
const LEAST_SHARE = 0.05;

// Of all programs, and what a hypervisor gave to other machines.
function busyMs(): number {
  const [, user, nice, system, , , irq, soft, steal] = readFileSync('/proc/stat', 'utf8').split(
    /\s+/,
  );
  const ticks = [user, nice, system, irq, soft, steal].map(Number);
  return TICK_MS * ticks.reduce((sum, one) => sum + one, 0);
}

// Of this process and its descendants: the server and the browser.
function ownMs(): number {
  const parents = new Map<number, number>();
  const times = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    let text: string;
    try {
      text = readFileSync(`/proc/${name}/stat`, 'utf8');
    } catch {
      continue; // it has ended
    }
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    parents.set(Number(name), fields[1] ?? 0);
    times.set(
      Number(name),
      fields.slice(11, 15).reduce((sum, one) => sum + one, 0),
    );
  }
  let ticks = 0;
  for (const [process_, time] of times) {
    let at: number | undefined = process_;
    while (at !== undefined && at !== process.pid) at = parents.get(at);
    if (at === process.pid) ticks += time;
  }
  return TICK_MS * ticks;
}

// Starts a measurement. Returns the share of the processors that others left since then.
export function fairShare(): () => number {
  const [began, busy, own] = [performance.now(), busyMs(), ownMs()];
  return () => {
    const passed = performance.now() - began;
    const others = Math.max(busyMs() - busy - Math.max(ownMs() - own, 0), 0);
    const share = 1 - others / (availableParallelism() * Math.max(passed, 1));
    return Math.min(Math.max(share, LEAST_SHARE), 1);
  };
}

// Waits for a condition, and expects that it took less than `ms`.
export async function within(ms: number, condition: () => Promise<boolean>): Promise<void> {
  const share = fairShare();
  const began = performance.now();
  await expect.poll(condition, { interval: 20 }).toBe(true);
  expect((performance.now() - began) * share()).toBeLessThan(ms);
}

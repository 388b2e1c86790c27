import { describe, expect, it } from 'vitest';
import type { OpenSession } from '../../../src/state/session/open_session';
import { StepOps } from '../../../src/state/session/step_ops';

function opsOf(isRunning: boolean): { ops: StepOps; asked: number[] } {
  const asked: number[] = [];
  const session = {
    id: 's',
    active: { peek: () => isRunning },
    data: { steps: Array.from({ length: 40 }, () => ({ template: 1 })), learnTemplate: () => undefined }, // prettier-ignore
    context: {
      api: {
        ops: (_: string, step: number) => {
          asked.push(step);
          return Promise.resolve({ ok: true, value: [] });
        },
      },
    },
  };
  return { ops: new StepOps(session as unknown as OpenSession), asked };
}

describe('the ops of steps', () => {
  it.each([
    { session: 'recorded', isRunning: false, kept: 12 },
    { session: 'running', isRunning: true, kept: 3 },
  ])('are kept of the last $kept steps of a $session session', async ({ isRunning, kept }) => {
    const { ops, asked } = opsOf(isRunning);
    for (let step = 0; step < 30; step += 1) await ops.load(step);
    const known = Array.from({ length: 30 }, (_, step) => step).filter((step) => ops.known(step));
    expect(known).toEqual(Array.from({ length: kept }, (_, i) => 30 - kept + i));
    await ops.load(29);
    expect(asked).toHaveLength(30);
  });
});

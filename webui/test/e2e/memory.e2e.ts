// The memory of the page while it watches runs.
import type { CDPSession } from 'playwright-core';
import { expect, it } from 'vitest';
import { PageFixture } from './page_fixture';

const fixture = PageFixture.use(() => Promise.resolve(['-c', '8192']));

async function heapBytes(devtools: CDPSession): Promise<number> {
  await devtools.send('HeapProfiler.collectGarbage');
  return (await devtools.send('Runtime.getHeapUsage')).usedSize;
}

// The heap of a session of 400 tokens is larger than that of the page: a session that was not
// released, or a view that collects something with each update, shows after a few runs.
it('the heap stays within 20 % over many watched runs', { timeout: 120_000 }, async () => {
  const { page } = fixture;
  const devtools = await page.context().newCDPSession(page);
  let settled = 0;
  for (let run = 0; run < 6; run += 1) {
    await fixture.runText('Once upon a time', 400);
    await fixture.waitDone();
    await fixture.ops.waitFor();
    if (run === 1) settled = await heapBytes(devtools);
    // Requests and timers of the run may still hold something.
    if (run > 1) await expect.poll(() => heapBytes(devtools)).toBeLessThan(1.2 * settled);
  }
});

// The memory of the page while it watches runs.
import type { CDPSession } from 'playwright-core';
import { expect, it } from 'vitest';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use(() => Promise.resolve(['-c', '8192']));

// The bytes of the page's objects. Compiled code and the browser's own memory are left out: both
// grow with every run for a while, whatever the page keeps.
async function heapBytes(devtools: CDPSession): Promise<number> {
  const chunks: string[] = [];
  const add = ({ chunk }: { chunk: string }) => chunks.push(chunk);
  devtools.on('HeapProfiler.addHeapSnapshotChunk', add);
  await devtools.send('HeapProfiler.collectGarbage');
  await devtools.send('HeapProfiler.takeHeapSnapshot');
  devtools.off('HeapProfiler.addHeapSnapshotChunk', add);
  const { snapshot, nodes } = JSON.parse(chunks.join('')) as {
    snapshot: { meta: { node_fields: string[]; node_types: [string[]] } };
    nodes: number[];
  };
  const fields = snapshot.meta.node_fields;
  const [type, size] = [fields.indexOf('type'), fields.indexOf('self_size')];
  const types = snapshot.meta.node_types[0];
  const leftOut = [types.indexOf('code'), types.indexOf('native')];
  let bytes = 0;
  for (let at = 0; at < nodes.length; at += fields.length)
    if (!leftOut.includes(nodes[at + type] ?? 0)) bytes += nodes[at + size] ?? 0;
  return bytes;
}

// When the page has read what it reads after a run, for example the findings.
async function settledBytes(devtools: CDPSession): Promise<number> {
  let bytes = 0;
  await expect
    .poll(
      async () => {
        const before = bytes;
        bytes = await heapBytes(devtools);
        return Math.abs(bytes - before) / bytes;
      },
      { interval: 1000 },
    )
    .toBeLessThan(0.01);
  return bytes;
}

// The heap of a session of 400 tokens is larger than that of the page: a session that was not
// released, or a view that collects something with each update, shows after a few runs.
it('the heap stays within 20 % over many watched runs', async () => {
  const { page } = fixture;
  const devtools = await page.context().newCDPSession(page);
  let settled = 0;
  for (let run = 0; run < 6; run += 1) {
    await fixture.runText('Once upon a time', 400);
    await fixture.waitDone();
    await fixture.ops.waitFor();
    if (run === 1) settled = await settledBytes(devtools);
    // Requests and timers of the run may still hold something.
    if (run > 1) await expect.poll(() => heapBytes(devtools)).toBeLessThan(1.2 * settled);
  }
});

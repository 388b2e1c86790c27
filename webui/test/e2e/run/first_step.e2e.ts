// What is shown before the first step of a run has ended, and of sessions that did not end by themselves.
import { describe, expect, it } from 'vitest';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use(() =>
  Promise.resolve(['-c', '32768', '-b', '8192', '--ubatch-size', '8192']),
);
const strip = () => fixture.page.locator('.strip-chart');
const status = () => fixture.page.locator('.status');
const LONG = 'Once upon a time there was a little frog. '.repeat(400);

// What was shown while no step had ended.
interface Seen {
  readonly strips: readonly string[];
  readonly texts: readonly string[];
  readonly maps: number;
}

function watch() {
  const strips = new Set<string>();
  const texts = new Set<string>();
  let maps = 0;
  let isOver = false;
  const look = (): void => {
    const counts = document.querySelectorAll('.status > span')[1]?.textContent ?? '';
    if (counts.startsWith('0 steps')) {
      strips.add(document.querySelector('.strip-chart')?.getAttribute('aria-label') ?? '');
      for (const found of document.body.textContent.matchAll(/\S+ \S+, op \d+ of \d+|\S+ \S+, op \d+, [\d.]+ % of the graph/g)) texts.add(found[0]);
      if (document.querySelector('.plane-base')) maps += 1;
    }
    if (!isOver) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  return {
    stop: () => {
      isOver = true;
      return { strips: [...strips], texts: [...texts], maps };
    },
  };
} // prettier-ignore

async function seenOfFirstStep(): Promise<Seen> {
  const { page } = fixture;
  const watched = await page.evaluateHandle(watch);
  await fixture.runText(LONG, 2);
  await fixture.waitDone();
  return watched.evaluate((one) => one.stop());
}

describe('before the first step has ended', () => {
  it('of the first run, the strip has the files of the model, and the running op has its name', async () => {
    const { strips, texts } = await seenOfFirstStep();
    expect(strips).toContainEqual(expect.stringMatching(/^Memory of the model: mapped file \d/));
    // Op and node are those of the graph that the file has afterwards; of a fused op, one of its nodes.
    const { rows: ops } = await fixture.sql<[number, string, string, number]>('SELECT op, operation_type, tensor_name, (SELECT count(*) FROM op WHERE step = 0) FROM op WHERE step = 0'); // prettier-ignore
    const seen = texts.map((text) => /^([A-Z_]+) (\S+), op (\d+), ([\d.]+) % of the graph$/.exec(text)).filter((found) => found !== null); // prettier-ignore
    expect(seen.length).toBeGreaterThan(0);
    for (const [text, type = '', name = '', op, percent] of seen) {
      const [, known = '', output = '', all = 0] = ops[Number(op) - 1] ?? [];
      expect((known.startsWith(type) || known.split('+').includes(type)) && (output === name || known.includes('+')), `${text}: ${known} ${output}`).toBe(true);
      expect(Math.abs(Number(percent) - (100 * Number(op)) / all), text).toBeLessThan(20);
    } // prettier-ignore
  });

  it('of a later run, the running op has its name, and the map its column', async () => {
    await fixture.generate({ max_tokens: 2 });
    await fixture.page.reload();
    const { strips, texts, maps } = await seenOfFirstStep();
    expect(strips).toContainEqual(expect.stringMatching(/KV cache/));
    expect(texts).toContainEqual(expect.stringMatching(/^[A-Z_+]+ \S+, op \d+ of \d+$/));
    expect(maps).toBeGreaterThan(0);
  });
});

describe('while later steps of the prompt run', () => {
  it('the running op has its name, too', async () => {
    const { page } = fixture;
    const watched = await page.evaluateHandle(() => {
      const texts = new Set<string>();
      const timer = setInterval(() => {
        const steps = Number(/^(\d+) steps?/.exec(document.querySelectorAll('.status > span')[1]?.textContent ?? '')?.[1] ?? 0);
        const text = document.querySelector('.run-strip .run-line > .dim')?.textContent ?? '';
        if (steps > 0 && / op \d|^op \d/.test(text)) texts.add(text);
      }, 20);
      return { seen: () => [...texts], timer };
    }); // prettier-ignore
    // Of several steps: --ubatch-size. The page may be too busy to draw between them.
    let texts: readonly string[] = [];
    for (let run = 0; run < 4 && texts.length === 0; run += 1) {
      await fixture.runText(`${run} ${LONG.repeat(3)}`, 2);
      await fixture.waitDone();
      texts = await watched.evaluate((one) => one.seen());
    }
    expect(texts.length).toBeGreaterThan(0);
    const named = texts.filter((text) => /^[A-Z_+]+ \S+, op \d+ of \d+$/.test(text));
    // The graph of a step is read after the step: some texts may come before it.
    expect(named.length, texts.join('; ')).toBeGreaterThan(texts.length / 2);
  });
});

describe('a session that did not end by itself says so', () => {
  it('queued', async () => {
    const { page } = fixture;
    const other = { prompt: LONG, max_tokens: 2000, ignore_eos: true, reuse_prefix: false };
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(other) };
    const { id } = await fixture.rest<{ id: string }>('generate', init);
    await fixture.runText('After it', 4);
    await status().getByText('queued: nothing is computed yet').waitFor();
    await page.waitForTimeout(6000); // no request fails meanwhile
    await fixture.rest(`generate/${id}`, { method: 'DELETE' });
    await fixture.waitDone();
    await expect.poll(() => status().getByText('queued').count()).toBe(0);
  });

  it('interrupted, without a speed that nothing measures, then recovered', async () => {
    const { page } = fixture;
    await fixture.runText('Interrupt me', 30_000);
    await expect.poll(() => fixture.shownTokens()).toBeGreaterThan(20);
    await page.locator('.strip-figures').getByText('speed, last second').waitFor();
    fixture.spoilPage();
    await fixture.server.pause('SIGKILL');
    await fixture.progress.getByText('interrupted: the server does not answer').waitFor();
    await status().getByText('interrupted').waitFor();
    expect(await page.locator('.strip-figures').getByText('speed, last second').count()).toBe(0);
    await fixture.server.resume();
    await expect.poll(() => status().getByText('interrupted').count()).toBe(0);
    await status()
      .getByText(/^recovered: /)
      .waitFor();
    fixture.errors.length = 0; // the connection was lost
  });

  it('stopped', async () => {
    await fixture.runText('Stop me', 30_000);
    await expect.poll(() => fixture.shownTokens()).toBeGreaterThan(5);
    await fixture.stop.click();
    await status().getByText('stopped before its end').waitFor();
    await fixture.progress.getByText(/^Stopped after/).waitFor();
  });

  it('deleted by another page', async () => {
    const id = await fixture.generate({ max_tokens: 4, prompt: 'Delete me' });
    await fixture.show(id);
    fixture.expectStatus(404);
    await fixture.rest(`sessions/${id}`, { method: 'DELETE' });
    await status()
      .getByText(/^deleted on the server/)
      .waitFor();
    expect(await strip().count()).toBe(1); // what was read stays
  });
});

describe('what a link or the filter names and the session does not have', () => {
  it.each([
    ['a step', 'step=99999', 'q='],
    ['a layer', 'l=99', 'q='],
    ['a layer of the filter', 'l=0', 'q=layer:99'],
  ])('%s gives no failed request', async (_, ...parts) => {
    const { page } = fixture;
    const id = await fixture.recorded(6);
    await fixture.fresh(`${fixture.server.url}/#1&session=${id}&${parts.join('&')}`);
    await page.getByRole('grid', { name: /Ops of step/ }).waitFor();
    await page.waitForTimeout(1000);
    expect(fixture.errors).toEqual([]);
  });
});

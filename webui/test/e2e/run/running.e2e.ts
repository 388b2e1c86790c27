// What the page shows while a run is going on: from its first step, equal to REST.
import type { Locator } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { formatCount, plural } from '../../../src/format';
import { PATIENCE_MS } from '../../patience';
import { fairShare, within } from '../support/fair_time';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use(() =>
  Promise.resolve(['-c', '32768', '-b', '8192', '--ubatch-size', '8192']),
);

interface Session {
  readonly id: string;
  readonly state: string;
  readonly steps: number;
  readonly tokens: number;
  readonly file_bytes: number;
}

interface Run {
  readonly prompt_tokens: number;
  readonly generated: number;
}

const LONG = 'Once upon a time there was a little frog. '.repeat(400);

const NO_STEP = 'No step has arrived yet';

// Runs in the page: when the first op of a run was shown after Ctrl+Enter, and for how long
// a panel said since that there is no step, both in milliseconds.
function watchRun(noStep: string) {
  let [pressed, first, waiting, last] = [NaN, Infinity, 0, 0];
  let isOver = false;
  addEventListener(
    'keydown',
    ({ key, ctrlKey }) => {
      if (key === 'Enter' && ctrlKey) pressed = performance.now();
    },
    true,
  );
  const look = (): void => {
    const now = performance.now();
    const text = document.body.textContent;
    if (first === Infinity && /is running: [1-9]\d* ops? done/.test(text)) first = now - pressed;
    if (first < Infinity && text.includes(noStep)) waiting += now - last;
    last = now;
    if (!isOver) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  return {
    stop: () => {
      isOver = true;
      return { first, waiting };
    },
  };
}

describe('a running session', () => {
  it('shows its ops in the first step already', async () => {
    await fixture.runText(LONG, 2);
    const { page } = fixture;
    await page
      .getByText(/The first step is running: [1-9]\d* ops? done/)
      .first()
      .waitFor();
    const strip = page.locator('.strip-chart');
    // The files of the model are known before its graph.
    await expect
      .poll(() => strip.getAttribute('aria-label'))
      .toMatch(/^Memory of the model: mapped file [^,]*$/);
    await fixture.waitDone();
    await fixture.ops.waitFor();
    // A second run shows the memory of the model from the start, and the ops that touch it.
    await fixture.runText(LONG.toUpperCase(), 2);
    await page
      .getByText(/The first step is running: [1-9]\d* ops? done/)
      .first()
      .waitFor();
    await expect
      .poll(() => strip.getAttribute('aria-label'), { interval: 20 })
      .toMatch(/file .*KV/);
    expect(await page.getByText(/The first step is running/).count()).toBeGreaterThan(0);
    await fixture.stopRun();
    expect(await page.getByText(NO_STEP).count()).toBe(0);
  });

  it('shows ops soon after Run, and never waits once they run', async () => {
    const { page } = fixture;
    let firstMs = Infinity;
    // At most 300 ms alone. Tests beside this one take the processors.
    for (let run = 0; run < 3 && firstMs >= 2000; run += 1) {
      const watched = await page.evaluateHandle(watchRun, NO_STEP);
      const share = fairShare();
      await fixture.runText(`${run} ${LONG}`, 2);
      await page
        .getByText(/The first step is running: [1-9]\d* ops? done/)
        .first()
        .waitFor();
      await fixture.waitDone();
      const { first, waiting } = await watched.evaluate((one) => one.stop());
      firstMs = Math.min(firstMs, first * share());
      expect(waiting * share(), 'ms without a step after the first op').toBeLessThan(500);
    }
    expect(firstMs, 'ms from Run until ops are shown').toBeLessThan(2000);
  });

  it('is in the list of sessions at once', async () => {
    await fixture.runText('In the list', 20_000);
    await fixture.ops.waitFor();
    const row = fixture.row('In the list').first();
    await row.waitFor();
    await row.getByText('running').waitFor();
    await fixture.stop.click();
    await row.getByText('cancelled').waitFor();
  });

  it('has the figures of REST everywhere', async () => {
    const { page } = fixture;
    await fixture.runText('Figures', 20_000);
    await fixture.ops.waitFor();
    const url = `api/v1/sessions/${fixture.session ?? ''}`;
    const read = () =>
      page.evaluate(async (path) => (await (await fetch(path)).json()) as Session, url);
    const readRun = (): Promise<Run> => fixture.rest(`generate/${fixture.session ?? ''}`);
    const generatedIn = (where: Locator, pattern: RegExp) => async (): Promise<number> =>
      Number(pattern.exec(await where.innerText())?.[1]?.replace(/\D/g, ''));
    const fact = async (name: string): Promise<string> =>
      (await fixture.inspector
        .locator('dt', { hasText: new RegExp(`^${name}$`) })
        .locator('+ dd')
        .first()

        .textContent()) ?? '';
    const sizeOnPage = async (): Promise<number> => {
      const size = page.locator('.status span[title$=" bytes"]');
      return Number(((await size.getAttribute('title')) ?? '').replace(/\D/g, ''));
    };
    // Behind REST by less than a second, so two readings around the page's figure.
    for (let round = 0; round < 3; round += 1) {
      const { steps, file_bytes: bytes } = await read();
      await within(1000, async () => Number((await fact('steps')).replace(/\D/g, '')) >= steps);
      const status = async (): Promise<number> => {
        const text = await page.locator('.status').innerText();
        return Number(/([\d\s]+) steps/.exec(text)?.[1]?.replace(/\D/g, ''));
      };
      await within(1000, async () => (await sizeOnPage()) >= bytes);
      await within(1000, async () => (await status()) >= steps);
      // Generated tokens: in the chat, the status line, and with those of the prompt in the list.
      const { prompt_tokens: prompt, generated } = await readRun();
      expect(prompt).toBeGreaterThan(0);
      for (const [shown, least] of [
        [generatedIn(fixture.progress, /Generating ([\d\u202f]+) of/), generated],
        [generatedIn(page.locator('.status'), /prompt, ([\d\u202f]+) generated/), generated],
        [generatedIn(fixture.row('Figures').first(), /([\d\u202f]+) tokens, /), prompt + generated],
      ] as const) {
        await within(1000, async () => (await shown()) >= least);
      }
    }
    await fixture.stop.click();
    await fixture.progress.getByText(/^Stopped after/).waitFor();
    const done = await read();
    const run = await readRun();
    await within(1000, async () => (await sizeOnPage()) === done.file_bytes);
    await fixture.progress
      .getByText(`Stopped after ${plural(run.generated, 'generated token')}`)
      .waitFor();
    const all = plural(done.tokens, 'token');
    expect(done.tokens).toBe(run.prompt_tokens + run.generated);
    await fixture
      .row('Figures')
      .first()
      .getByText(`${all}, ${plural(done.steps, 'step')}`)
      .waitFor();
    await page
      .locator('.status')
      .getByText(
        `${plural(done.steps, 'step')}, ${all}: ${run.prompt_tokens} of the prompt, ${formatCount(run.generated)} generated`,
      )
      .waitFor();
    await expect
      .poll(async () => Number((await fact('steps')).replace(/\D/g, '')))
      .toBe(done.steps);
  });

  it('glows in the strip where the running op reads', async () => {
    const { page } = fixture;
    const colour = (await fixture.cssColour('--glow')).split(',').map(Number);
    await fixture.runText(`Glow ${LONG}`, 2);
    const look = async ([glow, patience]: readonly [
      readonly number[],
      number,
    ]): Promise<number> => {
      // The frames in which some pixel of a band is near the colour of the glow.
      let found = 0;
      const begin = performance.now();
      while (performance.now() - begin < patience && found < 3) {
        await new Promise((done) => requestAnimationFrame(done));
        const canvas = document.querySelector('.strip-chart');
        if (!(canvas instanceof HTMLCanvasElement) || canvas.height === 0) continue;
        const y = Math.round(0.75 * canvas.height);
        const data = canvas.getContext('2d')?.getImageData(0, y, canvas.width, 1).data ?? [];
        for (let i = 0; i < data.length; i += 4) {
          const away = glow.reduce((sum, one, k) => sum + Math.abs(one - (data[i + k] ?? 0)), 0);
          if ((data[i + 3] ?? 0) < 200 || away > 150) continue;
          found += 1;
          break;
        }
      }
      return found;
    };
    expect(await page.evaluate(look, [colour, PATIENCE_MS] as const)).toBeGreaterThan(0);
    await fixture.waitDone();
  });
});

describe('a row of the list of sessions', () => {
  it('is one Tab stop', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await fixture.recorded(8);
    const stops = await page
      .locator('.session')
      .evaluateAll((rows) =>
        rows.map((row) => row.querySelectorAll(':is(button, a):not([tabindex="-1"])').length),
      );
    expect(stops.length).toBeGreaterThan(1);
    expect(stops.reduce((a, b) => a + b, 0)).toBe(1);
    void page;
  });
});

// The columns of the map are steps: the prompt is one of them, whatever its length.
import { expect, it } from 'vitest';
import type { StepSummary } from '../../../src/net/types';
import { sumText } from '../../../src/panels/map/units';
import { mapPanel } from '../support/map_panel';
import { PageFixture } from '../support/page_fixture';

// Room for a run that does not end before it is stopped.
const fixture = PageFixture.use(() => Promise.resolve(['-c', '32768']));
const { map, tip, heatmap, settled, columnOf } = mapPanel(fixture);

const LONG = 'the quick brown fox jumps over the lazy dog and then '.repeat(24);
const TOKENS = 20;

// The share of the plot that the columns of the generated steps take, found by the tooltip.
async function shareOfAnswer(): Promise<number> {
  const box = await map().locator('.plane-input').boundingBox();
  if (!box) throw new Error('no map');
  let answer = 0;
  let all = 0;
  for (let x = box.x + 72; x < box.x + box.width; x += 8) {
    await fixture.page.mouse.move(x, box.y + 70);
    const text = (await tip().isVisible()) ? await tip().innerText() : '';
    if (text === '') continue;
    all += 1;
    if (text.includes(', generate,')) answer += 1;
  }
  return answer / all;
}

it.each([
  { width: 1440, height: 900 },
  { width: 1920, height: 1080 },
])('a prompt of many tokens is one column at %o', async (size) => {
  await fixture.page.setViewportSize(size);
  await fixture.recorded(TOKENS, { prompt: LONG });
  await settled();
  const { steps } = await fixture.get<{ steps: StepSummary[] }>('steps');
  expect(steps[0]?.token_count).toBeGreaterThan(300);
  const prompts = steps.filter(({ phase }) => phase === 'prompt').length;
  expect(await shareOfAnswer()).toBeGreaterThan((0.9 * TOKENS) / (TOKENS + prompts));
  // With the value of the whole step.
  const { x, y } = await columnOf(0);
  await fixture.page.mouse.move(x, y);
  await tip()
    .getByText(/tokens of the prompt/)
    .waitFor();
  const row = Number(/layer\s+(\d+)/.exec(await tip().innerText())?.[1]);
  const picture = await heatmap('x=step&y=layer&value=time&width=4096');
  await expect
    .poll(() => tip().innerText())
    .toContain(sumText('time', picture.cells[row]?.[0] ?? 0));
});

it('the prompt is wider on demand', async () => {
  await fixture.recorded(TOKENS, { prompt: LONG });
  await settled();
  const before = await shareOfAnswer();
  await fixture.show(fixture.session ?? '', 'p.map=x:token');
  await settled();
  expect(await shareOfAnswer()).toBeLessThan(before / 4);
});

it('a click on a generated step selects its token, and one on the prompt its step', async () => {
  await fixture.recorded(TOKENS, { prompt: LONG });
  await settled();
  const { steps } = await fixture.get<{ steps: StepSummary[] }>('steps');
  const last = steps.at(-1);
  const one = await columnOf(last?.token_id ?? 0);
  await fixture.page.mouse.click(one.x, one.y);
  await expect.poll(() => fixture.hash.get('sel')).toBe(`k:${last?.token_id ?? -1}`);
  const prompt = await columnOf(0);
  await fixture.page.mouse.click(prompt.x, prompt.y);
  await expect.poll(() => fixture.hash.get('step')).toBe('0');
  expect(fixture.hash.get('sel')).toMatch(/^l:/);
});

it('while a long prompt is answered, the newest step is in view', async () => {
  const { page } = fixture;
  await fixture.runText(LONG, 30_000);
  await expect.poll(() => fixture.shownTokens()).toBeGreaterThan(20);
  const share = await shareOfAnswer();
  expect(share).toBeGreaterThan(0.8);
  await fixture.stopRun();
  expect(page.url()).not.toContain('cx:');
});

// A session of 10,000 tokens: the page stays small, follows the text and finds each token in it.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { makeModel } from '../support/models';
import { PageFixture } from '../support/page_fixture';

interface Token {
  readonly index: number;
  readonly generated: boolean;
  readonly text: string;
}

async function tokensOf(fixture: PageFixture): Promise<readonly Token[]> {
  const tokens: Token[] = [];
  for (;;) {
    const page = await fixture.get<{ total: number; tokens: readonly Token[] }>(
      `tokens?limit=10000&from=${tokens.length}`,
    );
    tokens.push(...page.tokens);
    if (tokens.length >= page.total) return tokens;
  }
}

const domNodes = (fixture: PageFixture): Promise<number> =>
  fixture.page.evaluate(() => {
    const walker = document.createTreeWalker(document, NodeFilter.SHOW_ALL);
    let count = 0;
    while (walker.nextNode()) count += 1;
    return count;
  });

// The transcript of a run is laid out from its end: 0 is the end, further up is negative.
const distanceToEnd = (fixture: PageFixture): Promise<number> =>
  fixture.log.evaluate((box) => -box.scrollTop);

// Where the answer begins on the screen.
const placeOfAnswer = (fixture: PageFixture): Promise<number> =>
  fixture.answer.evaluate((answer) => Math.round(answer.getBoundingClientRect().top));

// The same after scrolling has ended, and what it uncovered is drawn.
async function restingPlace(fixture: PageFixture): Promise<number> {
  let place = NaN;
  await expect
    .poll(async () => {
      const before = place;
      place = await placeOfAnswer(fixture);
      return place === before;
    })
    .toBe(true);
  return place;
}

// Number of tokens of the prompt on the page.
const promptTokens = async (fixture: PageFixture): Promise<number> =>
  Number(await fixture.page.locator('.token-text[data-part=prompt]').getAttribute('data-tokens'));

const PROMPT = 'Once upon a time there was a little frog. '.repeat(400);

const textOf = (tokens: readonly Token[], generated: boolean): string =>
  tokens
    .filter((token) => token.generated === generated)
    .map(({ text }) => text)
    .join('');

const shownText = async (
  fixture: PageFixture,
  part: 'prompt' | 'answer',
): Promise<readonly string[]> =>
  fixture.page.locator(`.token-text[data-part=${part}] > *`).allTextContents();

// Long limits: the machine may be busy.
describe('a long session', () => {
  let folder = '';
  // The smallest layer: the time for a prompt grows with the square of its length.
  const fixture = PageFixture.use(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tt-long-'));
    const sizes = [
      '--layers',
      '1',
      '--embd',
      '64',
      '--heads',
      '2',
      '--kv-heads',
      '2',
      '--ff',
      '64',
    ];
    const more = ['--quant', 'q8_0', '--context', '32768'];
    return ['-c', '32768', '-m', await makeModel(folder, 'small', [...sizes, ...more])];
  });
  afterAll(() => rm(folder, { recursive: true }));

  it('keeps the answer, and the place in it, while the pages of its prompt arrive', async () => {
    const { page } = fixture;
    let release = (): void => undefined;
    const released = new Promise<void>((done) => (release = done));
    await page.route(/\/tokens\?.*from=[4-9]\d\d\d\b/, async (route) => {
      await released;
      await route.continue();
    });
    await fixture.runText(PROMPT, 20_000);
    // The answer fills the view.
    await expect.poll(() => fixture.shownTokens()).toBeGreaterThan(800);
    await fixture.log.hover();
    await page.mouse.wheel(0, -60);
    await expect.poll(() => distanceToEnd(fixture)).toBeGreaterThan(50);
    const place = await restingPlace(fixture);
    await fixture.answer.evaluate((answer) => answer.firstElementChild?.setAttribute('id', 'kept'));
    expect(await promptTokens(fixture)).toBeLessThan(5000);
    release();
    await expect.poll(() => promptTokens(fixture)).toBeGreaterThan(10_000);
    const shown = await fixture.shownTokens();
    await expect.poll(() => fixture.shownTokens()).toBeGreaterThan(shown + 40);
    expect(Math.abs((await placeOfAnswer(fixture)) - place)).toBeLessThan(2);
    expect(await fixture.answer.locator('#kept').count()).toBe(1);
    await fixture.stopRun();
  });

  it('needs few nodes, follows the end, and keeps its place after scrolling up', async () => {
    await fixture.runText(PROMPT, 20_000);
    await expect.poll(() => fixture.shownTokens()).toBeGreaterThan(40);
    // The pages of the prompt that are still to come are above the answer.
    await expect.poll(() => promptTokens(fixture)).toBeGreaterThan(10_000);
    await expect.poll(() => distanceToEnd(fixture)).toBeLessThan(40);
    await fixture.log.hover();
    await fixture.page.mouse.wheel(0, -600);
    await expect.poll(() => distanceToEnd(fixture)).toBeGreaterThan(200);
    await fixture.log.getByRole('heading').waitFor();
    const place = await restingPlace(fixture);
    const shown = await fixture.shownTokens();
    await expect.poll(() => fixture.shownTokens()).toBeGreaterThan(shown + 40);
    // To the pixel: positions of lines are fractions.
    expect(Math.abs((await placeOfAnswer(fixture)) - place)).toBeLessThan(2);
    await fixture.stopRun();
    const { generated } = await fixture.rest<{ generated: number }>(
      `generate/${fixture.session ?? ''}`,
    );
    await expect.poll(() => fixture.shownTokens()).toBe(generated);
    const tokens = await tokensOf(fixture);
    expect(tokens.length).toBeGreaterThan(10_000);
    expect(await domNodes(fixture)).toBeLessThan(3000);
    for (const part of ['prompt', 'answer'] as const) {
      const chunks = await shownText(fixture, part);
      expect(Math.max(...chunks.map((chunk) => chunk.length))).toBeLessThan(5000);
      expect(chunks.join('') === textOf(tokens, part === 'answer'), part).toBe(true);
    }
  });
});

describe('an answer of 1,000 tokens', () => {
  const fixture = PageFixture.use();

  it('has tokens that are found by their text, also after a change of width', async () => {
    await fixture.runText('Once upon a time', 1000);
    await fixture.waitDone();
    const tokens = await tokensOf(fixture);
    const answer = tokens.filter(({ generated }) => generated);
    for (const width of [1440, 1100]) {
      await fixture.page.setViewportSize({ width, height: 900 });
      for (const at of [0, 450, 990]) {
        let offset = answer.slice(0, at).reduce((sum, { text }) => sum + text.length, 0);
        const token = answer[at];
        if (/^\s/.test(token?.text ?? '') && (token?.text.length ?? 0) > 1) offset += 1;
        await expect
          .poll(async () => {
            const { x, y } = await fixture.pointInAnswer(offset);
            await fixture.page.mouse.click(x, y);
            return fixture.hash.get('sel');
          })
          .toBe(`k:${token?.index ?? -1}`);
        expect(await fixture.answer.getAttribute('title')).toMatch(
          /^token \d+, id \d+, generated$/,
        );
      }
    }
    // The chunks of the answer may still be drawn, which takes the selection away.
    const copied = async () => {
      await fixture.answer.evaluate((box) => {
        const [first, last] = [box.firstChild?.firstChild, box.lastChild?.firstChild];
        if (!first || !(last instanceof Text)) throw new Error('no text');
        getSelection()?.setBaseAndExtent(first, 0, last, last.length);
      });
      await fixture.page.keyboard.press('Control+c');
      return fixture.page.evaluate(() => navigator.clipboard.readText());
    };
    await expect.poll(copied).toBe(textOf(tokens, true));
  });
});

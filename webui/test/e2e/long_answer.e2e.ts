// A session of 10,000 tokens: the page stays small, follows the text and finds each token in it.
import { describe, expect, it } from 'vitest';
import { PageFixture } from './page_fixture';

const fixture = PageFixture.use(() => Promise.resolve(['-c', '32768']));

interface Token {
  readonly index: number;
  readonly generated: boolean;
  readonly text: string;
}

const pageOfTokens = async (from: number): Promise<readonly Token[]> =>
  (await fixture.get<{ tokens: readonly Token[] }>(`tokens?limit=10000&from=${from}`)).tokens;

const domNodes = (): Promise<number> =>
  fixture.page.evaluate(() => {
    const walker = document.createTreeWalker(document, NodeFilter.SHOW_ALL);
    let count = 0;
    while (walker.nextNode()) count += 1;
    return count;
  });

// The transcript of a run is laid out from its end: 0 is the end, further up is negative.
const distanceToEnd = (): Promise<number> => fixture.log.evaluate((box) => -box.scrollTop);

// Where the answer begins on the screen.
const placeOfAnswer = (): Promise<number> =>
  fixture.answer.evaluate((answer) => Math.round(answer.getBoundingClientRect().top));

const textOf = (tokens: readonly Token[], generated: boolean): string =>
  tokens
    .filter((token) => token.generated === generated)
    .map(({ text }) => text)
    .join('');

const shownText = async (part: 'prompt' | 'answer'): Promise<readonly string[]> =>
  fixture.page.locator(`.token-text[data-part=${part}] > *`).allTextContents();

// Long limits: the machine may be busy.
describe('a long session', { timeout: 240_000 }, () => {
  it('needs few nodes, follows the end, and keeps its place after scrolling up', async () => {
    await fixture.runText('Once upon a time there was a little frog. '.repeat(1000), 200);
    await expect.poll(() => fixture.shownTokens(), { timeout: 120_000 }).toBeGreaterThan(40);
    await expect.poll(distanceToEnd).toBeLessThan(40);
    await fixture.log.hover();
    await fixture.page.mouse.wheel(0, -600);
    await expect.poll(distanceToEnd).toBeGreaterThan(200);
    await fixture.log.getByRole('heading').waitFor();
    const place = await placeOfAnswer();
    const shown = await fixture.shownTokens();
    await expect.poll(() => fixture.shownTokens(), { timeout: 60_000 }).toBeGreaterThan(shown + 40);
    expect(await placeOfAnswer()).toBe(place);
    await fixture.waitDone(120_000);
    await expect.poll(() => fixture.shownTokens()).toBe(200);
    const tokens = [...(await pageOfTokens(0)), ...(await pageOfTokens(10_000))];
    expect(tokens.length).toBeGreaterThan(10_000);
    expect(await domNodes()).toBeLessThan(3000);
    for (const part of ['prompt', 'answer'] as const) {
      const chunks = await shownText(part);
      expect(Math.max(...chunks.map((chunk) => chunk.length))).toBeLessThan(5000);
      expect(chunks.join('') === textOf(tokens, part === 'answer'), part).toBe(true);
    }
  });

  it('finds tokens by their text, also after a change of width', async () => {
    await fixture.runText('Once upon a time', 1000);
    await fixture.waitDone(120_000);
    const tokens = await pageOfTokens(0);
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
    const text = (await shownText('answer')).join('');
    await fixture.answer.evaluate((box) => {
      const [first, last] = [box.firstChild?.firstChild, box.lastChild?.firstChild];
      if (!first || !(last instanceof Text)) throw new Error('no text');
      getSelection()?.setBaseAndExtent(first, 0, last, last.length);
    });
    await fixture.page.keyboard.press('Control+c');
    await expect.poll(() => fixture.page.evaluate(() => navigator.clipboard.readText())).toBe(text);
  });
});

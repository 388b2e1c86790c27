// What the model expected at a token of the text, and which tokens it looked at: figures of REST by
// another way, with the pointer and by keys.
import { describe, expect, it } from 'vitest';
import { formatValue } from '../../../src/charts/table';
import { tokenText } from '../../../src/format';
import type { HeadAttention, LensRow, TokenAttention } from '../../../src/net/types';
import { LOOK_SHARES } from '../../../src/panels/chat/token_attention';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();
const CAPTURE = { prompt: 'the cat sat and the cat sat', capture: ['lens', 'attention'] };

const marked = (level: number): Promise<readonly string[]> =>
  fixture.page.evaluate(
    (name) =>
      [...(CSS.highlights.get(name) ?? [])].map((range) =>
        (range.startContainer.textContent ?? '').slice(range.startOffset, range.endOffset),
      ),
    `token-cost-${level}`,
  );

const sorted = (text: string): string => text.split('').sort().join('');

describe('a token of the answer', () => {
  it('has its probability, rank, entropy and the alternatives, in the text and in the inspector', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(6, CAPTURE);
    // Each token alone, not the page's list of all.
    const { rows: all } = await fixture.get<{ rows: LensRow[] }>('lens?layer=outside');
    const token = all[2]?.token ?? 0;
    const { rows } = await fixture.get<{ rows: LensRow[] }>(`lens?layer=outside&token=${token}`);
    const row = rows[0];
    if (!row?.chosen) throw new Error('no token was chosen');
    await fixture.show(session, `sel=k:${token}`);
    const section = fixture.inspector.getByRole('region', { name: 'What the model expected' });
    const texts = [
      `probability ${formatValue('share', row.chosen.probability ?? NaN)}`,
      `rank ${row.rank}`,
      `entropy ${formatValue('bits', row.entropy ?? NaN)}`,
    ];
    for (const text of texts) await expect.poll(() => section.innerText()).toContain(text);
    const lines = await section.getByRole('row').evaluateAll((list) =>
      list.map((one) => [...one.children].map((cell) => cell.textContent)),
    ); // prettier-ignore
    expect(lines.slice(0, row.likely.length).map(([text, share]) => [text, share])).toEqual(
      row.likely.map((one) => [tokenText(one), formatValue('share', one.probability ?? NaN)]),
    );
    expect(lines.filter((cells) => cells.at(-1) === 'chosen').map(([text]) => text)).toEqual([tokenText(row.chosen)]); // prettier-ignore
    // The same beside the text, also of a token that is clicked there.
    const line = page.getByRole('group', { name: "The model's choice" });
    for (const text of texts) expect(await line.innerText()).toContain(text);
    const other = row.likely.find(({ id }) => id !== row.chosen?.id);
    expect(await line.innerText()).toContain(`${tokenText(other)} ${formatValue('share', other?.probability ?? NaN)}`); // prettier-ignore
    const point = await fixture.pointInAnswer(0);
    await page.mouse.click(point.x, point.y);
    const first = all[0];
    await expect.poll(() => line.innerText()).toContain(`probability ${formatValue('share', first?.chosen?.probability ?? NaN)}`); // prettier-ignore
    expect(await fixture.axeViolations()).toEqual([]);
    // A token of the prompt was not chosen.
    await fixture.show(session, 'sel=k:1');
    await section.getByText('The model did not choose this token: it was given.').waitFor();
  });

  it('has nothing of it in a session without the logit lens', async () => {
    const session = await fixture.recorded(6);
    await fixture.show(session, 'sel=k:2');
    await fixture.inspector.locator('.inspection-kind', { hasText: 'Token' }).waitFor();
    expect(await fixture.page.getByRole('group', { name: "The model's choice" }).count()).toBe(0);
    expect(await fixture.page.getByLabel('by attention').count()).toBe(0);
    expect(await fixture.inspector.getByRole('region', { name: 'What the model expected' }).count()).toBe(0); // prettier-ignore
  });
});

describe('the attention of a token', () => {
  // The mean by token over the heads, from the rows of each head.
  async function meanOf(token: number, query = ''): Promise<readonly number[]> {
    const { rows } = await fixture.get<{ rows: TokenAttention[] }>(`attention/weights?token=${token}${query}&limit=10000`); // prettier-ignore
    const size = rows.reduce((most, { weights }) => Math.max(most, weights.length), 0);
    return Array.from({ length: size }, (_, key) =>
      rows.reduce((sum, { weights }) => sum + (weights[key] ?? 0), 0) / rows.length,
    ); // prettier-ignore
  }

  it('tints the text, of a token that is pointed at, selected, or reached by a key', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(6, CAPTURE);
    const { tokens } = await fixture.get<{ tokens: { text: string; index: number }[] }>('tokens');
    const prompt = tokens.length - 6;
    const token = prompt + 2;
    const { steps } = await fixture.get<{ steps: { step: number; token_id: number }[] }>('steps');
    const step = steps.find(({ token_id }) => token_id === token)?.step ?? 0;
    await fixture.show(session, `step=${step}`, `sel=k:${token}`);
    await page.getByLabel('by attention').check();
    await expect.poll(() => fixture.hash.get('p.chat')).toBe('attention');
    // Adjacent tokens of one level are one range: compared is their text.
    const expectTint = async (weights: readonly number[]): Promise<void> => {
      for (let level = 1; level <= LOOK_SHARES.length; level += 1) {
        const isOf = (weight: number): boolean => LOOK_SHARES.filter((share) => weight >= share).length === level; // prettier-ignore
        const texts = tokens
          .filter(({ index }) => isOf(weights[index] ?? 0))
          .map(({ text }) => text);
        await expect
          .poll(async () => sorted((await marked(level)).join('')))
          .toBe(sorted(texts.join('')));
      }
    };
    const line = page.getByRole('group', { name: 'Attention of a token' });
    const expectLine = async (of: number, weights: readonly number[]): Promise<void> => {
      const most = weights.indexOf(Math.max(...weights));
      await expect.poll(() => line.innerText()).toContain(`(token ${of}) looks at ${tokenText(tokens[most])} (${most}) `); // prettier-ignore
    };
    const mean = await meanOf(token);
    expect(mean.reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(1, 3);
    await expectLine(token, mean);
    await expectTint(mean);
    expect(await fixture.axeViolations()).toEqual([]);
    // A key goes to the next step, whose token it is then.
    await page.mouse.move(0, 0);
    await fixture.log.focus();
    await page.keyboard.press(']');
    await expectLine(token + 1, await meanOf(token + 1));
    // The pointer.
    const point = await fixture.pointInAnswer(0);
    await page.mouse.move(point.x, point.y);
    const pointed = await meanOf(prompt);
    await expectLine(prompt, pointed);
    await expectTint(pointed);
    await page.mouse.move(0, 0);
    // One layer, and one of its heads.
    await fixture.show(session, `step=${step}`, `sel=k:${token}`, 'p.chat=attention');
    await page.locator('.looked-at').getByLabel('Layer').selectOption('1');
    await expect.poll(() => fixture.hash.get('p.chat')).toBe('attention:1');
    await expectTint(await meanOf(token, '&layer=1'));
    await page.locator('.looked-at').getByLabel('Head').selectOption('0');
    await expect.poll(() => fixture.hash.get('p.chat')).toBe('attention:1:0');
    await expectTint(await meanOf(token, '&layer=1&head=0'));
  });

  it('is drawn as lines from token to token over the text', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(6, CAPTURE);
    const { tokens } = await fixture.get<{ tokens: { text: string; index: number; generated: boolean }[] }>('tokens'); // prettier-ignore
    const prompt = tokens.length - 6;
    const token = prompt + 3;
    await fixture.show(session, `sel=k:${token}`, 'p.chat=attention:1:0');
    const drawn = page.locator('.attention-lines g');
    const lines = () =>
      drawn.evaluateAll((list) =>
        list.map((one) => ({
          token: Number((one as SVGElement).dataset.token),
          weight: Number((one as SVGElement).dataset.weight),
          width: Number(one.getAttribute('stroke-width')),
          // Where the path begins and ends, in the window.
          ends: [0, Infinity].map((at) => {
            const path = one.querySelector('path');
            const point = path?.getPointAtLength(Math.min(at, path.getTotalLength()));
            const origin = one.closest('svg')?.getBoundingClientRect();
            return [(point?.x ?? NaN) + (origin?.x ?? 0), (point?.y ?? NaN) + (origin?.y ?? 0)];
          }),
        })),
      );
    // The rectangle of a token, from the text before it.
    const boxOf = (index: number) => {
      const { generated } = tokens[index] ?? { generated: false };
      const before = tokens.filter((one) => one.generated === generated && one.index < index);
      const from = before.reduce((sum, { text }) => sum + text.length, 0);
      return page.locator(`.token-text[data-part=${generated ? 'answer' : 'prompt'}]`).evaluate(
        (host, [first, end]) => {
          const range = document.createRange();
          const node = host.querySelector('.token-chunk')?.firstChild;
          if (!node) throw new Error('no text');
          range.setStart(node, first ?? 0);
          range.setEnd(node, end ?? 0);
          const { left, right, top, bottom } = range.getBoundingClientRect();
          return { left, right, top, bottom };
        },
        [from, from + (tokens[index]?.text.length ?? 0)],
      );
    };
    const expectLines = async (of: number, query: string): Promise<void> => {
      const weights = await meanOf(of, query);
      const most = weights.toSorted((a, b) => b - a).slice(0, 8).filter((weight) => weight > 0); // prettier-ignore
      await expect.poll(async () => (await lines()).map(({ weight }) => weight.toFixed(5))).toEqual(most.map((weight) => weight.toFixed(5))); // prettier-ignore
      const found = await lines();
      for (const { token: to, weight } of found) expect(weight).toBeCloseTo(weights[to] ?? NaN, 5);
      // The stronger, the wider.
      expect(found.map(({ width }) => width)).toEqual(found.map(({ width }) => width).toSorted((a, b) => b - a)); // prettier-ignore
      for (const { token: to, ends } of found)
        for (const [i, index] of [of, to].entries()) {
          const box = await boxOf(index);
          const [x = NaN, y = NaN] = ends[i] ?? [];
          expect(x).toBeGreaterThanOrEqual(box.left - 1);
          expect(x).toBeLessThanOrEqual(box.right + 1);
          expect(y).toBeGreaterThanOrEqual(box.top - 1);
          expect(y).toBeLessThanOrEqual(box.bottom + 1);
        }
    };
    await expectLines(token, '&layer=1&head=0');
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await fixture.axeViolations()).toEqual([]);
    }
    // After another width the lines are where the tokens are.
    await page.setViewportSize({ width: 1000, height: 700 });
    await expect.poll(async () => (await lines())[0]?.ends[0]?.[0]).not.toBeUndefined();
    await expect.poll(async () => {
      const [x = NaN] = (await lines())[0]?.ends[0] ?? [];
      const { left, right } = await boxOf(token);
      return x > left && x < right;
    }).toBe(true); // prettier-ignore
    await expectLines(token, '&layer=1&head=0');
    // By keys: each token of the list emphasises its line, and Enter goes to it; the focus stays.
    const list = page.getByRole('group', { name: 'Attention of a token' });
    const names = list.getByRole('button');
    expect(await names.count()).toBe((await lines()).length);
    await list.focus();
    await page.keyboard.press('Tab');
    const pointed = () => drawn.evaluateAll((all) => all.flatMap((one, i) => ((one as SVGElement).dataset.pointed === 'true' ? [i] : []))); // prettier-ignore
    await expect.poll(pointed).toEqual([0]);
    await page.keyboard.press('Tab');
    await expect.poll(pointed).toEqual([1]);
    const next = (await lines())[1]?.token ?? NaN;
    await page.keyboard.press('Enter');
    await expect.poll(() => fixture.hash.get('sel')).toBe(`k:${next}`);
    await expectLines(next, '&layer=1&head=0');
    // A folded prompt: the lines end at what unfolds it.
    await fixture.show(session, `sel=k:${token}`, 'p.chat=attention:1:0');
    await expectLines(token, '&layer=1&head=0');
    await page.locator('.prompt-tokens summary').click();
    const fold = await page.locator('.prompt-tokens summary').boundingBox();
    await expect.poll(async () =>
      (await lines()).filter(({ token: to }) => to < prompt).every(({ ends }) => {
        const y = ends[1]?.[1] ?? NaN;
        return y >= (fold?.y ?? NaN) - 1 && y <= (fold?.y ?? NaN) + (fold?.height ?? NaN) + 1;
      })).toBe(true); // prettier-ignore
    // Without the mode there are none.
    await page.getByLabel('by attention').uncheck();
    await expect.poll(() => drawn.count()).toBe(0);
  });

  it('of a head is said in words, in the inspector and in the map', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(6, CAPTURE);
    const { heads } = await fixture.get<{ heads: HeadAttention[] }>('attention');
    const head = heads.find(({ layer, head: number }) => layer === 1 && number === 1);
    if (!head) throw new Error('no attention was captured');
    await fixture.show(session, 'sel=h:1.1');
    const section = fixture.inspector.getByRole('region', { name: 'Attention' });
    const figures = [
      ['previous token', formatValue('share', head.previous)],
      ['first token', formatValue('share', head.first)],
      ['entropy', formatValue('bits', head.entropy)],
      ['distance', formatValue('number', head.distance)],
    ] as const;
    for (const [name, text] of figures)
      await expect
        .poll(async () => (await section.innerText()).replaceAll('\n', ' '))
        .toContain(`${name} ${text}`);
    await section.getByRole('button', { name: 'Tint the text' }).click();
    await expect.poll(() => fixture.hash.get('p.chat')).toBe('attention:1:1');
    // The map by head: what is under the pointer.
    await fixture.show(session, 'full=map', 'sel=h:1.1', 'p.map=y:head,x:all,v:bytes');
    const input = page.getByRole('tabpanel', { name: 'Map' }).locator('.plane-input');
    await input.focus();
    const tip = page.getByRole('tabpanel', { name: 'Map' }).locator('.tip');
    await page.keyboard.press('ArrowDown');
    await expect.poll(() => tip.innerText()).toContain('previous token');
    const row = /blk\.(\d+) head (\d+)/.exec(await tip.innerText());
    const shown = heads.find(({ layer, head: number }) => layer === Number(row?.[1]) && number === Number(row?.[2])); // prettier-ignore
    const text = (await tip.innerText()).replaceAll('\n', ' ');
    expect(text).toContain(`previous token ${formatValue('share', shown?.previous ?? NaN)}`);
    expect(text).toContain(`entropy ${formatValue('bits', shown?.entropy ?? NaN)}`);
  });
});

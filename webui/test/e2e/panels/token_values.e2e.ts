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
        await expect.poll(async () => (await marked(level)).join('').length).toBe(texts.join('').length); // prettier-ignore
        expect(sorted((await marked(level)).join(''))).toBe(sorted(texts.join('')));
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

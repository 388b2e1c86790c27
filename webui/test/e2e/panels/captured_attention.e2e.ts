// Attention weights that were captured: which tokens a head looks at, in maps whose figures are those of
// REST; and a run that captures them, from the page.
import { describe, expect, it } from 'vitest';
import type { HeadAttention, TokenAttention } from '../../../src/net/types';
import { AnalyticsPage } from '../support/analytics_page';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();
const analytics = new AnalyticsPage(fixture);
const LOOKS = [
  'look_previous',
  'look_first',
  'look_induction',
  'look_entropy',
  'look_distance',
] as const;

describe('the attention page', () => {
  it('says how to capture the weights', async () => {
    await fixture.recorded(4);
    const { missing } = await fixture.get<{ missing: string }>('attention');
    await analytics.open('attention');
    await expect
      .poll(() => analytics.card('look_previous').getByRole('note').innerText())
      .toContain(missing);
    for (const chart of [...LOOKS.slice(1), 'token_attention'])
      expect(await analytics.card(chart).count()).toBe(0);
  });

  it('shows what each head looks at, and the tokens of one head', async () => {
    const { page } = fixture;
    // A run of the page, with the weights.
    const settings = page.getByText('Settings', { exact: true });
    await settings.click();
    await page.getByLabel(/^Attention weights/).check();
    await settings.click();
    await fixture.runText('the cat sat and the cat sat', 6);
    await fixture.progress.getByText(/^Done: /).waitFor();
    const { heads } = await fixture.get<{ heads: HeadAttention[] }>('attention');
    expect(heads.length).toBeGreaterThan(1);
    await analytics.open('attention', 'l=1');
    const fields = ['previous', 'first', 'induction', 'entropy', 'distance'] as const;
    for (const [n, chart] of LOOKS.entries()) {
      const rows = await analytics.csv(chart);
      const field = fields[n] ?? 'first';
      const shown = rows.flatMap((row) => Object.entries(row).filter(([name]) => name !== 'layer').map(([, value]) => Number(value))); // prettier-ignore
      expect(shown).toEqual(heads.map((one) => one[field]));
    }
    // The question leads to its chart, which says the answer in words, also when it is asked again.
    const most = heads.toSorted((a, b) => b.previous - a.previous)[0];
    const answer = `Layer ${most?.layer ?? 0} head ${most?.head ?? 0} attends most to the previous token: `;
    const distance = () =>
      page.evaluate(() => {
        const top = (selector: string) =>
          document.querySelector(selector)?.getBoundingClientRect().top ?? NaN;
        return Math.round(top('[data-chart="look_previous"]') - top('#panel-analytics .analytics'));
      });
    await fixture.show(fixture.session ?? '');
    for (let asked = 0; asked < 2; asked += 1) {
      await page.getByRole('button', { name: 'Questions' }).click();
      await page.getByRole('button', { name: 'Which head looks at the previous token?' }).click();
      await analytics.card('look_previous').getByText(answer).waitFor();
      await analytics.card('look_entropy').getByText('spreads its attention most').waitFor();
      await expect.poll(distance).toBe(0);
      await page.locator('#panel-analytics .analytics').hover();
      await page.mouse.wheel(0, -2000);
      await expect.poll(distance).toBeGreaterThan(0);
    }
    // A click on a head: the map of tokens is that of the head.
    await fixture.show(fixture.session ?? '', 'full=analytics', 'p.analytics=page:attention', 'l=1', 'sel=h:1.2'); // prettier-ignore
    await expect
      .poll(() => analytics.card('token_attention').innerText())
      .toContain('by token (layer 1, head 2)');
    const { rows } = await fixture.get<{ rows: TokenAttention[] }>('attention/weights?layer=1&head=2&limit=256'); // prettier-ignore
    const KEY = 'token (layer 1, head 2)';
    const shown = await analytics.csv('token_attention');
    expect(shown.map((row) => Number(row[KEY]))).toEqual(rows.map(({ token }) => token));
    const last = Object.entries(shown.at(-1) ?? {}).filter(([name]) => name !== KEY);
    expect(last.map(([, value]) => Number(value)).slice(0, rows.at(-1)?.weights.length)).toEqual(rows.at(-1)?.weights); // prettier-ignore
    expect(await fixture.axeViolations()).toEqual([]);
  });
});

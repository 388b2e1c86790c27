// What the model would have said after each layer: a run of the page that captures it, in charts whose
// figures are those of REST, and the text of the answer tinted by them.
import { describe, expect, it } from 'vitest';
import { visibleText } from '../../../src/format';
import type { LensRow, OutputChannels, ResidualLayer } from '../../../src/net/types';
import { AnalyticsPage } from '../support/analytics_page';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();
const analytics = new AnalyticsPage(fixture);
const cellsOf = (row: Readonly<Record<string, string>>): readonly number[] =>
  Object.entries(row).flatMap(([name, value]) => (name.endsWith('(share)') ? [Number(value)] : []));

// How many ranges of adjacent tokens have such a probability.
const runsOf = (rows: readonly LensRow[], is: (probability: number) => boolean): number =>
  rows.filter((row, i) => {
    const has = (one?: LensRow): boolean => is(one?.chosen?.probability ?? -1) && one !== undefined;
    return has(row) && !has(rows[i - 1]);
  }).length;

describe('the page of the logit lens', () => {
  it('says how to capture', async () => {
    await fixture.recorded(4);
    await analytics.open('lens');
    for (const [chart, path] of [['lens_likely', 'lens'], ['residual_norms', 'residual']] as const) {
      const { missing } = await fixture.get<{ missing: string }>(path);
      await expect
        .poll(() => analytics.card(chart).getByRole('note').innerText())
        .toContain(missing);
    }
    expect(await analytics.card('lens_surprise').count()).toBe(0);
    expect(await analytics.card('residual_similarity').count()).toBe(0);
    // A button turns the setting on.
    await analytics.card('lens_likely').getByRole('button', { name: 'Turn on Logit lens' }).click();
    await analytics.card('lens_likely').getByText('the setting Logit lens is on').waitFor();
    await fixture.show(fixture.session ?? '');
    const settings = fixture.page.getByText('Settings', { exact: true });
    await settings.click();
    expect(await fixture.page.getByLabel(/^Logit lens/).isChecked()).toBe(true);
    await fixture.page.getByLabel(/^Logit lens/).uncheck();
    await settings.click();
  }); // prettier-ignore

  it('shows what the model would have said after each layer', async () => {
    const { page } = fixture;
    const settings = page.getByText('Settings', { exact: true });
    await settings.click();
    await page.getByLabel(/^Logit lens/).check();
    await page.getByLabel(/^Residual stream/).check();
    await page.getByRole('textbox', { name: 'Values of' }).fill('ffn_out@L0@R1');
    await settings.click();
    await fixture.runText('the old sea', 6);
    await fixture.progress.getByText(/^Done: /).waitFor();
    const { rows } = await fixture.get<{ rows: LensRow[] }>('lens');
    const layers = new Set(rows.map(({ layer }) => layer)).size;
    expect(rows.length).toBe(6 * layers);
    await analytics.open('lens');
    // Rows: the output, then the last layer, down to the first one. Columns: tokens.
    const tokens = [...new Set(rows.map(({ token }) => token))];
    const at = (token: number, row: number) =>
      rows.filter((one) => one.token === token).toReversed()[row];
    for (const [chart, value] of [
      ['lens_likely', (row: LensRow) => row.likely[0]?.probability],
      ['lens_chosen', (row: LensRow) => row.chosen?.probability],
    ] as const) {
      const shown = await analytics.csv(chart);
      expect(shown.map((row) => row.layer)).toEqual(['output', ...Array.from({ length: layers - 1 }, (_, i) => String(layers - 2 - i))]); // prettier-ignore
      shown.forEach((row, n) => {
        expect(cellsOf(row)).toEqual(tokens.map((token) => value(at(token, n) ?? ({} as LensRow))));
      });
    }
    // Each value is beside the token that it is of.
    const likely = (await analytics.csv('lens_likely')).map((row) =>
      Object.entries(row).flatMap(([name, value]) =>
        name.endsWith(': most likely') ? [value] : [],
      ),
    );
    likely.forEach((row, n) => {
      expect(row).toEqual(tokens.map((token) => visibleText(at(token, n)?.likely[0]?.text ?? '')));
    });
    const output = rows.filter(({ layer }) => layer === null);
    const surprise = await analytics.csv('lens_surprise');
    expect(surprise.map((row) => Number(row.token))).toEqual(tokens);
    surprise.forEach((row, n) => {
      expect(Number(row.rank)).toBe(output[n]?.rank);
      expect(2 ** -Number(row['surprise (bits)'])).toBeCloseTo(output[n]?.chosen?.probability ?? -1, 9); // prettier-ignore
      expect(Number(row['entropy (bits)'])).toBe(output[n]?.entropy);
    });
    const residual = await fixture.get<{ layers: ResidualLayer[] }>('residual');
    const norms = await analytics.csv('residual_norms');
    expect(norms.map((row) => Number(row['stream after the layer']))).toEqual(residual.layers.map(({ norm }) => norm)); // prettier-ignore
    expect(residual.layers.every(({ attention }) => (attention ?? 0) > 0)).toBe(true);
    const { rows: outputs } = await fixture.get<{ rows: OutputChannels[] }>('channels');
    expect(outputs.map(({ output }) => output)).toContain('ffn_out-0');
    const channels = await analytics.csv('residual_channels');
    expect(channels.map((row) => row.output)).toEqual(outputs.map(({ output }) => output));
    expect(channels.map((row) => Number(row['largest channel (share)']))).toEqual(outputs.map(({ top }) => top[0]?.share)); // prettier-ignore
    expect(channels.map((row) => Number(row.kurtosis))).toEqual(outputs.map(({ kurtosis }) => kurtosis)); // prettier-ignore
    const similar = await analytics.csv('residual_similarity');
    expect(similar.map((row) => Number(row.similarity))).toEqual(residual.layers.map((one) => one.similarity)); // prettier-ignore
    // A cell names its token.
    await analytics.card('lens_likely').getByRole('application').press('Home');
    const tip = await analytics.card('lens_likely').getByRole('status').innerText();
    expect(tip).toContain(output[0]?.likely[0]?.text.trim());
    // It opens the step that evaluated the token before, and nothing that was selected earlier.
    await fixture.show(fixture.session ?? '', 'sel=l:0', 'p.analytics=page:lens');
    await analytics.open('lens');
    await analytics.card('lens_likely').getByRole('application').press('Home');
    await analytics.card('lens_likely').getByRole('application').press('Enter');
    await expect.poll(() => fixture.hash.get('step')).toBe(String(output[0]?.step));
    await expect.poll(() => fixture.hash.get('sel')).toBeNull();
    expect(await fixture.axeViolations()).toEqual([]);

    // The text, tinted by surprise.
    await fixture.show(fixture.session ?? '');
    await page.getByLabel('by surprise').check();
    await expect.poll(() => fixture.hash.get('p.chat')).toBe('surprise');
    const marked = (level: number) =>
      page.evaluate((name) => CSS.highlights.get(name)?.size ?? 0, `token-cost-${level}`);
    // Adjacent tokens of one level are one range.
    await expect.poll(() => marked(1)).toBe(runsOf(output, (p) => p > 1 / 2));
    expect(await marked(5)).toBe(runsOf(output, (p) => p <= 1 / 128));
    expect(await page.getByRole('img', { name: 'Tint: surprise from 0 to 7 bits and more' }).innerText()).toMatch(/^0 bits\s*≥ 7 bits$/); // prettier-ignore
  });
});

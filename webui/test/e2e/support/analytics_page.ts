// The Analytics panel in the browser tests: its pages, and the files of its charts.
import { readFile } from 'node:fs/promises';
import type { Locator } from 'playwright-core';
import { expect } from 'vitest';
import { CHARTS } from '../../../src/panels/analytics/all_charts';
import type { PageId } from '../../../src/panels/analytics/page_list';
import type { PageFixture } from './page_fixture';

export type Row = Readonly<Record<string, string>>;

export class AnalyticsPage {
  readonly fixture: PageFixture;

  constructor(fixture: PageFixture) {
    this.fixture = fixture;
  }

  get panel(): Locator {
    return this.fixture.page.getByRole('tabpanel', { name: 'Analytics' });
  }

  card(id: string): Locator {
    return this.panel.locator(`[data-chart=${id}]`);
  }

  chart(id: string): Locator {
    return this.card(id).getByRole('application');
  }

  // Opens a page of the panel in full screen, and waits until each of its charts shows something.
  async open(page: PageId, ...parts: readonly string[]): Promise<void> {
    const { fixture } = this;
    await fixture.show(fixture.session ?? '', 'full=analytics', `p.analytics=page:${page}`, ...parts); // prettier-ignore
    await this.panel.locator('.analytics-grid').waitFor();
    await expect.poll(() => this.states(page)).not.toContain('loading');
  }

  // What each chart of a page shows: drawn, empty, failed or loading.
  async states(page: PageId): Promise<readonly string[]> {
    const found = await this.panel.locator('.chart-card[data-chart]').evaluateAll((cards) =>
      cards.map((card) => {
        const id = card.getAttribute('data-chart') ?? '';
        if (card.querySelector('.empty-error')) return `${id} failed`;
        if (card.querySelector('progress') || card.getAttribute('data-loading') === 'true')
          return 'loading';
        if (card.querySelector('.vgrid-row')) return `${id} drawn`;
        const canvas = card.querySelector('canvas');
        if (!canvas) return `${id} empty`;
        const { width, height } = canvas;
        const pixels = canvas.getContext('2d')?.getImageData(0, 0, width, height).data;
        return pixels?.some((value) => value > 0) === true ? `${id} drawn` : `${id} blank`;
      }),
    );
    // Those of what was captured, or of a fact, are not in every session.
    const expected = CHARTS.filter(
      (chart) => chart.page === page && chart.only === undefined && chart.fact === undefined,
    );
    return found.length >= expected.length ? found : [...found, 'loading'];
  }

  // The rows of the CSV file of a chart.
  async csv(id: string): Promise<readonly Row[]> {
    return parseCsv(await this.saved(id, 'CSV'));
  }

  async saved(id: string, kind: 'CSV' | 'SVG' | 'PNG'): Promise<string> {
    await this.card(id).getByRole('button', { name: /^Save or copy/ }).click(); // prettier-ignore
    const arrives = this.fixture.page.waitForEvent('download');
    await this.card(id)
      .getByRole('button', { name: `Save as ${kind}` })
      .click();
    const path = await (await arrives).path();
    return readFile(path, kind === 'PNG' ? 'latin1' : 'utf8');
  }
}

function parseCsv(text: string): readonly Row[] {
  const lines = text.trimEnd().split('\n').map((line) =>
    [...line.matchAll(/(?:^|,)("(?:[^"]|"")*"|[^,]*)/g)].map(([, cell = '']) =>
      cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell,
    ),
  ); // prettier-ignore
  const [names = [], ...rows] = lines;
  return rows.map((cells) => Object.fromEntries(names.map((name, i) => [name, cells[i] ?? ''])));
}

export const numbers = (rows: readonly Row[], column: string): readonly number[] =>
  rows.map((row) => Number(row[column]));

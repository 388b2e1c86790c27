// Every sentence of the summary is one of the server: the page decides and words nothing.
import { expect } from 'vitest';
import type { Findings } from '../../../src/net/types';
import type { PageFixture } from './page_fixture';

export async function expectFindingsOfServer(fixture: PageFixture): Promise<void> {
  const { headline, findings, advice } = await fixture.get<Findings>('findings');
  const told = (role: string) =>
    findings.filter((one) => one.role === role).map(({ text }) => text);
  const { inspector } = fixture;
  await expect
    .poll(() => inspector.locator('.sentence').allInnerTexts())
    .toEqual([...told('main'), ...told('warning')]);
  expect(told('main').length).toBeGreaterThanOrEqual(6);
  expect(await inspector.getByLabel('Headline').locator('dd').allInnerTexts()).toEqual(
    headline.map(({ value }) => value),
  );
  expect(await inspector.getByLabel('Advice').innerText()).toBe(advice[0]?.text);
}

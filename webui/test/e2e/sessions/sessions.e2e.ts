// Sessions: the op table, the session list, damaged files, and a restart of the server.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { formatNs } from '../../../src/format';
import type { StepSummary } from '../../../src/net/types';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();

describe('the op table', () => {
  it('shows the ops of the clicked column, and the inputs of an op', async () => {
    const { page } = fixture;
    await fixture.recorded(8);
    // The first column belongs to the prompt.
    await page.locator('.plane-input').click({ position: { x: 82, y: 100 } });
    await page.getByRole('grid', { name: 'Ops of step 0' }).waitFor();
    await expect.poll(() => fixture.hash.get('step')).toBe('0');
    await fixture.filter.fill('op:mul_mat tensor:attn_q.weight layer:0');
    const row = fixture.ops.locator('.vgrid-row').first();
    await row.getByText('MUL_MAT').waitFor();
    await row.click();
    await fixture.inspector.getByText('blk.0.attn_q.weight').first().waitFor();
    await expect.poll(() => fixture.hash.get('q')).toContain('op:mul_mat');
  });

  it('is sorted by a column', async () => {
    await fixture.recorded(6);
    await fixture.ops.getByRole('button', { name: 'duration' }).click();
    const header = fixture.ops.getByRole('columnheader', { name: 'duration' });
    await expect.poll(() => header.getAttribute('aria-sort')).toBe('descending');
    // The rows are updated shortly after the header.
    const falling = () =>
      fixture.ops.locator('.vgrid-row .vgrid-cell:nth-child(6)').evaluateAll((cells) => {
        const durations = cells.map((cell) =>
          Number((cell as HTMLElement).title.replace(/\D/g, '')),
        );
        const falls = durations.toSorted((a, b) => b - a).join() === durations.join();
        return durations.length > 5 && falls;
      });
    await expect.poll(falling).toBe(true);
    await expect.poll(() => fixture.hash.get('o.table')).toBe('-duration_ns');
  });

  it('supports keyboard navigation', async () => {
    await fixture.recorded(6);
    await fixture.ops.focus();
    await fixture.page.keyboard.press('ArrowDown');
    await fixture.page.keyboard.press('ArrowDown');
    const active = fixture.ops.locator('[aria-selected=true]');
    await expect.poll(() => active.getAttribute('aria-rowindex')).toBe('3');
    await expect.poll(() => fixture.hash.get('sel')).toBe(`o:${await fixture.outputOf(5, 1)}`);
  });

  it('shows the ops of a step selected in the steps table', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await fixture.rows('Steps');
    const steps = page.getByRole('grid', { name: 'Steps of the session' });
    await expect
      .poll(async () => Number(await steps.getAttribute('aria-rowcount')))
      .toBeGreaterThan(5);
    const row = steps.locator('.vgrid-row').nth(1);
    // What the machine did to it, and how long the threads waited for a processor.
    const rest = await fixture.get<{ steps: StepSummary[] }>('steps?from=1&limit=1');
    const { verdict = null, cpu_wait_ns: wait = null } = rest.steps[0] ?? {};
    const titles = await steps.getByRole('columnheader').allInnerTexts();
    const cells = await row.locator('.vgrid-cell').allInnerTexts();
    expect(cells[titles.indexOf('machine')]).toBe(verdict ?? '–');
    expect(cells[titles.indexOf('waited for CPU')]).toBe(wait === null ? '–' : formatNs(wait));
    await row.click();
    const { token_id: token } = rest.steps[0] ?? {};
    await expect
      .poll(() => fixture.inspector.locator('.inspection > header').innerText())
      .toContain(`Token ${token ?? ''}`);
    await fixture.rows('Ops');
    await page.getByRole('grid', { name: 'Ops of step 1' }).waitFor();
  });
});

describe('a session', () => {
  it('that is recorded opens without a request that fails', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    const failed: string[] = [];
    page.on('response', (answer) => {
      if (answer.status() >= 400) failed.push(`${answer.status()} ${answer.url()}`);
    });
    await fixture.fresh(page.url());
    await fixture.ops.waitFor();
    await page.waitForLoadState('networkidle');
    expect(failed).toEqual([]);
  });

  it('opens from the list, and Back returns', async () => {
    await fixture.runTextToEnd('First of two', 4);
    const first = fixture.session;
    await fixture.runText('Second of two', 4);
    await expect.poll(() => fixture.session).not.toBe(first);
    await fixture.waitDone();
    await fixture.row('First of two').locator('.session-open').click();
    await fixture.log.getByText('First').first().waitFor();
    await fixture.page.goBack();
    await fixture.log.getByText('Second').first().waitFor();
  });

  it('is renamed, found, deleted and restored', async () => {
    const { page } = fixture;
    await fixture.runTextToEnd('To be renamed', 4);
    const id = fixture.session ?? '';
    const row = fixture.row('To be renamed');
    await row.hover();
    await row.getByRole('button', { name: /^Rename/ }).click();
    await page.getByLabel('New title').fill('Quokka');
    await page.keyboard.press('Enter');
    await fixture.row('Quokka').waitFor();
    await page.getByLabel('Search sessions').fill('quokka');
    await expect.poll(() => page.locator('.session').count()).toBe(1);
    await page.getByLabel('State', { exact: true }).selectOption('failed');
    await page.getByText('No session matches').waitFor();
    await page.getByRole('button', { name: 'Clear the filter' }).click();
    await fixture.row('Quokka').hover();
    await fixture
      .row('Quokka')
      .getByRole('button', { name: /^Delete/ })
      .click();
    await expect.poll(() => fixture.row('Quokka').count()).toBe(0);
    await expect.poll(() => fixture.session).toBeNull();
    await fixture.toasts.getByRole('button', { name: 'Undo' }).click();
    await fixture.row('Quokka').waitFor();
    await expect.poll(() => fixture.session).toBe(id);
    await fixture.ops.waitFor();
  });

  it('is downloaded, and uploaded again', async () => {
    const { page } = fixture;
    await fixture.runTextToEnd('There and back', 4);
    const id = fixture.session ?? '';
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      fixture.row('There and back').getByRole('link').dispatchEvent('click'),
    ]);
    expect(download.suggestedFilename()).toBe(`${id}.ttrace`);
    const file = await download.path();
    await fixture.row('There and back').hover();
    await fixture
      .row('There and back')
      .getByRole('button', { name: /^Delete/ })
      .click();
    await expect.poll(() => fixture.row('There and back').count()).toBe(0);
    await page.locator('#upload').setInputFiles(file);
    await fixture.toasts.getByText('Added “There and back”').waitFor();
    await fixture.row('There and back').waitFor();
    await expect.poll(() => fixture.session).toBe(id);
    await fixture.ops.waitFor();
  });

  it('with unreadable steps shows an error, and is read again by Try again', async () => {
    const { page } = fixture;
    await fixture.runTextToEnd('Hard to read', 4);
    const problem = { code: 'session_damaged', title: 'Damaged', detail: 'A row is damaged.' };
    // The page also retries by itself, so the request fails until the button is pressed.
    await page.route(/\/steps\?/, async (route) => {
      const pressed: unknown = await page.evaluate('window.pressed').catch(() => false);
      if (pressed) await route.continue();
      else await route.fulfill({ status: 500, body: JSON.stringify(problem) });
    });
    await page.reload();
    const failed = page.getByRole('alert').filter({ hasText: 'The steps cannot be read.' }).first();
    await failed.getByText('A row is damaged.').waitFor();
    await page.evaluate("addEventListener('click', () => (window.pressed = true), true)");
    await failed.getByRole('button', { name: 'Try again' }).click();
    await fixture.ops.waitFor();
    fixture.errors = fixture.errors.filter((text) => !text.includes(' 500 '));
  });

  it('is opened by dropping its file', async () => {
    const { page } = fixture;
    await fixture.runTextToEnd('Dropped', 4);
    const id = fixture.session ?? '';
    const transfer = await page.evaluateHandle(async (url) => {
      const data = new DataTransfer();
      data.items.add(new File([await (await fetch(url)).blob()], 'dropped.ttrace'));
      return data;
    }, `api/v1/sessions/${id}/file`);
    await fixture.row('Dropped').hover();
    await fixture
      .row('Dropped')
      .getByRole('button', { name: /^Delete/ })
      .click();
    await expect.poll(() => fixture.session).toBeNull();
    await page.dispatchEvent('body', 'dragenter', { dataTransfer: transfer });
    await page.dispatchEvent('body', 'drop', { dataTransfer: transfer });
    await expect.poll(() => fixture.session).toBe(id);
    await fixture.ops.waitFor();
  });

  it('upload of an invalid file is rejected with the file’s name and the reason', async () => {
    const { page } = fixture;
    const transfer = await page.evaluateHandle(() => {
      const data = new DataTransfer();
      data.items.add(new File(['no session at all'], 'holiday.ttrace'));
      return data;
    });
    await page.dispatchEvent('body', 'dragenter', { dataTransfer: transfer });
    await page.getByText('Drop .ttrace files to add them', { exact: true }).waitFor();
    await page.dispatchEvent('body', 'drop', { dataTransfer: transfer });
    await fixture.toasts.getByText(/^holiday\.ttrace was not added: ./).waitFor();
    fixture.errors = fixture.errors.filter((text) => !/ 4\d\d /.test(text));
  });
});

describe('a damaged file', () => {
  it('is shown up to the damage, with a warning', async () => {
    const { page } = fixture;
    await fixture.runText('A long story about a file', 120);
    await fixture.waitDone();
    const whole = await readFile(join(fixture.server.data, `${fixture.session ?? ''}.ttrace`));
    // The file layout differs between runs: not every cut leaves readable steps.
    for (const left of [0.7, 0.75, 0.8, 0.85, 0.9]) {
      await writeFile(
        join(fixture.server.data, 'cut.ttrace'),
        whole.subarray(0, Math.floor(whole.length * left)),
      );
      const answer = await fetch(`${fixture.server.url}/api/v1/sessions/cut/steps?limit=1000`);
      if (Number(answer.headers.get('X-Whole-Steps') ?? 0) > 10) break;
    }
    await page.goto(`${fixture.server.url}#1&session=cut`);
    await page.reload();
    const status = page.getByRole('contentinfo');
    await status.getByText(/^file damaged: last \d+ steps not shown$/).waitFor();
    const steps = async (): Promise<number> =>
      Number(/(\d+) steps/.exec((await status.textContent()) ?? '')?.[1]);
    await expect.poll(steps).toBeGreaterThan(10);
    const shown = await steps();
    expect(shown).toBeLessThan(120);
    await page.getByRole('grid', { name: `Ops of step ${String(shown - 1)}` }).waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
  });
});

describe('a server restart', () => {
  it('is reported, and the page recovers', async () => {
    fixture.expectStatus(404);
    const { page } = fixture;
    await fixture.runTextToEnd('Before the fall', 4);
    const { total } = await fixture.get<{ total: number }>('steps?limit=1');
    const last = page.getByRole('grid', { name: `Ops of step ${String(total - 1)}`, exact: true });
    await expect.poll(() => last.locator('.vgrid-row').count()).toBeGreaterThan(5);
    await fixture.server.pause();
    await page.getByRole('alert').getByText('The server does not respond').waitFor();
    await page.getByText('not updating').first().waitFor();
    await page.getByRole('button', { name: 'Delete Before the fall' }).click();
    const messages = fixture.toasts.locator('[data-tone=fault]');
    await messages.getByText('Cannot delete').waitFor();
    // Loaded data stays; other panels show the reason.
    expect(await fixture.ops.locator('.vgrid-row').count()).toBeGreaterThan(5);
    await page.locator('.plane-input').click({ position: { x: 82, y: 100 } });
    // The ops of step 0 may have been loaded during the run; this picture was not.
    await page
      .getByRole('combobox', { name: 'Preset' })
      .selectOption({ label: 'Layer × component' });
    await page.getByText('This loads automatically when it is back').first().waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
    await fixture.server.resume();
    // The page also reconnects by itself, so the button may be gone.
    const tryNow = page.getByRole('button', { name: 'Try now' });
    if (await tryNow.isVisible()) await tryNow.click({ timeout: 2000 }).catch(() => null);
    await page.getByRole('grid', { name: 'Ops of step 0' }).waitFor();
    await page.locator('[data-reach=live]').waitFor();
    await expect.poll(() => page.locator('.away').count()).toBe(0);
    await expect.poll(() => messages.count()).toBe(0); // those of the outage
    await expect.poll(() => fixture.run.isEnabled()).toBe(true);
    await fixture.runTextToEnd('After it', 4);
    // The browser logs each failed connection attempt, and 503 of a server that is stopping.
    fixture.errors = fixture.errors.filter((text) => !/ERR_CONNECTION|status of 503/.test(text));
  });
});

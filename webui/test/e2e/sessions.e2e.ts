// Sessions: opened, steps and ops looked at, and the server going away.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Session } from '../../src/net/types';
import { Stage } from './stage';

const stage = Stage.use();

describe('the op table', () => {
  it('shows the ops of the column that is clicked, and what one read', async () => {
    const { page } = stage;
    await stage.textToEnd('The model reads', 8);
    // The first column belongs to the prompt.
    await page.locator('.heatmap canvas').click({ position: { x: 70, y: 100 } });
    await page.getByRole('grid', { name: 'Ops of step 0' }).waitFor();
    await expect.poll(() => stage.hash.get('step')).toBe('0');
    await page.getByLabel('Filter the ops').fill('op:mul_mat source:attn_q.weight layer:0');
    const row = stage.ops.locator('.vgrid-row').first();
    await row.getByText('MUL_MAT').waitFor();
    await row.click();
    await stage.inspector.getByText('blk.0.attn_q.weight').first().waitFor();
    await expect.poll(() => stage.hash.get('f.ops')).toContain('op:mul_mat');
  });

  it('is sorted by the server', async () => {
    const { page } = stage;
    await stage.textToEnd('Sort them', 4);
    const [request] = await Promise.all([
      page.waitForRequest((one) => /\/ops\?.*sort=/.test(one.url())),
      stage.ops.getByRole('button', { name: 'duration' }).click(),
    ]);
    expect(new URL(request.url()).searchParams.get('sort')).toBe('-duration');
    const header = stage.ops.getByRole('columnheader', { name: 'duration' });
    await expect.poll(() => header.getAttribute('aria-sort')).toBe('descending');
    // The rows are there a moment after what the header says of them.
    const falling = () =>
      stage.ops.locator('.vgrid-row .vgrid-cell:nth-child(6)').evaluateAll((cells) => {
        const durations = cells.map((cell) =>
          Number((cell as HTMLElement).title.replace(/\D/g, '')),
        );
        const falls = durations.toSorted((a, b) => b - a).join() === durations.join();
        return durations.length > 5 && falls;
      });
    await expect.poll(falling).toBe(true);
    await expect.poll(() => stage.hash.get('o.ops')).toBe('-duration');
  });

  it('moves by key', async () => {
    await stage.textToEnd('By key', 4);
    await stage.ops.focus();
    await stage.page.keyboard.press('ArrowDown');
    await stage.page.keyboard.press('ArrowDown');
    const active = stage.ops.locator('[aria-selected=true]');
    await expect.poll(() => active.getAttribute('aria-rowindex')).toBe('3');
    await expect.poll(() => stage.hash.get('sel')).toBe('o:1');
  });

  it('has the steps beside it', async () => {
    const { page } = stage;
    await stage.textToEnd('In numbers', 6);
    await stage.tab('Steps').click();
    const steps = page.getByRole('grid', { name: 'Steps of the session' });
    await expect
      .poll(async () => Number(await steps.getAttribute('aria-rowcount')))
      .toBeGreaterThan(5);
    await steps.locator('.vgrid-row').nth(1).click();
    await stage.tab('Ops').click();
    await page.getByRole('grid', { name: 'Ops of step 1' }).waitFor();
  });
});

describe('a session', () => {
  it('opens from the list, and Back leaves it', async () => {
    await stage.textToEnd('First of two', 4);
    const first = stage.session;
    await stage.text('Second of two', 4);
    await expect.poll(() => stage.session).not.toBe(first);
    await stage.done();
    await stage.row('First of two').locator('.session-open').click();
    await stage.log.getByText('First').first().waitFor();
    await stage.page.goBack();
    await stage.log.getByText('Second').first().waitFor();
  });

  it('is renamed, found, deleted and brought back', async () => {
    const { page } = stage;
    await stage.textToEnd('To be renamed', 4);
    const id = stage.session ?? '';
    const row = stage.row('To be renamed');
    await row.hover();
    await row.getByRole('button', { name: /^Rename/ }).click();
    await page.getByLabel('New title').fill('Quokka');
    await page.keyboard.press('Enter');
    await stage.row('Quokka').waitFor();
    await page.getByLabel('Search sessions').fill('quokka');
    await expect.poll(() => page.locator('.session').count()).toBe(1);
    await page.getByLabel('State', { exact: true }).selectOption('failed');
    await page.getByText('No session matches').waitFor();
    await page.getByRole('button', { name: 'Clear the filter' }).click();
    await stage.row('Quokka').hover();
    await stage
      .row('Quokka')
      .getByRole('button', { name: /^Delete/ })
      .click();
    await expect.poll(() => stage.row('Quokka').count()).toBe(0);
    await expect.poll(() => stage.session).toBeNull();
    await stage.toasts.getByRole('button', { name: 'Undo' }).click();
    await stage.row('Quokka').waitFor();
    await expect.poll(() => stage.session).toBe(id);
    await stage.ops.waitFor();
  });

  it('is downloaded, and added again from its file', async () => {
    const { page } = stage;
    await stage.textToEnd('There and back', 4);
    const id = stage.session ?? '';
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      stage.row('There and back').getByRole('link').dispatchEvent('click'),
    ]);
    expect(download.suggestedFilename()).toBe(`${id}.ttrace`);
    const file = await download.path();
    await stage.row('There and back').hover();
    await stage
      .row('There and back')
      .getByRole('button', { name: /^Delete/ })
      .click();
    await expect.poll(() => stage.row('There and back').count()).toBe(0);
    await page.locator('#upload').setInputFiles(file);
    await stage.toasts.getByText('Added “There and back”').waitFor();
    await stage.row('There and back').waitFor();
    await stage.toasts.getByRole('button', { name: 'Open' }).click();
    await expect.poll(() => stage.session).not.toBeNull();
    await stage.ops.waitFor();
  });

  it('whose steps cannot be read says so, and is read again when asked', async () => {
    const { page } = stage;
    await stage.textToEnd('Hard to read', 4);
    const problem = { code: 'session_damaged', title: 'Damaged', detail: 'A row is damaged.' };
    // The page asks again by itself, too: the steps are hard to read until the
    // button is pressed, however often it asks before.
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
    await stage.ops.waitFor();
    stage.complaints = stage.complaints.filter((text) => !text.includes(' 500 '));
  });

  it('that is none is refused with the file’s name and the reason', async () => {
    const { page } = stage;
    const transfer = await page.evaluateHandle(() => {
      const data = new DataTransfer();
      data.items.add(new File(['no session at all'], 'holiday.ttrace'));
      return data;
    });
    await page.dispatchEvent('body', 'dragenter', { dataTransfer: transfer });
    await page.getByText('Drop .ttrace files to add them', { exact: true }).waitFor();
    await page.dispatchEvent('body', 'drop', { dataTransfer: transfer });
    await stage.toasts.getByText(/^holiday\.ttrace was not added: ./).waitFor();
    stage.complaints = stage.complaints.filter((text) => !/ 4\d\d /.test(text));
  });
});

describe('a damaged file', () => {
  it('is shown up to the damage, and the page says so', async () => {
    const { page } = stage;
    // On a busy machine a recording loses times, and the status line would say that, too.
    const losses = async (): Promise<unknown> => {
      const before = stage.session;
      await stage.text('A long story about a file', 120);
      await expect.poll(() => stage.session).not.toBe(before);
      await stage.done();
      const session = await fetch(`${stage.server.url}/api/v1/sessions/${stage.session ?? ''}`);
      return ((await session.json()) as Session).losses;
    };
    await expect.poll(losses, { timeout: 30_000 }).toMatchObject({ steps_without_times: 0 });
    const whole = await readFile(join(stage.server.data, `${stage.session ?? ''}.ttrace`));
    // What lies where differs from run to run: not every cut leaves steps that can be read.
    for (const left of [0.7, 0.75, 0.8, 0.85, 0.9]) {
      await writeFile(
        join(stage.server.data, 'cut.ttrace'),
        whole.subarray(0, Math.floor(whole.length * left)),
      );
      const answer = await fetch(`${stage.server.url}/api/v1/sessions/cut/steps?limit=1000`);
      if (Number(answer.headers.get('X-Whole-Steps') ?? 0) > 10) break;
    }
    await page.goto(`${stage.server.url}#1&session=cut`);
    await page.reload();
    const status = page.getByRole('contentinfo');
    await status.getByText(/^file damaged: its last \d+ steps not shown$/).waitFor();
    const steps = async (): Promise<number> =>
      Number(/(\d+) steps/.exec((await status.textContent()) ?? '')?.[1]);
    await expect.poll(steps).toBeGreaterThan(10);
    const shown = await steps();
    expect(shown).toBeLessThan(120);
    await page.getByRole('grid', { name: `Ops of step ${String(shown - 1)}` }).waitFor();
    expect(await stage.faults()).toEqual([]);
  });
});

describe('a server that goes away', () => {
  it('is missed, and everything goes on when it is back', async () => {
    const { page } = stage;
    await stage.textToEnd('Before the fall', 4);
    await stage.server.pause();
    await page.getByRole('alert').getByText('The server does not answer').waitFor();
    await page.getByText('not updating').first().waitFor();
    // What was loaded stays; what is not there says why.
    expect(await stage.ops.locator('.vgrid-row').count()).toBeGreaterThan(5);
    await page.locator('.heatmap canvas').click({ position: { x: 70, y: 100 } });
    await page.getByText('This loads by itself when it is back').first().waitFor();
    expect(await stage.faults()).toEqual([]);
    await stage.server.resume();
    // It tries by itself, too, and may have found it by now.
    await page
      .getByRole('button', { name: 'Try now' })
      .click({ timeout: 2000 })
      .catch(() => null);
    await page.getByRole('grid', { name: 'Ops of step 0' }).waitFor();
    await page.locator('[data-reach=live]').waitFor();
    await expect.poll(() => page.locator('.away').count()).toBe(0);
    await expect.poll(() => stage.run.isEnabled()).toBe(true);
    await stage.textToEnd('After it', 4);
    // The browser logs each try that found nobody.
    stage.complaints = stage.complaints.filter((text) => !text.includes('ERR_CONNECTION'));
  });
});

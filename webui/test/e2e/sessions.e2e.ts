// Sessions: opened, steps and ops looked at, and the server going away.
import { describe, expect, it } from 'vitest';
import { Stage } from './stage';

const stage = Stage.use();

describe('the op table', () => {
  it('shows the ops of the column that is clicked, and what one read', async () => {
    const { page } = stage;
    await stage.textToEnd('The model reads', 8);
    // The first column belongs to the prompt.
    await page.locator('.heatmap canvas').click({ position: { x: 70, y: 100 } });
    await page.getByRole('grid', { name: 'Ops of step 0' }).waitFor();
    expect(stage.hash.get('step')).toBe('0');
    await page.getByLabel('Filter the ops').fill('op:mul_mat source:attn_q.weight layer:0');
    const row = stage.ops.locator('.vgrid-row').first();
    await row.getByText('MUL_MAT').waitFor();
    await row.click();
    await stage.inspector.getByText('blk.0.attn_q.weight').first().waitFor();
    await expect.poll(() => stage.hash.get('f.ops')).toContain('op:mul_mat');
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
    expect(Number(await steps.getAttribute('aria-rowcount'))).toBeGreaterThan(5);
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
});

// The first minute of a visitor, the layouts, docks, small windows and themes.
import { describe, expect, it } from 'vitest';
import type { Memory, Model, Session } from '../../../src/net/types';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();
const docks = () =>
  fixture.page
    .locator('.dock')
    .evaluateAll((all) =>
      all.map((dock) =>
        [...dock.querySelectorAll('[role=tab]')].map((tab) => tab.textContent).join(),
      ),
    );

describe('without a session', () => {
  it('each panel says what it shows, and an example opens', async () => {
    const { page } = fixture;
    for (const name of ['Map', 'Table', 'Inspector']) {
      const panel = page.getByRole('tabpanel', { name, exact: true });
      expect((await panel.innerText()).length).toBeGreaterThan(60);
    }
    expect(await fixture.axeViolations()).toEqual([]);
    await page.getByRole('log').getByRole('button', { name: 'Open an example session' }).click();
    await fixture.ops.waitFor();
    const session = await fixture.get<Session>('');
    expect(session.title).toBe('Example: What is the KV cache?');
    await fixture.row('Example: What is the KV cache?').waitFor();
    await expect
      .poll(() =>
        fixture.inspector.getByRole('list', { name: 'Summary' }).getByRole('button').count(),
      )
      .toBeGreaterThanOrEqual(6);
  });

  it('three prompts are offered, and a click runs one', async () => {
    const { page } = fixture;
    const prompts = page.getByRole('list', { name: 'Prompts to try' }).getByRole('button');
    expect(await prompts.count()).toBe(3);
    const text = (await prompts.first().innerText()).split('\n')[0] ?? '';
    // What was written before stays.
    const field = page.getByPlaceholder('Write a message');
    await field.fill('A long text that I pasted');
    await prompts.first().click();
    await fixture.log.getByText(text).first().waitFor();
    await fixture.waitDone();
    await expect.poll(() => fixture.answer.innerText()).toContain('KV cache');
    expect(await field.inputValue()).toBe('A long text that I pasted');
    await field.fill('');
  });

  it('the prompts to try are whole beside the open settings', async () => {
    const { page, log } = fixture;
    await page.getByText('Settings', { exact: true }).click();
    await page.getByLabel('Max tokens').waitFor();
    const hidden = await log.evaluate((box) => box.scrollHeight - box.clientHeight);
    expect(hidden).toBeLessThan(1);
    expect(await page.locator('.examples button:visible').count()).toBe(3);
    await page.getByText('Settings', { exact: true }).click();
    await log.getByRole('heading').waitFor();
  });

  it('the help of a panel explains it', async () => {
    const { page } = fixture;
    await page.getByRole('button', { name: 'What Map shows' }).click();
    await page.getByText('Which part of the model cost what, and when').last().waitFor();
    await page.keyboard.press('Escape');
  });

  it('each panel has its sentence', async () => {
    const { page } = fixture;
    for (const name of [
      'Chat',
      'Sessions',
      'Map',
      'Graph',
      'Table',
      'Memory budget',
      'Inspector',
    ]) {
      await page.getByRole('tab', { name, exact: true }).click();
      const button = page.getByRole('button', { name: `What ${name} shows` });
      await button.click();
      const id = (await button.getAttribute('popovertarget')) ?? '';
      const about = page.locator(`[id="${id}"]`);
      await about.waitFor();
      expect(await about.innerText(), name).toMatch(/^[A-Z].{40,}\.$/s);
      await page.keyboard.press('Escape');
    }
  });
});

describe('the search', () => {
  it('finds tensors, ops, tokens and sessions', async () => {
    const { page } = fixture;
    await fixture.runTextToEnd('Find everything', 6);
    const options = page.getByRole('listbox', { name: 'Commands' }).getByRole('option');
    const search = async (text: string, group: string | RegExp): Promise<void> => {
      await page.keyboard.press('Control+k');
      await page.keyboard.type(text);
      await options.filter({ hasText: group }).first().click();
    };
    await search('blk.1.ffn_up', 'Weight');
    await expect
      .poll(() => fixture.inspector.locator('h2').innerText())
      .toBe('blk.1.ffn_up.weight');
    await search('mul_mat ffn_up-0', /Op \d+/);
    await expect.poll(() => fixture.hash.get('sel')).toBe('o:ffn_up-0');
    const { tokens } = await fixture.get<{ tokens: { text: string }[] }>('tokens');
    const word = tokens.map(({ text }) => text.trim()).find((text) => /^[a-z]{3,}$/.test(text));
    await search(word ?? '', 'Token');
    await expect.poll(() => fixture.hash.get('sel')).toMatch(/^k:\d+$/);
    const before = fixture.session;
    await page.keyboard.press('Control+k');
    await page.keyboard.type('close the session');
    await page.keyboard.press('Enter');
    await expect.poll(() => fixture.session).toBeNull();
    await search('find everything', 'Sessions');
    await expect.poll(() => fixture.session).toBe(before);
  });
});

describe('the layout', () => {
  it('has three forms with a key each', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await page.getByRole('tab', { name: 'Table' }).click();
    const explore = await docks();
    expect(explore).toEqual([
      'Chat',
      'Sessions',
      'Map,Graph,Analytics,Compare,Weights,Values,SQL',
      'Table,Memory budget',
      'Inspector,Debugger',
    ]);
    await page.keyboard.press('r');
    await expect
      .poll(docks)
      .toEqual([
        'Chat,Sessions',
        'Map,Graph,Analytics,Compare,Weights,Values,SQL,Table,Memory budget',
        'Inspector,Debugger',
      ]);
    await page.keyboard.press('g');
    await page.getByRole('application', { name: /^Layer 0: / }).waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
    await page.keyboard.press('e');
    await expect.poll(docks).toEqual(explore);
    await page.reload();
    await expect.poll(docks).toEqual(explore);
  });

  it('a dock shows the panel of its selected tab after each change', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    const shown = () =>
      page
        .locator('.dock')
        .evaluateAll((all) =>
          all.map((dock) => [
            dock.querySelector('[role=tab][aria-selected=true]')?.textContent ?? 'no tab',
            dock.querySelector('[role=tabpanel]')?.getAttribute('aria-label') ?? 'no panel',
          ]),
        );
    for (const [key, docksThen] of [
      ['e', 5],
      ['g', 3],
      ['e', 5],
      ['r', 3],
      ['g', 3],
    ] as const) {
      await page.keyboard.press(key);
      await expect.poll(async () => (await shown()).length).toBe(docksThen);
      for (const [tab, panel] of await shown()) expect(panel, `after ${key}`).toBe(tab);
    }
  });

  it('is changed by dragging a tab, with a menu, and by moving a bar', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    const target = page.getByRole('tabpanel', { name: 'Table' });
    const box = await target.boundingBox();
    await fixture.tab('Graph').dragTo(target, {
      targetPosition: { x: (box?.width ?? 0) - 12, y: (box?.height ?? 0) / 2 },
    });
    await expect
      .poll(docks)
      .toEqual([
        'Chat',
        'Sessions',
        'Map,Analytics,Compare,Weights,Values,SQL',
        'Table,Memory budget',
        'Graph',
        'Inspector,Debugger',
      ]);
    await page.getByRole('application', { name: /^Layer 0: / }).waitFor();
    await page.getByRole('button', { name: 'Move Graph' }).click();
    await page.getByRole('button', { name: 'Move beside the tab Map' }).click();
    await expect
      .poll(docks)
      .toEqual([
        'Chat',
        'Sessions',
        'Map,Analytics,Compare,Weights,Values,SQL,Graph',
        'Table,Memory budget',
        'Inspector,Debugger',
      ]);
    const bar = page.getByRole('separator', {
      name: 'Height of Map, Analytics, Compare, Weights, Values, SQL, Graph',
    });
    const height = async () => (await target.boundingBox())?.height ?? 0;
    const before = await height();
    await bar.focus();
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowUp');
    await expect.poll(height).toBeGreaterThan(before + 10);
    await page.reload();
    await expect.poll(height).toBeGreaterThan(before + 10);
    await bar.dblclick();
  });
});

describe('a small window', () => {
  const PANELS = [
    'Chat',
    'Sessions',
    'Map',
    'Graph',
    'Table',
    'Memory budget',
    'Inspector',
    'Analytics',
    'Compare',
    'Weights',
    'Values',
    'SQL',
    'Debugger',
  ];

  // The controls that are not completely within the width of the window.
  const outside = (width: number): Promise<readonly (string | null)[]> =>
    fixture.page.evaluate((w) => {
      const controls = document.querySelectorAll<HTMLElement>('button, input, select, textarea, a');
      return [...controls]
        .filter(
          (one) =>
            one.checkVisibility() && !one.closest('[popover], .vgrid, .tabs, .visually-hidden'),
        )
        .filter((one) => {
          const box = one.getBoundingClientRect();
          return box.width > 0 && (box.right > w + 1 || box.left < -1);
        })
        .map((one) => one.getAttribute('aria-label') ?? one.textContent);
    }, width);

  it('has all panels as tabs, and every control in reach', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    // 390 px, and 1440 px at a zoom of 200 %.
    for (const [width, height] of [
      [390, 844],
      [720, 450],
    ] as const) {
      // prettier-ignore
      await page.setViewportSize({ width, height });
      await expect.poll(docks).toEqual([PANELS.join()]);
      const missing: string[] = [];
      for (const name of PANELS) {
        await fixture.tab(name).click();
        await page.getByRole('tabpanel', { name, exact: true }).waitFor();
        missing.push(...(await outside(width)).map((control) => `${name}: ${control ?? ''}`));
        expect(await fixture.axeViolations(), `${name} at ${width}`).toEqual([]);
      }
      expect(missing, `at ${width}`).toEqual([]);
      const { scrollWidth } = await page.evaluate(() => ({
        scrollWidth: document.documentElement.scrollWidth,
      }));
      expect(scrollWidth).toBeLessThanOrEqual(width);
    }
  });
});

describe('the memory budget of a small model', () => {
  it('is not offered; one that is not possible is removed with one button', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await fixture.tab('Memory budget').click();
    const panel = page.getByRole('tabpanel', { name: 'Memory budget' });
    const { models } = await fixture.rest<{ models: readonly Model[] }>('models');
    const memory = `models/${models.find(({ state }) => state === 'loaded')?.id ?? ''}/memory`;
    const { plan } = await fixture.rest<Memory>(memory);
    await panel.getByText('The model is too small for a budget').waitFor();
    expect(plan.weight_bytes).toBeLessThan(8 << 20);
    expect(await panel.getByRole('slider').count()).toBe(0);
    expect(await panel.getByRole('button', { name: /^Use / }).isDisabled()).toBe(true);
    // Another client sets one.
    await fixture.rest(memory, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ budget: 1 << 20 }),
    });
    const loaded = async () =>
      (await fixture.rest<{ models: readonly Model[] }>('models')).models.some(
        ({ state }) => state === 'loaded',
      );
    const phase = async () => (await fixture.rest<Memory>(memory)).phase;
    await expect.poll(loaded).toBe(true);
    await fixture.generate({ max_tokens: 2 });
    await expect.poll(phase).toBe('unavailable');
    await panel.getByText('Not possible.').waitFor();
    const remove = panel.getByRole('button', { name: 'Remove budget' });
    expect(await remove.getAttribute('class')).toBe('primary');
    await remove.click();
    await expect.poll(phase).toBe('off');
    await panel.getByRole('button', { name: 'Off', exact: true, pressed: true }).waitFor();
  });
});

// As WCAG defines it, of colours such as "rgb(1, 2, 3)".
function contrastOf(a: string, b: string): number {
  const luminance = (colour: string): number => {
    const [r = 0, g = 0, blue = 0] = (colour.match(/[\d.]+/g) ?? []).map((one) => {
      const part = Number(one) / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * blue;
  };
  const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

describe('themes', () => {
  it('have one of high contrast', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await page.emulateMedia({ contrast: 'more' });
    await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe('contrast');
    await fixture.ops.locator('.vgrid-row').first().click();
    expect(await fixture.axeViolations()).toEqual([]);
    await page.emulateMedia({ contrast: 'no-preference' });
    await page.keyboard.press('Control+k');
    await page.keyboard.type('high contrast');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe('contrast');
    expect(await fixture.axeViolations()).toEqual([]);
  });

  it('have a readable name and figure of the row under the pointer in the map', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await page.locator('.plane-input').hover();
    const badges = page.locator('.plane-name span, .plane-figure span');
    for (const media of [
      { colorScheme: 'dark', contrast: 'no-preference' },
      { colorScheme: 'light', contrast: 'no-preference' },
      { colorScheme: 'dark', contrast: 'more' },
    ] as const) {
      await page.emulateMedia(media);
      const theme = media.contrast === 'more' ? 'contrast' : media.colorScheme;
      await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe(theme);
      const colours = await badges.evaluateAll((all) =>
        all.map((one) => [getComputedStyle(one).color, getComputedStyle(one).backgroundColor]),
      );
      expect(colours).toHaveLength(2);
      for (const [text = '', back = ''] of colours)
        expect(contrastOf(text, back), theme).toBeGreaterThan(4.5);
    }
  });

  it('do not move where reduced motion is preferred', async () => {
    const { page } = fixture;
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await fixture.runText('Still', 12);
    await page.locator('progress').first().waitFor();
    const moving = await page.evaluate(() => document.getAnimations().length);
    expect(moving).toBe(0);
    await fixture.waitDone();
  });
});

// The shell: links, Back and Forward, keys, palette, full screen, themes.
import { describe, expect, it } from 'vitest';
import type { Op, StepSummary, Tensor } from '../../../src/net/types';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();
const press = (...keys: readonly string[]) =>
  keys.reduce(
    (before, key) => before.then(() => fixture.page.keyboard.press(key)),
    Promise.resolve(),
  );
// Moves the focus out of text fields.
const leaveFields = () => fixture.page.getByRole('tab', { name: 'Table' }).click();
const chosen = () => fixture.inspector.locator('.inspection h2');

describe('the URL', () => {
  it('restores the view after a reload, Back and Forward', async () => {
    const { page } = fixture;
    await fixture.recorded(8);
    await leaveFields();
    await press('}');
    const { ops } = await fixture.get<{ ops: Op[] }>('steps/7/ops?limit=1000');
    const index = ops.findIndex(({ op_layer_id: layer }) => layer === 1);
    await fixture.ops.evaluate((grid, top) => {
      grid.scrollTop = top;
    }, 24 * index);
    await fixture.ops.locator(`.vgrid-row[data-index="${index}"]`).click();
    const op = await chosen().innerText();
    await page.getByRole('radio', { name: 'Generate' }).check();
    await leaveFields();
    await press('f');
    await expect.poll(() => fixture.hash.get('full')).toBe('table');
    const { hash } = new URL(page.url());
    const sel = `o:${await fixture.outputOf(7, index)}`;
    expect(Object.fromEntries(fixture.hash)).toMatchObject({ sel, ph: 'g', l: '1' });

    await page.reload();
    await fixture.ops.waitFor();
    expect(new URL(page.url()).hash).toBe(hash);
    await expect.poll(() => page.locator('.dock[data-full=true]').count()).toBe(1);
    expect(await fixture.ops.locator('[aria-selected=true]').getAttribute('aria-rowindex')).toBe(
      String(index + 2),
    );
    await press('Escape');
    await expect.poll(() => chosen().innerText()).toBe(op);

    // Escape and each selection before it pushed an entry.
    await page.goBack();
    await expect.poll(() => fixture.hash.get('full')).toBe('table');
    for (const key of ['full', 'ph', 'sel', 'l']) {
      await page.goBack();
      await expect.poll(() => fixture.hash.has(key)).toBe(false);
    }
    await page.goForward(); // the layer
    await page.goForward();
    await expect.poll(() => chosen().innerText()).toBe(op);
  });

  it('reports its invalid parts', async () => {
    await fixture.page.goto(`${fixture.server.url}/#1&step=x&full=nowhere`);
    await fixture.toasts.getByText('step=x, full=nowhere').waitFor();
    await expect.poll(() => new URL(fixture.page.url()).hash).toBe('');
  });

  it('of a session that does not exist says so and leaves the page usable', async () => {
    const gone = '20200101-000000-000000';
    await fixture.page.goto(`${fixture.server.url}/#1&session=${gone}&step=3`);
    await fixture.toasts.getByText(`Session ${gone} not found`).waitFor();
    await expect.poll(() => fixture.hash.has('session')).toBe(false);
    expect(await fixture.page.getByText('cannot be shown').count()).toBe(0);
    expect(fixture.errors).toEqual([]);
  });
});

describe('keys', () => {
  it('move, toggle full screen and go back one level at a time', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await fixture.ops.locator('.vgrid-row').first().click();
    await press('f');
    await expect.poll(() => page.locator('.dock[data-full=true]').count()).toBe(1);
    await press('Control+k');
    await page.getByRole('dialog', { name: 'Search and commands' }).waitFor();
    await press('Escape');
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    expect(fixture.hash.get('full')).toBe('table');
    await press('Escape');
    await expect.poll(() => fixture.hash.get('full')).toBeNull();
    expect(fixture.hash.get('sel')).toBe(`o:${await fixture.outputOf(5, 0)}`);
    await press('Escape');
    await expect.poll(() => fixture.hash.get('sel')).toBeNull();
    await press('[');
    await page.getByRole('grid', { name: 'Ops of step 4' }).waitFor();
    await press(']', '}', '}', '{');
    await page.getByRole('grid', { name: 'Ops of step 5' }).waitFor();
    await expect.poll(() => fixture.hash.get('l')).toBe('1');
  });

  it('are listed, and single keys can be disabled', async () => {
    const { page } = fixture;
    await leaveFields();
    await press('?');
    const help = page.getByRole('dialog', { name: 'Keyboard shortcuts and glossary' });
    await help.getByText('Next layer', { exact: true }).waitFor();
    await help.getByLabel('Enable single-key shortcuts').uncheck();
    await press('Escape');
    await leaveFields();
    await press('f', '?');
    expect(fixture.hash.get('full')).toBeNull();
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  it('are ignored in text fields', async () => {
    const field = fixture.page.getByRole('textbox', { name: 'Message' });
    await field.focus();
    await press('f', '?', '[');
    expect(await field.inputValue()).toBe('f?[');
    expect(await fixture.page.getByRole('dialog').count()).toBe(0);
  });
});

describe('the palette', () => {
  it('finds a command by a few letters', async () => {
    const { page } = fixture;
    await press('Control+Shift+p');
    await page.keyboard.type('light th');
    const list = page.getByRole('listbox', { name: 'Commands' });
    await expect.poll(() => list.getByRole('option').first().innerText()).toContain('Light theme');
    expect(await fixture.axeViolations()).toEqual([]);
    await press('Enter');
    await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe('light');
    await page.reload();
    await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe('light');
    await press('Control+k');
    await page.keyboard.type('xqz');
    await page.getByText('Nothing found').waitFor();
  });

  it('shows the view or the question before a term that only contains the words', async () => {
    const { page } = fixture;
    await fixture.recorded();
    await press('Control+k');
    const list = page.getByRole('listbox', { name: 'Commands' });
    const first = () => list.getByRole('option').first().innerText();
    for (const [words, title] of [
      ['roofline', 'Analytics: Roofline'],
      ['memory bound', 'What is memory-bound, and how far?'],
      ['KV cache', 'KV cache'], // the whole name of a term: its meaning
    ] as const) {
      await page.getByRole('combobox', { name: 'Command' }).fill(words);
      await expect.poll(first).toContain(title);
    }
    await press('Escape');
  });

  it('leaves the list of completions closed if the filter had the focus', async () => {
    const { page, filter } = fixture;
    await fixture.recorded();
    await filter.focus();
    await expect.poll(() => filter.getAttribute('aria-expanded')).toBe('true');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('token 3');
    await page.keyboard.press('Enter');
    await expect.poll(() => fixture.hash.get('sel')).toBe('k:3');
    expect(await filter.evaluate((field) => field === document.activeElement)).toBe(true);
    expect(await filter.getAttribute('aria-expanded')).toBe('false');
    await page.keyboard.type('layer:');
    await expect.poll(() => filter.getAttribute('aria-expanded')).toBe('true');
  });

  it('says how many more tensors, ops and tokens there are than it lists', async () => {
    const { page } = fixture;
    await fixture.recorded();
    const { steps } = await fixture.get<{ steps: StepSummary[] }>('steps');
    const { tensors } = await fixture.get<{ tensors: Tensor[] }>(
      `templates/${steps.at(-1)?.template ?? 0}/tensors?limit=10000`,
    );
    const named = tensors.filter((one) => `${one.tensor_name} ${one.role}`.includes('ffn')).length;
    await page.keyboard.press('Control+k');
    await page.keyboard.type('ffn');
    const more = page.getByRole('option', {
      name: `${named - 8} more tensors: type more of the name`,
    });
    await more.dispatchEvent('click');
    await more.waitFor(); // nothing happens
    await page.keyboard.press('Escape');
  });

  it('goes to a step by its number', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await press('Control+k');
    await page.keyboard.type('2');
    await press('Enter');
    await page.getByRole('grid', { name: 'Ops of step 2' }).waitFor();
  });
});

describe('the settings of a run', () => {
  it('are loaded when they are opened, at the options of the server if the search asks for them', async () => {
    const { page } = fixture;
    const options = page.locator('.server-options');
    expect(await options.count()).toBe(0);
    await press('Control+k');
    await page.keyboard.type('flash attention');
    await page.getByRole('option', { name: /options of the server/ }).click();
    await options.waitFor();
    // In view, not only below what scrolls.
    const isSeen = () =>
      options.evaluate((one) => {
        const { x, y, height } = one.getBoundingClientRect();
        const at = document.elementFromPoint(x + 5, y + height / 2);
        return at !== null && one.contains(at);
      });
    await expect.poll(isSeen).toBe(true);
  });
});

describe('fields', () => {
  it('have room for their texts at 1440 x 900', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await page.getByText('Settings', { exact: true }).click();
    const cut = await page.evaluate(() => {
      const ctx = document.createElement('canvas').getContext('2d');
      const fits = (field: HTMLElement, text: string): boolean => {
        const style = getComputedStyle(field);
        if (!(field instanceof HTMLSelectElement)) {
          if (ctx) ctx.font = style.font;
          const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight); // prettier-ignore
          return (ctx?.measureText(text).width ?? Infinity) <= room + 1;
        }
        // As wide as this option alone.
        const alone = field.cloneNode(false) as HTMLSelectElement;
        alone.append(new Option(text));
        alone.style.cssText = 'position: absolute; width: max-content';
        field.after(alone);
        const width = alone.offsetWidth;
        alone.remove();
        return width <= field.offsetWidth + 1;
      };
      return [...document.querySelectorAll<HTMLElement>('select, [placeholder]')]
        .filter((field) => field.checkVisibility())
        .flatMap((field) => {
          if (!(field instanceof HTMLSelectElement)) {
            const text = field.getAttribute('placeholder') ?? '';
            return fits(field, text) ? [] : [text];
          }
          // Each option while it is chosen: a field may be as wide as its choice.
          const chosen = field.selectedIndex;
          const texts = [...field.options].flatMap(({ text }, i) => {
            field.selectedIndex = i;
            return fits(field, text) ? [] : [text];
          });
          field.selectedIndex = chosen;
          return texts;
        });
    });
    expect(cut).toEqual([]);
  });
});

describe('the top bar', () => {
  it.each([1440, 1280, 1024, 901, 390])('has no overlapping controls at %i pixels', async (width) => {
    const { page } = fixture;
    await page.setViewportSize({ width, height: 800 });
    await fixture.recorded(6);
    for (const name of ['pocket', 'Mixtral-8x22B-Instruct-v0.1-Q4_K_M-00001-of-00005']) {
      const overlaps = await page.evaluate((model) => {
        const shown = document.querySelector('.model-button b');
        if (shown) shown.textContent = model;
        const controls = [
          ...document.querySelectorAll('.top :is(h1, button, input:not([type=radio]), label, .reach, .stepper b)'),
        ]
          .filter((control) => control.checkVisibility() && !control.closest('[popover]'))
          .map((control) => ({ control, box: control.getBoundingClientRect() }));
        const nameOf = ({ control }: { control: Element }): string =>
          control.getAttribute('aria-label') ?? (control.textContent || control.className);
        const found = controls.flatMap((a, i) =>
          controls.slice(i + 1).flatMap((b) => {
            const x = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
            const y = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
            return x > 0.5 && y > 0.5 ? [`${nameOf(a)} and ${nameOf(b)}: ${Math.round(x)} px`] : [];
          }),
        );
        const outside = controls.filter(({ box }) => box.right > innerWidth || box.left < 0);
        return [controls.length, ...found, ...outside.map((one) => `outside: ${nameOf(one)}`)];
      }, name);
      expect(overlaps, name).toEqual([expect.toSatisfy((count) => count > 10)]);
    }
  }); // prettier-ignore
});

describe('a menu', () => {
  it('is as wide as its content, at most 440 pixels', async () => {
    const { page } = fixture;
    await fixture.example();
    const widthOf = async (name: string): Promise<number> => {
      await page.getByRole('button', { name, exact: true }).first().click();
      const width = (await page.locator('.menu:popover-open').boundingBox())?.width ?? 0;
      await page.keyboard.press('Escape');
      return width;
    };
    expect(await widthOf('Copy')).toBeLessThan(200);
    expect(await widthOf('Layout')).toBeLessThanOrEqual(440);
    expect(await widthOf('What Map shows')).toBeLessThanOrEqual(440);
  });
});

describe('accessibility', () => {
  it.each(['dark', 'light'] as const)('has no violations in the %s theme', async (theme) => {
    const { page } = fixture;
    await page.emulateMedia({ colorScheme: theme });
    await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe(theme);
    await fixture.recorded(6);
    await fixture.ops.locator('.vgrid-row').first().click();
    await fixture.inspector.getByRole('heading', { name: 'Accesses' }).waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
    await press('?');
    expect(await fixture.axeViolations()).toEqual([]);
  });

  it('supports keyboard navigation in the heat map', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await page.locator('.plane-input').focus();
    await press('Home', 'ArrowDown');
    const tip = page.locator('.tip');
    await tip.getByText('step 0', { exact: true }).waitFor();
    await expect.poll(() => tip.innerText()).toMatch(/layer\s+1/);
    await press('Enter');
    await page.getByRole('grid', { name: 'Ops of step 0' }).waitFor();
    // The prompt is one step of several tokens.
    await expect.poll(() => Object.fromEntries(fixture.hash)).toMatchObject({ sel: 'l:1', l: '1' });
    const { steps } = await fixture.get<{ steps: StepSummary[] }>('steps');
    await page.locator('.plane-input').focus();
    await press('ArrowRight', 'Enter');
    await page.getByRole('grid', { name: 'Ops of step 1' }).waitFor();
    await expect
      .poll(() => Object.fromEntries(fixture.hash))
      .toMatchObject({ sel: `k:${steps[1]?.token_id ?? -1}`, l: '1' });
  });
});

describe('a long warning', () => {
  it('is cut in the status line, and a click shows all of it', async () => {
    const { page } = fixture;
    const warning = 'The model has no chat template that works, so a conversation is written as ChatML. '.repeat(5).trim(); // prettier-ignore
    await page.route('**/api/v1/health', async (route) => {
      const response = await route.fetch();
      const health = (await response.json()) as object;
      await route.fulfill({ response, json: { ...health, warning } });
    });
    await page.reload();
    const button = page.locator('.status').getByRole('button', { name: warning, exact: true });
    const cut = button.locator('.menu-cut');
    await cut.waitFor();
    const isCut = () => cut.evaluate((one) => one.scrollWidth > one.clientWidth);
    expect(await isCut()).toBe(true);
    const end = await page.locator('.status-end').boundingBox();
    expect((end?.x ?? Infinity) + (end?.width ?? 0)).toBeLessThanOrEqual(1440);
    await button.click();
    const text = page.locator('.about', { hasText: warning });
    const box = await text.boundingBox();
    expect(box?.height).toBeGreaterThan(60); // several lines
    expect(box?.x).toBeGreaterThanOrEqual(0);
    expect((box?.x ?? Infinity) + (box?.width ?? 0)).toBeLessThanOrEqual(1440);
    expect(await text.evaluate((one) => one.scrollWidth > one.clientWidth)).toBe(false);
  });
});

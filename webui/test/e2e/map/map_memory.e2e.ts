// The map of the memory: the file, the buffers, and what was in memory before a step.
import { describe, expect, it } from 'vitest';
import { formatBytes } from '../../../src/format';
import type { Tensor } from '../../../src/net/types';
import { mapPanel } from '../support/map_panel';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();
const { map, input, tip, preset, settled, tableRows } = mapPanel(fixture);

describe('the preset Memory', () => {
  it('has a track of the file and one of the buffers', async () => {
    await fixture.recorded(6);
    await preset('Memory');
    await settled();
    await expect.poll(() => fixture.hash.get('p.map')).toBe('y:memory,x:all,v:bytes');
    const box = await input().boundingBox();
    if (!box) throw new Error('no map');
    await fixture.page.mouse.move(box.x + box.width / 2, box.y + 80);
    await tip().getByText('tensor').waitFor();
    await fixture.page.mouse.move(box.x + box.width / 2, box.y + box.height - 20);
    await tip().getByText('how often each byte is read or written').waitFor();
    await map().getByRole('checkbox', { name: 'Totals' }).check();
    await map().getByRole('columnheader').first().getByRole('button').click();
    await map().getByRole('grid').focus();
    await fixture.page.keyboard.press('End');
    await expect.poll(async () => [...(await tableRows()).keys()].join(' ')).toContain('cache_');
    // Each row has the whole name of a tensor: short names are the same in every layer.
    const { tensors } = await fixture.get<{ tensors: Tensor[] }>('templates/1/tensors?limit=10000');
    const names = tensors.map(({ tensor_name: name }) => name);
    expect(names).toEqual(expect.arrayContaining([...(await tableRows()).keys()]));
  });
});

describe('what was in memory', () => {
  it('is shown before the selected step, and equals REST', async () => {
    await fixture.recorded(6, { residency_interval_ms: 0 });
    await preset('Memory');
    for (const step of [2, 4]) {
      await fixture.show(fixture.session ?? '', `step=${step}`, 'p.map=y:memory,x:all');
      const { tensors } = await fixture.get<{
        tensors: readonly { mapped: boolean; file_bytes: number; resident_bytes: number | null }[];
      }>(`steps/${step}/residency`);
      const mapped = tensors.filter(({ mapped }) => mapped);
      const sum = (of: (one: (typeof tensors)[number]) => number) =>
        mapped.reduce((all, one) => all + of(one), 0);
      const bytes = sum(({ resident_bytes: resident }) => resident ?? 0);
      expect(bytes).toBeGreaterThan(0);
      const states = map().getByRole('list', { name: `The weights before step ${step}` });
      await expect.poll(() => states.innerText()).toContain(`in memory ${formatBytes(bytes)}`);
      const missing = sum(({ file_bytes: size }) => size) - bytes;
      expect(await states.innerText()).toContain(`not in memory ${formatBytes(missing)}`);
      const { rows } = await fixture.sql<[number]>(
        `SELECT sum(resident_bytes) FROM residency WHERE step = ${step}`,
      );
      expect(rows[0]?.[0]).toBe(bytes);
    }
    // A question leads to the first snapshot.
    const { page } = fixture;
    const first = await fixture.sql<[number]>('SELECT min(step) FROM residency');
    const step = first.rows[0]?.[0] ?? -1;
    await page.getByRole('button', { name: 'Questions' }).click();
    await page.getByRole('button', { name: 'What was in memory?' }).click();
    await map()
      .getByRole('list', { name: `The weights before step ${step}` })
      .waitFor();
    expect(fixture.hash.get('step')).toBe(String(step));
    // It is not asked of a session without snapshots.
    await fixture.recorded(12);
    await page.getByRole('button', { name: 'Questions' }).click();
    await page.getByRole('button', { name: 'What waits for the disk?' }).waitFor();
    expect(await page.getByRole('button', { name: 'What was in memory?' }).count()).toBe(0);
  });
});

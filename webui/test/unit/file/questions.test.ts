import { describe, expect, it } from 'vitest';
import { questions } from '../../../src/file/questions';
import { CHARTS } from '../../../src/panels/analytics/all_charts';
import { scopeOf } from '../../../src/panels/analytics/spec';
import { emptyView } from '../../../src/state/view/view';

const all = await questions();

describe('what a file asks beforehand', () => {
  it('has a placeholder for all that depends on the session', () => {
    const texts = all.map(({ target, body = '' }) => target + body);
    for (const text of texts) {
      expect(text).toContain('{session}');
      expect(text).not.toMatch(/\d{10}/);
    }
    // Each question is asked with numbers of the session in its placeholders.
    const names: Readonly<Record<string, RegExp>> = {
      once: /^(?!.*\{(step|next|from|to|template|layer|op|output)\})/s,
      tokens: /\{from\}/,
      steps: /\{from\}/,
      step: /\{step\}/,
      template: /\{(template|step)\}/,
      layer: /\{layer\}/,
      output: /\{step\}/,
    };
    for (const { each, target, body = '' } of all) expect(target + body).toMatch(names[each] ?? /$^/); // prettier-ignore
  });

  it('is asked once each, what opens the session first', () => {
    const keys = all.map(({ method, target, body }) => `${method} ${target}\n${body ?? ''}`);
    expect(new Set(keys).size).toBe(keys.length);
    const needed = all.map((one) => one.needed === true);
    expect(needed.lastIndexOf(true)).toBe(needed.filter(Boolean).length - 1);
  });

  it.each(CHARTS.map((chart) => [chart.id, chart] as const))('has what the chart %s asks', (_, chart) => {
    const { text, sql } = chart.request(scopeOf({ ...emptyView, layer: 0 }, 0, 0));
    // The layer and the head of the view are those of a chart about one of them.
    const asked = all.map(({ target, body = '{}' }) =>
      ((JSON.parse(body) as { sql?: string }).sql ?? target.replace('sessions/{session}/', '')).replaceAll(/\{(layer|step)\}/g, '0'),
    );
    expect(asked).toContain(sql ?? text);
  }); // prettier-ignore
});

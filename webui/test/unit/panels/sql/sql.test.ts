// The parts of the SQL editor: schema, parameters, the meaning of the rows.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parametersIn, sourcePosition, withValues } from '../../../../src/panels/sql/parameters';
import { chartOf, meaningOf, unitOf } from '../../../../src/panels/sql/result';
import { parseSchema } from '../../../../src/panels/sql/schema';

const tables = parseSchema(readFileSync(new URL('../../../../../docs/sql.md', import.meta.url), 'utf8')); // prettier-ignore
const columnsOf = (name: string): readonly string[] =>
  tables.find((one) => one.name === name)?.columns.map((column) => column.name) ?? [];

describe('the schema', () => {
  it('has the tables and views of docs/sql.md with their columns', () => {
    expect(tables.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['access', 'op', 'step', 'token', 'expert', 'op_time', 'phase_totals']), // prettier-ignore
    );
    expect(columnsOf('op')).toEqual(expect.arrayContaining(['duration_ns', 'ne0', 'kernel']));
    expect(columnsOf('op_time')).toEqual([
      'operation_type', 'executions', 'duration_ns', 'bytes_read', 'bytes_written', 'bytes_per_s',
    ]); // prettier-ignore
    for (const { name, columns } of tables) expect(columns.length, name).toBeGreaterThan(1);
    expect(tables.find(({ name }) => name === 'expert')?.about).toBe(
      'The choices of the routers: one row per token, layer and rank.',
    );
    expect(tables.map(({ about }) => about).join('\n')).not.toMatch(/<!--|\|/);
    for (const { name, about } of tables) expect(about, name).not.toBe('');
  });
});

describe('parameters', () => {
  const values = { step: 12, tensor: "it's", layer: null };

  it('are replaced outside of texts and comments', () => {
    const sql = "SELECT ':step', :step -- :step\n, :tensor /* :layer */, :layer, :unknown";
    expect(withValues(sql, values)).toBe(
      "SELECT ':step', 12 -- :step\n, 'it''s' /* :layer */, NULL, :unknown",
    );
    expect(parametersIn(sql)).toEqual(['step', 'tensor', 'layer', 'unknown']);
  });

  it('move the position of an error back to the source', () => {
    const sql = "SELECT 'ä', :tensor, :step, wrong";
    const sent = withValues(sql, values);
    const byte = new TextEncoder().encode(sent.slice(0, sent.indexOf('wrong'))).length;
    expect(sourcePosition(sql, values, byte)).toBe(sql.indexOf('wrong'));
    const inside = new TextEncoder().encode(sent.slice(0, sent.indexOf("s', 12"))).length;
    expect(sourcePosition(sql, values, inside)).toBe(sql.indexOf(':tensor'));
    expect(sourcePosition(sql, values, 0)).toBe(0);
  });
});

describe('the rows', () => {
  it('say by their columns what they are', () => {
    expect(meaningOf('op_layer_id')).toBe('layer');
    expect(meaningOf('op')).toBe('op_index');
    expect(meaningOf('rank')).toBeNull();
    expect(unitOf('duration_ns')).toBe('ns');
    expect(unitOf('size_bytes')).toBe('bytes');
    expect(unitOf('bytes_per_s')).toBe('bytes/s');
    expect(unitOf('executions')).toBe('number');
  });

  it('are a chart of the numbers of one unit, without identifiers', () => {
    const chart = chartOf({
      columns: ['tensor_name', 'layer_id', 'size_bytes', 'bytes_read', 'duration_ns', 'source'],
      rows: [['a', 1, 10, 5, 7, 'disk'], ['b', 2, 20, 6, 8, 'kv']],
      more: false,
    }); // prettier-ignore
    expect(chart.key).toEqual({ name: 'tensor_name', of: 'tensor' });
    expect(chart.series.map(({ name }) => name)).toEqual(['size_bytes', 'bytes_read']);
    expect(chart.more?.map(({ name }) => name)).toEqual(['layer_id', 'duration_ns']);
    expect(chart.words?.map(({ name }) => name)).toEqual(['source']);
  });

  it('of a number are drawn in their order', () => {
    const rows = Array.from({ length: 20 }, (_, i) => [i, i * i] as const);
    expect(chartOf({ columns: ['n', 'square'], rows, more: false }).key.of).toBe('number');
  });
});

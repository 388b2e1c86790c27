import { describe, expect, it } from 'vitest';
import {
  isOutside,
  brushIn,
  filterIn,
  firstRange,
  liesIn,
} from '../../../src/panels/map/map_range';
import {
  axisFrom,
  generatedFrom,
  groupsOfNames,
  layersOf,
  partsOf,
  buffersOf,
  layersInBuffers,
  outputOf,
  phaseRange,
  promptSteps,
  shortName,
  weightPlaces,
  within,
  withOpTypes,
} from '../../../src/panels/map/map_axes';
import {
  PRESETS,
  decodeOptions,
  defaultOptions,
  encodeOptions,
  presetOf,
  tracksOf,
  withAxes,
  type MapOptions,
} from '../../../src/panels/map/map_options';
import { unitOf } from '../../../src/panels/map/units';
import type { PictureAxis, Tensor } from '../../../src/net/types';
import { axisOf, nameAt, rangeText, rowOfName } from '../../../src/plane/axis';
import { lensLayout, planeLayout } from '../../../src/plane/layout';
import { wholeCamera } from '../../../src/plane/camera';
import type { Scene } from '../../../src/plane/scene';
import { describeCell } from '../../../src/panels/map/cell_text';
import { tipPlace, tipTop } from '../../../src/ui/tip';
import { expertRows, parseFilter } from '../../../src/state/view/filter';
import { layersText, sumQuery } from '../../../src/state/view/range_query';
import { TraceData } from '../../../src/state/session/trace_data';
import { randomOf, step, token } from '../make';

describe('the first range', () => {
  const ops = { ...defaultOptions, x: 'time', y: 'op' } as const;
  const session = (steps: number): TraceData => {
    const data = new TraceData();
    for (let i = 0; i < steps; i += 1)
      data.addStep(step(i, { begin_ns: 1e6 * i, end_ns: 1e6 * i + 9e5 }));
    return data;
  };
  it('of the ops of a long session is the selected step', () => {
    expect(firstRange(ops, session(21), 7)).toEqual({ from: 7e6, to: 7.9e6 });
  });
  it.each([
    ['of a short session', ops, session(20), 7],
    ['of another x axis', { ...ops, x: 'step' }, session(21), 7],
    ['of another y axis', { ...ops, y: 'file' }, session(21), 7],
    ['without a step', ops, session(21), null],
    ['of a step that has not arrived', ops, session(21), 30],
  ] as const)('%s is everything', (_, options, data, selected) => {
    expect(firstRange(options, data, selected)).toBeNull();
  });
});

describe('options', () => {
  it('of the default map are empty', () => {
    expect(encodeOptions(defaultOptions)).toBe('');
    expect(decodeOptions('')).toEqual(defaultOptions);
  });

  it('are restored from their text', () => {
    const options = {
      ...defaultOptions,
      y: 'memory',
      x: 'time',
      value: 'bytes',
      log: false,
      palette: 'heat',
      shown: [0.00012, 1e12],
      table: true,
      lens: true,
      gap: 4096,
      camera: { x: { from: 0.5, to: 5e9 }, ys: [null, { from: 1, to: 7 }] },
    } as const;
    const text = encodeOptions(options);
    expect(text).toMatch(/^[a-z0-9_:.,]+$/); // as the URL requires
    expect(decodeOptions(text)).toEqual(options);
  });

  it('are valid for every text', () => {
    const random = randomOf(21);
    const words = [
      'y',
      'x',
      'v',
      'file',
      'time',
      ':',
      ',',
      'cx',
      'cy0',
      '-1',
      '9',
      '1e99',
      'only',
      'gap',
      'p',
      'NaN',
      'constructor',
      '',
    ];
    for (let i = 0; i < 500; i += 1) {
      const text = Array.from(
        { length: 12 },
        () => words[Math.floor(words.length * random())] ?? '',
      ).join('');
      const options = decodeOptions(text);
      expect(decodeOptions(encodeOptions(options))).toEqual(options);
      for (const range of [options.camera.x, ...options.camera.ys]) {
        if (range) expect(range.from >= 0 && range.from < range.to).toBe(true);
      }
    }
  });

  it('of other axes forget ranges of the old ones', () => {
    const zoomed = {
      ...defaultOptions,
      camera: { x: { from: 1, to: 2 }, ys: [] },
      shown: [1, 2],
    } as const;
    expect(withAxes(zoomed, { x: 'all' })).toEqual({ ...defaultOptions, x: 'all' });
  });

  it('have presets with different axes', () => {
    for (const preset of PRESETS)
      expect(presetOf({ ...defaultOptions, ...preset.options })).toBe(preset);
    expect(tracksOf('memory')).toEqual(['file', 'buffer']);
  });
});

describe('units', () => {
  it.each([
    ['layer', 'token', 'time', 'layer', 1500, 'time per token', '1.50 µs'],
    ['file', 'token', 'bytes', 'file', 1, 'reads of each byte per token', '1×'],
    [
      'memory',
      'token',
      'bytes',
      'file',
      1,
      'how often each byte is read or written per token',
      '1×',
    ],
    ['file', 'all', 'accesses', 'file', 1 / 1024 / 1024, 'accesses per MiB', '1/MiB'],
    ['op', 'time', 'time', 'op', 0.25, 'share of the time', '25 %'],
    ['tensor', 'token', 'bytes', 'tensor', 2048, 'bytes per token and tensor', '2 KiB'],
    ['component', 'layer', 'bytes', 'component', 2048, 'sum of bytes', '2 KiB'],
  ] as const)('of %s by %s and %s', (y, x, value, track, cell, what, text) => {
    const unit = unitOf({ ...defaultOptions, y, x, value }, track);
    expect(unit.what).toBe(what);
    expect(unit.text(cell)).toBe(text);
  });
});

describe('axes', () => {
  const picture = {
    axis: 'file',
    unit: 'byte',
    size: 900,
    from: 0,
    to: 900,
    pixels: 9,
    rows: [],
    sections: [],
  } as const;
  const tensor = (
    name: string,
    layer: number | null,
    offset: number,
    length: number,
    shape = [1, 1, 1, 1],
  ): Tensor =>
    ({
      tensor_name: name,
      tensor_kind: 'weight',
      layer_id: layer,
      ne2: shape[2],
      role: '',
      model_file: 0,
      file_offset: offset,
      file_bytes: length,
    }) as unknown as Tensor;
  const places = weightPlaces(
    [
      tensor('blk.0.attn_q.weight', 0, 200, 100),
      tensor('token_embd.weight', null, 100, 100),
      tensor('blk.0.ffn_up_exps.weight', 0, 300, 200, [8, 8, 4, 1]),
      tensor('blk.1.attn_q.weight', 1, 500, 400),
      tensor('blk.0.attn_q.weight', 0, 200, 100), // in another graph
    ],
    [{ name: 'f', from: 0, to: 900 }],
    4,
  );

  it('of a file have layers, tensors and experts', () => {
    expect(layersOf(places)).toEqual([
      { name: '', from: 100, to: 200 },
      { name: 'layer 0', from: 200, to: 500 },
      { name: 'layer 1', from: 500, to: 900 },
    ]);
    expect(partsOf(places).map(({ name, from }) => [name, from])).toEqual([
      ['token_embd', 100],
      ['attn_q', 200],
      ['ffn_up_exps expert 0', 300],
      ['ffn_up_exps expert 1', 350],
      ['ffn_up_exps expert 2', 400],
      ['ffn_up_exps expert 3', 450],
      ['attn_q', 500],
    ]);
    expect(shortName('blk.12.ffn_down.weight')).toBe('ffn_down');
  });

  it('of named rows have groups of layers', () => {
    const names = [
      'embd',
      'attn_norm-0',
      'blk.0.attn_q.weight',
      'cache_k_l0',
      'attn_norm-1',
      'result_norm',
    ];
    expect(groupsOfNames(names)).toEqual([
      { name: 'layer 0', from: 1, to: 4 },
      { name: 'layer 1', from: 4, to: 5 },
    ]);
    expect(groupsOfNames(['a', 'b'])).toEqual([]);
  });

  it('are made from the description of the server', () => {
    expect(axisFrom(picture).kind).toBe('bytes');
    const layer = {
      ...picture,
      axis: 'layer',
      unit: 'layer',
      size: 2,
      to: 2,
      rows: ['0', 'none'],
    } as const;
    expect(axisFrom(layer).names).toEqual(['0', 'emb+out']);
    const time = { ...picture, axis: 'time', unit: 'ns', size: 900, from: 40 } as const;
    expect(axisFrom(time).whole).toEqual({ from: 40, to: 900 });
    expect(
      axisFrom({ ...picture, axis: 'all', unit: 'all', size: 1, rows: ['all'] } as const).kind,
    ).toBe('one');
    expect(axisFrom({ ...picture, axis: 'token', unit: 'token', size: 40 } as const)).toMatchObject(
      { kind: 'count', whole: { to: 40 } },
    );
  });
});

describe('the range', () => {
  const tokens = { axis: 'token', from: 3, to: 9 };
  const layers = { axis: 'layer', from: 2, to: 13 };
  const scene = { x: axisOf('count', 'token', 50), tracks: [] } as unknown as Scene;

  const byToken = { ...defaultOptions, x: 'token' } as const;

  it('is a brush on its axes and a filter on others', () => {
    const range = { x: tokens, y: layers };
    expect(brushIn(range, byToken, scene)).toEqual({ x: tokens, track: 0, y: layers });
    expect(filterIn(range, byToken)).toBeNull();
    const memory = { ...defaultOptions, x: 'all', y: 'memory' } as const;
    expect(brushIn(range, memory, scene)).toBeNull();
    expect(filterIn(range, memory)).toEqual(range);
    const tensors = { ...byToken, y: 'tensor' } as const;
    expect(brushIn(range, tensors, scene)).toEqual({ x: tokens, track: 0, y: null });
    expect(filterIn(range, tensors)).toEqual({ x: null, y: layers });
  });

  it('becomes parameters of the REST API', () => {
    const { query, honoured } = sumQuery('generate', { x: tokens, y: layers }, 12);
    expect(query).toEqual({
      phase: 'generate',
      from_token: 3,
      to_token: 9,
      layers: '2-11,outside',
    });
    expect(honoured).toEqual(['token', 'layer']);
    const file = sumQuery(
      'all',
      { x: { axis: 'time', from: 1, to: 2 }, y: { axis: 'file', from: 0, to: 1 } },
      12,
    );
    expect(file).toEqual({ query: { from_ns: 1, to_ns: 2 }, honoured: ['time'] });
  });

  it.each([
    [0, 1, '0'],
    [3, 7, '3-6'],
    [12, 13, 'outside'],
    [0, 13, '0-11,outside'],
  ])('of layers %d to %d is %s', (from, to, text) => {
    expect(layersText({ axis: 'layer', from, to }, 12)).toBe(text);
  });
});

describe('a selection', () => {
  const data = new TraceData();
  for (const n of [0, 1, 2, 3]) data.addStep(step(n, { token_id: n, begin_ns: 100 * n, end_ns: 100 * n + 50 })); // prettier-ignore
  const tokens = { x: { axis: 'token', from: 1, to: 3 }, y: { axis: 'layer', from: 0, to: 2 } };
  const times = { x: { axis: 'time', from: 120, to: 240 }, y: null };
  it.each([
    [{ kind: 'token', token: 2 }, tokens, true],
    [{ kind: 'token', token: 3 }, tokens, false],
    [{ kind: 'token', token: 1 }, times, true],
    [{ kind: 'token', token: 3 }, times, false],
    [{ kind: 'layer', layer: 1 }, tokens, true],
    [{ kind: 'head', layer: 2, head: 0 }, tokens, false],
    [{ kind: 'expert', layer: 1, expert: 7 }, tokens, true],
    [{ kind: 'expert', layer: 2, expert: 7 }, tokens, false],
    [null, tokens, true],
  ] as const)('%j is in %j: %s', (selection, range, is) => {
    expect(liesIn(selection, range, data)).toBe(is);
  });
});

describe('the tokens of a phase', () => {
  const data = new TraceData();
  data.addStep(step(0, { phase: 'prompt', token_id: 0, token_count: 44 }));
  data.addStep(step(1, { token_id: 44 }));
  data.addStep(step(2, { token_id: 45 }));

  it('begin with the first that was generated', () => {
    expect(generatedFrom(data, 'token')).toBe(44);
    expect(generatedFrom(data, 'step')).toBe(1);
    expect(generatedFrom(data, 'layer')).toBeNull();
    expect(generatedFrom(new TraceData(), 'token')).toBeNull();
  });

  it('are the whole axis', () => {
    const axis = axisOf('count', 'token', 46);
    const whole = (phase: string) => within(axis, phaseRange(data, 'token', phase)).whole;
    expect(whole('generate')).toEqual({ from: 44, to: 46 });
    expect(whole('prompt')).toEqual({ from: 0, to: 44 });
    expect(whole('all')).toEqual({ from: 0, to: 46 });
    expect(within(axisOf('count', 'token', 40), { from: 44, to: 50 }).whole.to).toBe(40);
  });
});

describe('the names of rows', () => {
  const picture = { axis: 'source', unit: 'row', size: 2, from: 0, to: 2, pixels: 2, sections: [] };

  it('of memory sources are those of the page', () => {
    const axis = axisFrom({ ...picture, rows: ['disk', 'kv'] } as unknown as PictureAxis);
    expect(axis.names).toEqual(['mapped file', 'KV cache or state']);
  });

  it('of unnamed outputs have the type of their op', () => {
    const axis = axisOf('rows', 'op', 2, { names: ['node_165', 'Qcur-0 (view)'] });
    const shown = withOpTypes(axis, () => 'FLASH_ATTN_EXT');
    expect(shown.names).toEqual(['node_165 FLASH_ATTN_EXT', 'Qcur-0 (view)']);
    expect(shown.names.map(outputOf)).toEqual(axis.names);
    expect(withOpTypes(axis, () => null).names).toEqual(axis.names);
  });

  it('of buffers say what they are for, and have layers, except compute buffers', () => {
    const place = (name: string, source: string, layer: number | null, from: number) => ({
      name, source, layer, from, to: from + 50, experts: 0, rowBytes: 0,
    }); // prettier-ignore
    const places = [
      place('blk.0.attn_q.weight', 'repacked', 0, 0),
      place('blk.1.attn_q.weight', 'repacked', 1, 50),
      place('cache_k_l0', 'kv', 0, 100),
      place('Qcur-0', 'compute', 0, 200),
    ];
    const sections = [
      { name: 'AMX', from: 0, to: 100 },
      { name: 'CPU', from: 100, to: 200 },
      { name: 'CPU', from: 200, to: 300 },
    ];
    expect(buffersOf(sections, places).map(({ name }) => name)).toEqual([
      'repacked',
      'KV cache or state',
      'intermediate results',
    ]);
    expect(layersInBuffers(sections, places)).toEqual([
      { name: 'layer 0', from: 0, to: 50 },
      { name: 'layer 1', from: 50, to: 100 },
      { name: 'layer 0', from: 100, to: 150 },
      { name: '', from: 200, to: 300 },
    ]);
    expect(partsOf(places)[0]?.name).toBe('attn_q');
  });
});

const EIGHT = Array.from({ length: 8 }, (_, i) => String(i));

describe('the rows of experts', () => {
  it.each([
    ['expert:3', null],
    ['layer:0 expert:3', { from: 3, to: 4 }],
    ['layer:2 expert:1-2', { from: 1, to: 3 }],
    ['layer:2 -expert:3', null],
    ['layer:2 expert:1,3', null],
    ['layer:2', null],
  ] as const)('of the filter %s are shown', (filter, rows) => {
    expect(expertRows(parseFilter(filter))).toEqual(rows);
  });

  it('keep their names and places', () => {
    const axis = axisOf('rows', 'expert', 8, { names: EIGHT });
    const shown = within(axis, { from: 3, to: 4 });
    expect(shown.whole).toEqual({ from: 3, to: 4 });
    expect(nameAt(shown, 3.5)).toBe('3');
    expect(nameAt(shown, 0)).toBeNull();
    expect(rowOfName(shown, '3')).toEqual({ from: 3, to: 4 });
    expect(rowOfName(shown, '4')).toBeNull();
  });
});

describe('the tooltip', () => {
  const data = new TraceData();
  data.addStep(step(0, { phase: 'prompt', token_id: 0, token_count: 44, end_ns: 5000 }));
  data.addStep(step(1, { token_id: 44, end_ns: 9000 }));
  const options = { ...defaultOptions, x: 'token', y: 'expert', value: 'accesses' } as const;
  const scene = {
    x: axisOf('count', 'token', 45),
    tracks: [{ y: axisOf('rows', 'expert', 8, { names: EIGHT }) }],
  } as unknown as Scene;
  const linesAt = (token: number, value: number, of: MapOptions = options) =>
    new Map(
      describeCell({
        hit: { track: 0, x: token, y: 3 },
        cell: { x: { from: token, to: token + 1 }, y: { from: 3, to: 4 }, value },
        context: { data, options: of, scene, total: 0, step: data.stepOfToken(token), tensor: null, isOutside: false, residency: [], scores: () => [] },
      }).lines,
    ); // prettier-ignore

  it('says of prompt tokens that they share their step', () => {
    const lines = linesAt(16, 3 / 44);
    expect(lines.get('step 0')).toBe('3 accesses, shared equally by its 44 prompt tokens');
    expect(lines.get('evaluated by')).toBe('step 0, prompt, 3 ops');
    expect(linesAt(44, 3).has('step 1')).toBe(false);
    expect(lines.get('op times')).toBe('measured in passing');
  });

  it.each([
    ['file', 'bytes', 'nothing read here'],
    ['file', 'faults', 'no disk waits here'],
    ['buffer', 'bytes', 'nothing read or written here'],
    ['buffer', 'bytes_written', 'nothing written here'],
    ['op', 'time', 'nothing here'],
  ] as const)('has one line for an empty place of the rows %s by %s', (y, value, text) => {
    const ofBytes = y !== 'op';
    const map: Scene = {
      ...scene,
      x: axisOf('time', 'time', 9000),
      tracks: [{ ...scene.tracks[0], y: axisOf(ofBytes ? 'bytes' : 'rows', y, 8, { names: ['a', 'b', 'c', 'd'] }) }],
    } as Scene; // prettier-ignore
    const linesOf = (cellValue: number) =>
      describeCell({
        hit: { track: 0, x: 44, y: 3 },
        cell: { x: { from: 44, to: 45 }, y: { from: 3, to: 4 }, value: cellValue },
        context: { data, options: { ...defaultOptions, y, x: 'time', value }, scene: map, total: 0, step: 0, tensor: ofBytes ? 'blk.0' : null, isOutside: false, residency: [['in memory', 'all']], scores: () => [] },
      }).lines; // prettier-ignore
    expect(linesOf(0)).toEqual([[ofBytes ? 'blk.0' : 'op d', text]]);
    expect(linesOf(1).length).toBeGreaterThan(4);
  });

  it('does not call a place outside of the selected range empty', () => {
    const brush = { x: { from: 0, to: 44 }, track: 0, y: { from: 2, to: 4 } };
    const range = { x: { axis: 'token', from: 0, to: 44 }, y: null };
    const hit = { track: 0, x: 3, y: 3 };
    expect(isOutside(null, null, hit, data.steps[1])).toBe(false);
    expect(isOutside(null, brush, hit, data.steps[0])).toBe(false);
    expect(isOutside(null, brush, { ...hit, x: 44 }, data.steps[1])).toBe(true);
    expect(isOutside(null, brush, { ...hit, y: 5 }, data.steps[0])).toBe(true);
    // The columns are steps, the range is of tokens.
    expect(isOutside(range, null, hit, data.steps[0])).toBe(false);
    expect(isOutside(range, null, hit, data.steps[1])).toBe(true);
    const lines = describeCell({
      hit,
      cell: { x: { from: 3, to: 4 }, y: { from: 3, to: 4 }, value: 0 },
      context: { data, options, scene, total: 0, step: 1, tensor: null, isOutside: true, residency: [], scores: () => [] },
    }).lines; // prettier-ignore
    expect(lines).toContainEqual(['value', 'not in the selected range']);
    expect(lines.map(([name]) => name)).not.toContain('accesses');
  });

  it('has one line for a value that is the same per token', () => {
    const lines = linesAt(44, 90_900, { ...options, value: 'time' });
    expect(lines.get('time')).toBe('90.9 µs (90\u202f900 ns)');
    expect([...lines.keys()].filter((name) => name.startsWith('time per'))).toEqual([]);
  });

  it('says which step evaluated the token', () => {
    data.addToken(token(45, { generated: true }));
    data.addStep(step(2, { token_id: 45 }));
    const lines = linesAt(45, 1);
    expect(lines.get('made by')).toBe('step 1');
    expect(lines.get('evaluated by')).toBe('step 2, generate, 3 ops');
  });

  it('is beside the pointer and the lens', () => {
    const room = { w: 900, h: 400 };
    const place = (x: number, lens: number | null) =>
      tipPlace(
        { x, y: 200 },
        150,
        room,
        lens === null ? null : { x: lens, y: 110, w: 240, h: 180 },
      );
    expect(place(100, null)).toEqual({ x: 114, y: 214 });
    expect(place(700, null)).toEqual({ x: 386, y: 214 });
    expect(place(300, 44)).toEqual({ x: 314, y: 214 });
    expect(place(700, 444)).toEqual({ x: 130, y: 214 });
    expect(place(100, 116)).toEqual({ x: 370, y: 214 });
  });

  it('never covers the lens, and is in view with it where there is room', () => {
    const x = axisOf('count', 'token', 200);
    const scene = { x, tracks: [{ y: axisOf('bytes', 'file', 1_000_000), share: 1 }] };
    for (const [w, h] of [[1000, 500], [747, 460], [700, 600], [620, 300], [360, 640]] as const) {
      const layout = planeLayout({ w, h }, scene, wholeCamera);
      const { plot } = layout;
      const track = layout.tracks[0];
      if (!track) throw new Error('no track');
      for (let at = plot.x; at < plot.x + plot.w; at += 7)
        for (let y = plot.y; y < plot.y + plot.h; y += 23) {
          const { box } = lensLayout(layout, track, x, { x: 9, y: 9 }, { x: at, y }, w);
          const tip = tipPlace({ x: at, y }, 120, { w, h }, box);
          const isApart =
            tip.x >= box.x + box.w || tip.x + 300 <= box.x || tip.y >= box.y + box.h || tip.y + 120 <= box.y;
          const where = `${at},${y} in ${w}x${h}`;
          expect(isApart, where).toBe(true);
          const isInView = tip.x >= 0 && tip.x + 300 <= w && tip.y >= 0 && tip.y + 120 <= h;
          if (h >= 460) expect(isInView, where).toBe(true);
        }
    }
  }); // prettier-ignore

  it('is above the pointer where there is no room below', () => {
    expect(tipTop(100, 150, 400)).toBe(114);
    expect(tipTop(300, 150, 400)).toBe(136);
    expect(tipTop(100, 350, 400)).toBe(50);
    expect(tipTop(100, 500, 400)).toBe(0);
  });
});

describe('the prompt', () => {
  it('is marked as the steps that evaluated it', () => {
    const data = new TraceData();
    data.addStep(step(0, { phase: 'prompt', token_id: 5, token_count: 512 }));
    data.addStep(step(1, { phase: 'prompt', token_id: 517, token_count: 1 }));
    data.addStep(step(2, { token_id: 518 }));
    expect(promptSteps(data, 'token')).toEqual([
      { name: '512 tokens in one step', from: 5, to: 517, tokens: 512 },
    ]);
    expect(promptSteps(data, 'step')).toEqual([
      { name: '512 tokens', from: 0, to: 1, tokens: 512 },
    ]);
  });
});

describe('a range of time', () => {
  it('has the digits that tell its ends apart', () => {
    const axis = axisOf('time', 'time', 1e9);
    expect(rangeText(axis, { from: 242_130_000, to: 242_190_000 })).toBe('242.13 – 242.19 ms');
    expect(rangeText(axis, { from: 1e6, to: 242e6 })).toBe('1 ms – 242 ms');
  });
});

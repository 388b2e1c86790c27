import { describe, expect, it } from 'vitest';
import { brushIn, filterIn } from '../../src/panels/map/map_model';
import {
  axisFrom,
  groupsOfNames,
  layersOf,
  partsOf,
  shortName,
  weightPlaces,
} from '../../src/panels/map/map_axes';
import {
  PRESETS,
  decodeOptions,
  defaultOptions,
  encodeOptions,
  presetOf,
  tracksOf,
  withAxes,
} from '../../src/panels/map/map_options';
import { unitOf } from '../../src/panels/map/units';
import type { Tensor } from '../../src/net/types';
import { axisOf } from '../../src/plane/axis';
import type { Scene } from '../../src/plane/scene';
import { layersText, sumQuery } from '../../src/state/range_query';
import { randomOf } from './make';

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
    ['file', 'token', 'bytes', 'file', 1, 'reads and writes of each byte per token', '1×'],
    ['file', 'all', 'accesses', 'file', 1 / 1024 / 1024, 'accesses per MiB', '1/MiB'],
    ['op', 'time', 'time', 'op', 0.25, 'share of the time', '25 %'],
    ['tensor', 'token', 'bytes', 'tensor', 2048, 'bytes per token and tensor', '2 KiB'],
    ['component', 'layer', 'bytes', 'component', 2048, 'bytes', '2 KiB'],
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
      { name: 'blk.0', from: 200, to: 500 },
      { name: 'blk.1', from: 500, to: 900 },
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
      { name: 'blk.0', from: 1, to: 4 },
      { name: 'blk.1', from: 4, to: 5 },
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

  it('is a brush on its axes and a filter on others', () => {
    const range = { x: tokens, y: layers };
    expect(brushIn(range, defaultOptions, scene)).toEqual({ x: tokens, track: 0, y: layers });
    expect(filterIn(range, defaultOptions)).toBeNull();
    const memory = { ...defaultOptions, x: 'all', y: 'memory' } as const;
    expect(brushIn(range, memory, scene)).toBeNull();
    expect(filterIn(range, memory)).toEqual(range);
    const tensors = { ...defaultOptions, y: 'tensor' } as const;
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

import { describe, expect, it, vi } from 'vitest';
import { layoutGraph } from '../../../src/graph/layout';
import { LayoutCache, structureOf, type LayoutWorker } from '../../../src/graph/layout_cache';
import { paintGraph, traceShape, type GraphPalette } from '../../../src/graph/paint';
import { findItems, layoutGraphOf, sceneOf, shortName, timesOf } from '../../../src/graph/scene';
import { CATEGORIES } from '../../../src/graph/categories';
import {
  initialCamera,
  cameraOf,
  fitCamera,
  hit,
  isCutBelow,
  isCutRight,
  cameraRevealing,
  windowOf,
  zoomCamera,
} from '../../../src/graph/view';
import { neighbour } from '../../../src/graph/neighbours';
import type { LayoutResponse, LayoutRequest } from '../../../src/workers/layout.worker';
import { llamaLayer, randomGraph } from './graphs';
import { overlaps, upwards } from './layout_checks';
import { op } from '../make';

describe('a layout', () => {
  it('has no overlaps and only downward edges', () => {
    for (let seed = 1; seed <= 60; seed += 1) {
      const graph = randomGraph(seed, 2 + (seed % 40));
      const layout = layoutGraph(graph);
      expect(overlaps(graph, layout), `seed ${seed}`).toEqual([]);
      expect(upwards(graph, layout), `seed ${seed}`).toEqual([]);
    }
  });

  it('stays within its size', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const graph = randomGraph(seed, 30);
      const { x, y, width, height } = layoutGraph(graph);
      graph.nodes.forEach(({ w, h }, i) => {
        expect(x[i]).toBeGreaterThanOrEqual(-1e-6);
        expect(y[i]).toBeGreaterThanOrEqual(-1e-6);
        expect((x[i] ?? 0) + w).toBeLessThanOrEqual(width + 1e-6);
        expect((y[i] ?? 0) + h).toBeLessThanOrEqual(height + 1e-6);
      });
    }
  });

  it('places a weight one rank above its reader', () => {
    // 0 -> 1 -> 2 -> 3, and the weight 4 -> 3
    const node = { w: 40, h: 20, canSink: false };
    const { y } = layoutGraph({
      nodes: [node, node, node, node, { ...node, canSink: true }],
      edges: [
        [0, 1],
        [1, 2],
        [2, 3],
        [4, 3],
      ],
    });
    expect(y[4]).toBe(y[2]);
  });

  it('is folded into columns until it has the form of its panel', () => {
    // A chain of 24 nodes, and an edge from its first to its last one.
    const nodes = Array.from({ length: 24 }, () => ({ w: 90, h: 14, canSink: false }));
    const edges = [...nodes.keys()].slice(1).map((i): [number, number] => [i - 1, i]);
    edges.push([0, 23]);
    const tall = layoutGraph({ nodes, edges });
    expect(tall.height).toBeGreaterThan(3 * tall.width);
    const wide = layoutGraph({ nodes, edges, aspect: 2 });
    expect(wide.width / wide.height).toBeGreaterThan(1.2);
    expect(wide.width / wide.height).toBeLessThan(3.5);
    expect(overlaps({ nodes, edges }, wide)).toEqual([]);
    expect(upwards({ nodes, edges }, wide)).toEqual([]);
    for (const path of wide.paths)
      for (const [i, at] of path.entries()) {
        expect(at).toBeGreaterThanOrEqual(0);
        expect(at).toBeLessThanOrEqual(i % 2 === 0 ? wide.width : wide.height);
      }
  });

  it('is deterministic', () => {
    const graph = randomGraph(7, 80);
    expect(layoutGraph(graph)).toEqual(layoutGraph(graph));
  });

  it.each([0, 1, 2])('of %i nodes is valid', (count) => {
    const nodes = Array.from({ length: count }, () => ({ w: 10, h: 10, canSink: false }));
    const layout = layoutGraph({ nodes, edges: [] });
    expect(layout.x).toHaveLength(count);
    expect(Number.isFinite(layout.width)).toBe(true);
  });

  it('handles a graph of thousands of nodes without recursion', () => {
    const graph = randomGraph(3, 3000);
    const layout = layoutGraph(graph);
    expect(upwards(graph, layout)).toEqual([]);
    expect(layout.paths).toHaveLength(graph.edges.length);
  });
});

describe('a layer’s scene', () => {
  const scene = sceneOf(llamaLayer(5, 22));
  const graph = layoutGraphOf(scene);
  const drawn = { scene, layout: layoutGraph(graph) };
  const itemOf = (name: string): number => scene.items.findIndex(({ node }) => node.name === name);

  it('draws a shared input next to each reader', () => {
    const stubs = scene.items.filter(({ stub }) => stub);
    expect(stubs.map(({ node }) => node.name)).toEqual(['inp_pos', 'inp_pos']);
    const rope = scene.edges.filter(({ to }) => to === itemOf('Qrope-5'));
    expect(rope).toHaveLength(2);
  });

  it('has every node and every edge of the subgraph', () => {
    const shown = new Set(scene.items.map(({ node }) => node.tensor));
    expect(shown.size).toBe(scene.graph.nodes.length);
    expect(scene.edges).toHaveLength(scene.graph.edges.length);
  });

  it('is laid out without overlaps and with downward edges', () => {
    expect(overlaps(graph, drawn.layout)).toEqual([]);
    expect(upwards(graph, drawn.layout)).toEqual([]);
  });

  it('has the same structure for every layer', () => {
    const other = layoutGraphOf(sceneOf(llamaLayer(17, 22)));
    expect(structureOf(other)).toBe(structureOf(graph));
  });

  it.each([
    ['blk.5.attn_q.weight', 5, 'attn_q'],
    ['Qcur-5', 5, 'Qcur'],
    ['Qcur-5 (reshaped)', 5, 'Qcur (reshaped)'],
    ['l_out-4', 4, 'l_out-4'],
    ['inp_pos', null, 'inp_pos'],
  ])('shortens %s of layer %s to %s', (name, layer, short) => {
    const node = { ...scene.items[0]?.node, name, layer } as never;
    expect(shortName(node, 5)).toBe(short);
  });

  it('assigns the time of each op, for a fused op once', () => {
    const norm = itemOf('norm-5');
    const attn = itemOf('attn_norm-5');
    const fused = sceneOf({
      ...scene.graph,
      nodes: scene.graph.nodes.map((node) =>
        node.name === 'norm-5' || node.name === 'attn_norm-5' ? { ...node, executed_op: 9 } : node,
      ),
    });
    const times = timesOf(fused, [op(9, { duration_ns: 40 })]);
    expect(times[norm]).toBe(0);
    expect(times[attn]).toBe(40);
  });

  it('is searched by all words of the query', () => {
    const names = (query: string) =>
      [...findItems(scene, query)].map((i) => scene.items[i]?.node.name);
    expect(names('mul_mat ffn')).toEqual(['ffn_gate-5', 'ffn_up-5', 'ffn_out-5']);
    expect(names('KQ_mask')).toEqual(['KQ_mask']);
    expect(names(' ')).toEqual([]);
  });

  it('is navigated along its edges and ranks', () => {
    const go = (name: string, direction: 'up' | 'down' | 'left' | 'right') =>
      scene.items[neighbour(drawn, itemOf(name), direction)]?.node.name;
    expect(go('Qrope-5', 'up')).toBe('Qcur-5_(reshaped)');
    expect(go('Qrope-5', 'down')).toBe('Q-5');
    expect(go('norm-6', 'down')).toBe('norm-6');
    const right = go('Qcur-5', 'right') ?? '';
    expect(right).not.toBe('Qcur-5');
    expect(go(right, 'left')).toBe('Qcur-5');
  });

  it('finds the item at a point', () => {
    const box = { w: 800, h: 600 };
    const camera = fitCamera(box, drawn.layout);
    scene.items.forEach(({ w, h }, i) => {
      const x = ((drawn.layout.x[i] ?? 0) + w / 2) * camera.scale + camera.left;
      const y = ((drawn.layout.y[i] ?? 0) + h / 2) * camera.scale + camera.top;
      expect(hit(drawn.layout, scene.items, camera, x, y)).toBe(i);
    });
    expect(hit(drawn.layout, scene.items, camera, 1, 1)).toBeNull();
  });
});

// Records every call with the stroke style and line dash at that time.
function recordingContext() {
  const calls: { name: string; args: readonly unknown[]; stroke: unknown; dash: unknown }[] = [];
  const set: Record<string, unknown> = {};
  let dash: unknown = [];
  const target = new Proxy(set, {
    get: (_, name: string) =>
      name in set
        ? set[name]
        : (...args: readonly unknown[]) => {
            if (name === 'setLineDash') dash = args[0];
            calls.push({ name, args, stroke: set.strokeStyle, dash });
            return { width: 10 };
          },
    set: (_, name: string, value: unknown) => {
      set[name] = value;
      return true;
    },
  });
  return { calls, ctx: target as unknown as CanvasRenderingContext2D };
}

describe('what is painted', () => {
  const scene = sceneOf(llamaLayer(5, 22));
  const drawn = { scene, layout: layoutGraph(layoutGraphOf(scene)) };
  const each = (of: string) =>
    Object.fromEntries(
      CATEGORIES.map(({ category }) => [category, `${of} ${category}`]),
    ) as GraphPalette['line'];
  const palette: GraphPalette = {
    ...{
      panel: 'panel',
      text: 'text',
      dim: 'dim',
      accent: 'accent',
      edge: 'edge',
      bar: 'bar',
      breakpoint: 'breakpoint',
    },
    ...{ line: each('line'), back: each('back'), sans: 'sans', mono: 'mono' },
  };

  it('dashes exactly the edges that cross layers', () => {
    const { calls, ctx } = recordingContext();
    const { width, height } = drawn.layout;
    const marks = {
      breakpoints: new Map(),
      running: new Set<number>(),
      heat: null,
      hidden: new Set<never>(),
      times: new Float64Array(scene.items.length),
      selected: new Set<number>(),
      ...{ focused: null, found: null },
    };
    paintGraph(ctx, { w: width, h: height }, drawn, { left: 0, top: 0, scale: 1 }, marks, palette);
    const strokes = calls.filter(({ name }) => name === 'stroke');
    const dashed = strokes.filter(({ dash }) => (dash as readonly number[]).length > 0);
    const across = scene.edges.filter(({ crossLayer }) => crossLayer).length;
    expect(across).toBeGreaterThan(0);
    expect(dashed).toHaveLength(across);
    expect(new Set(dashed.map(({ stroke }) => stroke))).toEqual(
      new Set(['line cross_layer_input']),
    );
    const strokesOf = new Set(strokes.map(({ stroke }) => stroke));
    for (const { node } of scene.items) expect(strokesOf).toContain(`line ${node.category}`);
  });

  it('has a shape for each category', () => {
    const shapes = CATEGORIES.map(({ category }) => {
      const { calls, ctx } = recordingContext();
      traceShape(ctx, category, 0, 0, 100, 40);
      return JSON.stringify(calls.map(({ name, args }) => [name, args]));
    });
    expect(new Set(shapes).size).toBe(CATEGORIES.length);
  });
});

describe('the camera', () => {
  const layout = layoutGraph(randomGraph(5, 60));
  const box = { w: 640, h: 400 };

  it('is restored from the window of a link', () => {
    const camera = zoomCamera(fitCamera(box, layout), 0.5, 10, 20);
    const again = cameraOf(windowOf(camera, box), box);
    expect(again.scale).toBeCloseTo(camera.scale);
    expect(again.left).toBeCloseTo(camera.left);
    expect(again.top).toBeCloseTo(camera.top);
  });
  it('keeps the point under the pointer when zooming', () => {
    const camera = initialCamera(box, layout);
    const near = zoomCamera(camera, 0.5, 100, 50);
    const at = (c: typeof camera) => [(100 - c.left) / c.scale, (50 - c.top) / c.scale];
    at(near).forEach((value, i) => {
      expect(value).toBeCloseTo(at(camera)[i] ?? NaN);
    });
  });
  it('starts at a readable scale', () => {
    expect(initialCamera(box, layout).scale).toBeGreaterThanOrEqual(1);
  });
  it('has a margin below everything, or is cut below', () => {
    const whole = fitCamera(box, layout);
    expect(isCutBelow(whole, box, layout)).toBe(false);
    expect(isCutBelow({ ...whole, top: whole.top + box.h }, box, layout)).toBe(true);
    expect(isCutRight(whole, box, layout)).toBe(false);
    expect(isCutRight({ ...whole, left: whole.left + box.w }, box, layout)).toBe(true);
    const flat = { w: box.w, h: 60 };
    expect(isCutBelow(initialCamera(flat, layout), flat, layout)).toBe(true);
  });
  it('pans the minimum distance', () => {
    const camera = { scale: 1, left: 0, top: 0 };
    expect(cameraRevealing(camera, box, { x: 50, y: 50, w: 20, h: 20 })).toBe(camera);
    expect(cameraRevealing(camera, box, { x: 700, y: 50, w: 20, h: 20 }).left).toBe(-86);
  });
  it('pans an item out of the fade at the bottom', () => {
    const camera = { scale: 1, left: 0, top: 0 };
    const rect = { x: 50, y: box.h - 50, w: 20, h: 20 };
    expect(cameraRevealing(camera, box, rect)).toBe(camera);
    expect(cameraRevealing(camera, box, rect, 'fades').top).toBeLessThan(-20);
  });
  it('does not pan again after the pan was stored in a link', () => {
    for (let i = 0; i < 300; i += 1) {
      const rect = { x: i * 7.3, y: i * 3.1, w: 40 + i * 2.7, h: 24.6 };
      const start = { scale: 0.3 + (i % 17) / 9, left: -i * 1.7, top: 11.3 };
      const seen = cameraRevealing(start, box, rect);
      const stored = cameraOf(windowOf(seen, box), box);
      expect(cameraRevealing(stored, box, rect)).toBe(stored);
    }
  });
});

describe('layouts', () => {
  class FakeWorker implements LayoutWorker {
    onmessage: LayoutWorker['onmessage'] = null;
    readonly requests: LayoutRequest[] = [];
    ended = false;
    postMessage(request: LayoutRequest): void {
      this.requests.push(request);
    }
    terminate(): void {
      this.ended = true;
    }
    answer(): void {
      const request = this.requests.at(-1);
      if (!request) throw new Error('no request was sent');
      const data = { id: request.id, layout: layoutGraph(request.graph) };
      this.onmessage?.({ data } as MessageEvent<LayoutResponse>);
    }
  }
  const made: FakeWorker[] = [];
  const fresh = (): LayoutCache => {
    made.length = 0;
    return new LayoutCache(() => {
      const worker = new FakeWorker();
      made.push(worker);
      return worker;
    });
  };

  it('computes the layout of a structure once', () => {
    const layouts = fresh();
    const done = vi.fn();
    layouts.request(randomGraph(1, 9), done);
    made[0]?.answer();
    layouts.request(randomGraph(1, 9), done);
    expect(done).toHaveBeenCalledTimes(2);
    expect(made[0]?.requests).toHaveLength(1);
  });

  it('cancels the pending request when another is made', () => {
    const layouts = fresh();
    const first = vi.fn();
    const second = vi.fn();
    layouts.request(randomGraph(1, 9), first);
    layouts.request(randomGraph(2, 9), second);
    expect(made.map(({ ended }) => ended)).toEqual([true, false]);
    made[0]?.answer();
    made[1]?.answer();
    expect(first).not.toHaveBeenCalled();
    expect(second).toHaveBeenCalledTimes(1);
  });
});

// Each kind of layer of all architectures draws without overlaps. The test of the architectures
// (tests/integration) runs this with the layers that it recorded: TT_LAYERS is a folder of responses
// of /steps/STEP/layers/LAYER.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { layoutGraph } from '../../src/graph/layout';
import { layoutGraphOf, sceneOf } from '../../src/graph/scene';
import type { LayerSubgraph } from '../../src/net/types';
import { overlaps, upwards } from '../unit/graph/layout_checks';

const folder = process.env.TT_LAYERS;
if (folder === undefined) throw new Error('set TT_LAYERS to a folder of layers');
const files = readdirSync(folder).filter((name) => name.endsWith('.json'));

describe('a layer', () => {
  it.each(files)('%s is laid out without overlaps, and its edges lead downwards', (name) => {
    const layer = JSON.parse(readFileSync(join(folder, name), 'utf8')) as LayerSubgraph;
    expect(layer.nodes.length).toBeGreaterThan(3);
    const scene = sceneOf(layer);
    const graph = layoutGraphOf(scene);
    const layout = layoutGraph(graph);
    expect(overlaps(graph, layout)).toEqual([]);
    expect(upwards(graph, layout)).toEqual([]);
    for (const item of scene.items) expect(item.title, JSON.stringify(item.node)).not.toBe('');
  });
});

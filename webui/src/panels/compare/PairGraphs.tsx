// A layer of both sides as graphs, on one layout and one scale, and the difference. Zoom, pan and the node
// under the pointer are those of all three.
import { useSignal, type Signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { formatValue } from '../../charts/table';
import { heatColours, signedColours, type HeatColour } from '../../graph/heat';
import { LayoutCache } from '../../graph/layout_cache';
import { graphPalette, paintGraph } from '../../graph/paint';
import { layoutGraphOf, laidOut, sceneOf, type LaidOutScene } from '../../graph/scene';
import {
  cameraOf,
  fitCamera,
  hit,
  panCamera,
  windowOf,
  zoomCamera,
  type Box,
  type Camera,
} from '../../graph/view';
import { plural } from '../../format';
import { gradientOf } from '../../plane/colours';
import { ok } from '../../result';
import { Resource } from '../../state/resource';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { bothOf } from '../../state/view/range_query';
import type { Window } from '../../state/view/view';
import { useResource, usePart } from '../../ui/hooks';
import { Segmented } from '../../ui/Segmented';
import type { SumQuery } from '../../state/view/sum_query';
import { Empty, FailedLoad, Loading } from '../../ui/States';
import { Tip, type TipText } from '../../ui/tip';
import { ZoomButtons } from '../../ui/ZoomButtons';
import { startLayoutWorker } from '../../workers/start_layout_worker';
import { LayerStepper } from '../graph/LayerStepper';
import { differences, pairGraph, type GraphSide, type PairGraph, type PairNode } from './graphs';
import type { CompareOptions } from './options';
import { hasMedians, perOf, UNIT_OF, valueOf, type Side } from './pair';

const layouts = new LayoutCache(startLayoutWorker);
const MAX_ROWS = 10_000;
const MAX_HEIGHT = 460; // pixels of a picture
const CLICK_PX = 4;

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
  readonly other: string; // the session of the right side
  readonly options: CompareOptions;
  readonly names: readonly [string, string];
  readonly found: readonly [Side, Side];
  readonly asks: readonly [SumQuery, SumQuery];
}

export function PairGraphs(props: Props) {
  const { store, session, options, names } = props;
  const shown = usePart(() => store.navigation.view.value.layer);
  const layers: readonly [number, number] = options.of === 'layers' ? [options.a, options.b] : [shown, shown]; // prettier-ignore
  const resource = useMemo(
    () => graphsOf(props, layers),
    [session, props.other, props.found, layers.join(), JSON.stringify(options)],
  );
  const { value } = useResource(resource);
  const form = useSignal<'graph' | 'table'>('graph');
  const window = useSignal<Window | null>(null);
  const zooming = useRef<((factor: number) => void) | null>(null);
  const what = layers[0] === layers[1] ? `layer ${layers[0]}` : `layers ${layers.join(' and ')}`;
  return (
    <section role="group" class="chart-card compare-graph" data-size="wide" aria-label="Graph">
      <header>
        <h2>Graph of {what}</h2>
        {options.of !== 'layers' && <LayerStepper store={store} layer={shown} />}
        <span class="toolbar-end" />
        {form.value === 'graph' && (
          <ZoomButtons
            viewport={() => ({
              zoom: (factor) => zooming.current?.(factor),
              pan: () => undefined,
              fit: () => {
                window.value = null;
              },
            })}
            whole={window.value === null}
          />
        )}
        <Segmented
          label="Form of Graph"
          value={form.value}
          options={[
            { value: 'graph', text: 'Graph' },
            { value: 'table', text: 'Table' },
          ]}
          choose={(one) => {
            form.value = one;
          }}
        />
      </header>
      <p class="chart-about dim">{value ? aboutText(value, options, names) : ''}</p>
      {value === null ? (
        <State resource={resource} />
      ) : form.value === 'table' ? (
        <NodeTable pair={value} options={options} names={names} />
      ) : (
        <Pictures {...props} pair={value} window={window} zooming={zooming} />
      )}
    </section>
  );
}

function State({ resource }: { resource: Resource<PairGraph> }) {
  const { error } = useResource(resource);
  return error ? <FailedLoad what="The graph cannot be shown." resource={resource} /> : <Loading />;
}

const VALUE_TEXT = { time: 'Time of the ops', bytes: 'Bytes read and written', accesses: 'Accesses' } as const; // prettier-ignore

function aboutText({ nodes }: PairGraph, options: CompareOptions, names: readonly [string, string]): string {
  const only = (['left', 'right'] as const).flatMap((side, n) => {
    const count = nodes.filter(({ on }) => on === side).length;
    return count > 0 ? [`${plural(count, 'node')} only in ${names[n] ?? ''}`] : [];
  });
  const unmatched = only.length > 0 ? `${only.join(', ')}: framed in the difference` : 'Both have the same nodes'; // prettier-ignore
  return `${VALUE_TEXT[options.value]} per ${perOf(options)}; one layout, one scale, zoomed together. ${unmatched}.`;
} // prettier-ignore

function graphsOf(
  { session, other, options, found, asks }: Props,
  layers: readonly [number, number],
): Resource<PairGraph> {
  const { api, reconnects } = session.context;
  const sideOf = async (n: 0 | 1, signal: AbortSignal) => {
    const id = n === 0 ? session.id : other;
    const query = bothOf(asks[n], { layers: String(layers[n]) });
    const [graph, rows] = await Promise.all([
      api.layer(id, found[n].step ?? 0, layers[n], signal),
      api.breakdown(id, { ...query, by: 'op', step_times: hasMedians(options), limit: MAX_ROWS }, signal), // prettier-ignore
    ]);
    if (!graph.ok) return graph;
    if (!rows.ok) return rows;
    return ok<GraphSide>({
      graph: graph.value,
      rows: rows.value.rows.map((row) => ({ name: row.name, value: valueOf(row, found[n], options) })), // prettier-ignore
    });
  };
  return new Resource<PairGraph>({
    key: () => JSON.stringify([layers, asks, options]),
    load: async (signal) => {
      const [left, right] = await Promise.all([sideOf(0, signal), sideOf(1, signal)]);
      if (!left.ok) return left;
      return right.ok ? ok(pairGraph(left.value, right.value)) : right;
    },
    reconnects,
  });
}

// ---- Pictures --------------------------------------------------------------------------

interface PicturesProps extends Props {
  readonly pair: PairGraph;
  readonly window: Signal<Window | null>; // in the layout; null: all of it
  readonly zooming: { current: ((factor: number) => void) | null };
}

function Pictures({ store, options, names, pair, window, zooming }: PicturesProps) {
  const drawn = useSignal<LaidOutScene | null>(null);
  const over = useSignal<number | null>(null); // the item under the pointer
  const isLight = store.theme.value === 'light';
  useEffect(() => {
    const scene = sceneOf(pair.graph);
    return layouts.request(layoutGraphOf(scene), (layout) => {
      drawn.value = laidOut(scene, layout);
    });
  }, [pair]);
  const scene = drawn.value?.scene.graph === pair.graph ? drawn.value : null;
  const heat = useMemo(() => (scene ? coloursOf(pair, scene, isLight) : null), [pair, scene, isLight]); // prettier-ignore
  if (!scene || !heat) return <Loading />;
  const unit = UNIT_OF[options.value];
  const common = { store, scene, nodes: pair.nodes, options, names, window, over, zooming };
  const text = (value: number): string => formatValue(unit, value);
  return (
    <>
      <p class="chart-scale dim">
        <span>{text(heat.least)}</span>
        <i class="colour-scale" style={{ background: gradientOf('heat') }} />
        <span>{text(heat.most)}</span>
        <span class="toolbar-end" />
        <span>
          {text(heat.differs)} more in {names[0]}
        </span>
        <i class="colour-scale" style={{ background: gradientOf('diverging', isLight) }} />
        <span>
          {text(heat.differs)} more in {names[1]}
        </span>
      </p>
      <div class="compare-graphs">
        <Picture {...common} part="left" title={names[0]} heat={heat.left} />
        <Picture {...common} part="right" title={names[1]} heat={heat.right} />
        <Picture
          {...common}
          part="difference"
          title={`${names[1]} − ${names[0]}`}
          heat={heat.difference}
        />{' '}
        {/* prettier-ignore */}
      </div>
    </>
  );
}

interface Heats {
  readonly left: readonly (HeatColour | null)[];
  readonly right: readonly (HeatColour | null)[];
  readonly difference: readonly (HeatColour | null)[];
  readonly least: number;
  readonly most: number;
  readonly differs: number; // the largest difference
}

// By item of the scene.
function coloursOf({ nodes }: PairGraph, { scene }: LaidOutScene, isLight: boolean): Heats {
  const by = differences(nodes);
  const valuesOf = (value: (node: PairNode, at: number) => number): Float64Array =>
    Float64Array.from(scene.items, ({ node: { tensor }, stub }) => {
      const node = nodes[tensor];
      return node && !stub ? value(node, tensor) : NaN;
    });
  const left = valuesOf((node) => node.left ?? 0);
  const right = valuesOf((node) => node.right ?? 0);
  const difference = valuesOf((node, at) => (node.left === null && node.right === null ? NaN : (by[at] ?? NaN))); // prettier-ignore
  const both = heatColours(Float64Array.from([...left, ...right]));
  const known = [...left, ...right].filter((value) => value > 0);
  return {
    left: both.slice(0, left.length),
    right: both.slice(left.length),
    difference: signedColours(difference, isLight),
    least: known.reduce((min, value) => Math.min(min, value), known[0] ?? 0),
    most: known.reduce((max, value) => Math.max(max, value), 0),
    differs: difference.reduce((max, value) => Math.max(max, Math.abs(value) || 0), 0),
  };
}

type Part = 'left' | 'right' | 'difference';

interface PictureProps {
  readonly store: Store;
  readonly scene: LaidOutScene;
  readonly nodes: readonly PairNode[];
  readonly options: CompareOptions;
  readonly names: readonly [string, string];
  readonly window: Signal<Window | null>;
  readonly over: Signal<number | null>;
  readonly zooming: { current: ((factor: number) => void) | null };
  readonly part: Part;
  readonly title: string;
  readonly heat: readonly (HeatColour | null)[];
}

function Picture(props: PictureProps) {
  const { store, scene, nodes, window, over, part, title, heat } = props;
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const box = useSignal<Box>({ w: 0, h: 0 });
  const { layout } = scene;
  const camera = (): Camera => window.peek() ? cameraOf(window.peek() ?? [], box.peek()) : fitCamera(box.peek(), layout); // prettier-ignore
  const setCamera = (next: Camera): void => {
    window.value = windowOf(next, box.peek());
  };
  useLayoutEffect(() => {
    const of = host.current;
    if (!of) return;
    const observer = new ResizeObserver(() => {
      const w = of.clientWidth;
      box.value = { w, h: Math.min(MAX_HEIGHT, Math.max(120, Math.ceil((w * layout.height) / layout.width) + 12)) }; // prettier-ignore
    });
    observer.observe(of);
    return () => {
      observer.disconnect();
    };
  }, [layout]);
  const { w, h } = box.value;
  const shown = window.value;
  const focused = over.value;
  const theme = store.theme.value;
  useEffect(() => {
    const ctx = canvas.current?.getContext('2d');
    if (!canvas.current || !ctx || w === 0) return;
    canvas.current.width = Math.round(w * devicePixelRatio);
    canvas.current.height = Math.round(h * devicePixelRatio);
    ctx.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    const on = scene.scene.items.map(({ node: { tensor } }) => nodes[tensor]?.on ?? 'both');
    const itemsThat = (keep: (on: PairNode['on']) => boolean): ReadonlySet<number> =>
      new Set(on.flatMap((one, i) => (keep(one) ? [i] : [])));
    const marks = {
      times: new Float64Array(heat.length),
      selected: itemsThat((one) => part === 'difference' && one !== 'both'),
      focused,
      running: new Set<number>(),
      breakpoints: new Map(),
      heat,
      hidden: new Set<never>(),
      found: part === 'difference' ? null : itemsThat((one) => one === 'both' || one === part),
    };
    paintGraph(ctx, box.peek(), scene, camera(), marks, graphPalette(canvas.current));
  }, [scene, heat, w, h, shown, focused, theme]);
  useEffect(() => {
    if (part !== 'difference') return;
    props.zooming.current = (factor) => {
      const { w, h } = box.peek();
      setCamera(zoomCamera(camera(), factor, w / 2, h / 2));
    };
  });
  useEffect(() => listen(), [scene]);

  function listen(): (() => void) | undefined {
    const target = canvas.current;
    if (!target || !tip.current) return undefined;
    const tooltip = new Tip(tip.current);
    const control = new AbortController();
    let drag: { readonly x: number; readonly y: number; readonly from: Camera; moved: boolean } | null = null; // prettier-ignore
    const on = <T extends keyof HTMLElementEventMap>(type: T, act: (event: HTMLElementEventMap[T]) => void): void => {
      target.addEventListener(type, act, { signal: control.signal });
    }; // prettier-ignore
    on('pointerdown', ({ button, offsetX: x, offsetY: y, pointerId }) => {
      if (button !== 0) return;
      drag = { x, y, from: camera(), moved: false };
      target.setPointerCapture(pointerId);
    });
    on('pointermove', ({ offsetX: x, offsetY: y }) => {
      if (drag) {
        drag.moved ||= Math.hypot(x - drag.x, y - drag.y) > CLICK_PX;
        if (drag.moved) setCamera(panCamera(drag.from, x - drag.x, y - drag.y));
        tooltip.hide();
        return;
      }
      over.value = hit(layout, scene.scene.items, camera(), x, y);
      const node = nodes[scene.scene.items[over.peek() ?? -1]?.node.tensor ?? -1];
      if (node) tooltip.show(tipText(node, props), { x, y }, box.peek());
      else tooltip.hide();
    });
    for (const type of ['pointerup', 'pointercancel'] as const)
      on(type, () => {
        drag = null;
      });
    on('pointerleave', () => {
      over.value = null;
      tooltip.hide();
    });
    return () => {
      control.abort();
      tooltip.destroy();
    };
  }

  return (
    <figure data-part={part}>
      <figcaption>{title}</figcaption>
      <div
        ref={host}
        class="graph"
        data-drawn={w > 0 ? part : undefined}
        style={{ height: `${h}px` }}
      >
        <canvas
          ref={canvas}
          role="img"
          aria-label={`Graph of ${title}; its values are in the form Table`}
          style={{ width: `${w}px`, height: `${h}px` }}
        />
        <div ref={tip} class="tip" hidden />
      </div>
    </figure>
  );
}

const DASH = '–';

interface Texts {
  readonly left: string;
  readonly right: string;
  readonly difference: string;
}

function textsOf(node: PairNode, { value }: CompareOptions): Texts {
  const text = (n: number | null): string => (n === null ? DASH : formatValue(UNIT_OF[value], n));
  const [by = NaN] = differences([node]);
  const sign = by > 0 ? '+' : by < 0 ? '−' : '';
  return {
    left: text(node.left),
    right: text(node.right),
    difference: Number.isNaN(by) ? DASH : `${sign}${text(Math.abs(by))}`,
  };
}

function tipText(node: PairNode, { options, names }: Pick<PictureProps, 'options' | 'names'>): TipText {
  const { left, right, difference } = textsOf(node, options);
  const { name, op, kind } = node.node;
  const isOp = node.left !== null || node.right !== null;
  return {
    title: name,
    head: op ?? kind,
    lines: isOp
      ? [[names[0], left], [names[1], right], ['difference', difference]]
      : [['in', node.on === 'both' ? 'both' : `only ${names[node.on === 'left' ? 0 : 1]}`]],
  };
} // prettier-ignore

// The ops of the layer, and nodes that only one side has.
function NodeTable({ pair, options, names }: { pair: PairGraph } & Pick<Props, 'options' | 'names'>) {
  const rows = pair.nodes.filter(({ left, right, on }) => left !== null || right !== null || on !== 'both'); // prettier-ignore
  if (rows.length === 0) return <Empty>No op of this layer is compared.</Empty>;
  return (
    <div class="compare-nodes" tabIndex={0} role="region" aria-label="Nodes">
      <table class="differences" aria-label="Nodes of the graph">
        <thead>
          <tr>
            <th scope="col">node</th>
            <th scope="col">op</th>
            <th scope="col">{names[0]}</th>
            <th scope="col">{names[1]}</th>
            <th scope="col">
              {names[1]} − {names[0]}
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const { left, right, difference } = textsOf(row, options);
            return (
              <tr key={row.node.tensor} data-only={row.on === 'both' ? undefined : row.on}>
                <th scope="row" class="mono" title={row.node.name}>
                  {row.node.name}
                </th>
                <td>{row.node.op ?? row.node.kind}</td>
                <td>{left}</td>
                <td>{right}</td>
                <td>{difference}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
} // prettier-ignore

// The colour and shape of each node category in the layer.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { graphPalette, traceShape } from '../../graph/paint';
import { CATEGORIES } from '../../graph/categories';
import type { Category } from '../../net/types';
import { gradientOf } from '../../plane/colours';
import type { Store } from '../../state/store';

const W = 20;
const H = 13;

export interface GraphHeat {
  readonly name: string;
  readonly ends: readonly [string, string] | null; // the smallest and the largest value; null: no node has one
}

export function GraphLegend(props: {
  store: Store;
  counts: ReadonlyMap<Category, number>;
  hidden: readonly Category[];
  heat: GraphHeat | null; // what the colours of the nodes show; null: their kind
  toggle: (category: Category) => void;
  children: ComponentChildren; // after the legend
}) {
  const { store, counts, hidden, heat, toggle, children } = props;
  return (
    <div class="graph-foot">
      <ul class="graph-legend" aria-label="Kinds of nodes">
        {CATEGORIES.filter(({ category }) => counts.has(category)).map(
          ({ category, name, hint }) => (
            <li key={category}>
              <button
                type="button"
                class="legend-toggle"
                aria-pressed={!hidden.includes(category)}
                title={`${hint}. A click shows or hides them.`}
                onClick={() => {
                  toggle(category);
                }}
              >
                <Sample category={category} theme={store.theme.value} />
                {name}
                <span class="dim">{counts.get(category)}</span>
              </button>
            </li>
          ),
        )}
        {heat !== null &&
          (heat.ends === null ? (
            <li>no {heat.name}</li>
          ) : (
            <li title="Logarithmic, from the smallest to the largest value">
              {heat.name} {heat.ends[0]}
              <i
                class="colour-scale"
                style={{ background: gradientOf('heat') }}
                aria-hidden="true"
              />
              {heat.ends[1]}
            </li>
          ))}
        <li title="Edge from or to another layer">
          <i class="dashed" aria-hidden="true" />
          across layers
        </li>
      </ul>
      {children}
    </div>
  );
}

function Sample({ category, theme }: { category: Category; theme: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const ctx = canvas.current?.getContext('2d');
    if (!ctx || !canvas.current) return;
    const palette = graphPalette(canvas.current);
    const ratio = devicePixelRatio;
    canvas.current.width = W * ratio;
    canvas.current.height = H * ratio;
    ctx.scale(ratio, ratio);
    traceShape(ctx, category, 1, 1, W - 2, H - 2);
    ctx.fillStyle = palette.back[category];
    ctx.strokeStyle = palette.line[category];
    ctx.lineWidth = 1.4;
    ctx.fill();
    ctx.stroke();
  }, [category, theme]);
  return <canvas ref={canvas} width={W} height={H} aria-hidden="true" />;
}

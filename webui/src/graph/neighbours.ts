// Keyboard navigation in the layer graph: up to an input, down to a reader, left and right within
// the rank. Pure functions.
import type { LaidOutScene } from './scene';

export type Direction = 'up' | 'down' | 'left' | 'right';

// The next item in the direction; the same item if there is none.
export function neighbour(drawn: LaidOutScene, item: number, direction: Direction): number {
  const { scene, layout } = drawn;
  const middle = (one: number): number => (layout.x[one] ?? 0) + (scene.items[one]?.w ?? 0) / 2;
  const nearest = (items: readonly number[]): number =>
    items.reduce(
      (best, one) =>
        Math.abs(middle(one) - middle(item)) < Math.abs(middle(best) - middle(item)) ? one : best,
      items[0] ?? item,
    );
  switch (direction) {
    case 'up': {
      const reads = scene.edges.filter(({ to }) => to === item).map(({ from }) => from);
      // Prefer computed inputs: weights have no inputs themselves.
      const computed = reads.filter((one) => scene.items[one]?.origin !== 'external');
      return nearest(computed.length > 0 ? computed : reads);
    }
    case 'down':
      return nearest(scene.edges.filter(({ from }) => from === item).map(({ to }) => to));
    case 'left':
    case 'right':
      return neighbourInRank(drawn, item, direction === 'left' ? -1 : 1);
  }
}

function neighbourInRank({ scene, layout }: LaidOutScene, item: number, by: 1 | -1): number {
  const level = (one: number): number => (layout.y[one] ?? 0) + (scene.items[one]?.h ?? 0) / 2;
  const here = layout.x[item] ?? 0;
  let best = item;
  scene.items.forEach((_, one) => {
    const ahead = ((layout.x[one] ?? 0) - here) * by;
    if (one === item || ahead <= 0 || Math.abs(level(one) - level(item)) > 1) return;
    if (best === item || ahead < ((layout.x[best] ?? 0) - here) * by) best = one;
  });
  return best;
}

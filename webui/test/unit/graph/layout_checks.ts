// What is wrong with a layout; empty: nothing.
import type { Layout, LayoutGraph } from '../../../src/graph/layout';

// Pairs of boxes that overlap.
export function overlaps({ nodes }: LayoutGraph, { x, y }: Layout): readonly string[] {
  const boxes = nodes.map(({ w, h }, i) => ({ i, x: x[i] ?? 0, y: y[i] ?? 0, w, h }));
  return boxes.flatMap((a) =>
    boxes
      .slice(a.i + 1)
      .filter((b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h)
      .map((b) => `${a.i} over ${b.i}`),
  );
}

// Edges that do not lead from the bottom of the source down to the top of the target. An edge goes up only
// between two columns, where there are no boxes.
export function upwards({ nodes, edges }: LayoutGraph, { x, y, paths }: Layout): readonly string[] {
  const isFree = (at: number): boolean =>
    nodes.every(({ w }, node) => at < (x[node] ?? 0) || at > (x[node] ?? 0) + w);
  return edges.flatMap(([from, to], i) => {
    const path = [...(paths[i] ?? [])];
    const ys = path.filter((_, at) => at % 2 === 1);
    const falls = ys.every(
      (one, at) =>
        at === 0 ||
        one >= (ys[at - 1] ?? 0) ||
        (path[2 * at] === path[2 * at - 2] && isFree(path[2 * at] ?? 0)),
    );
    const starts = ys[0] === (y[from] ?? 0) + (nodes[from]?.h ?? 0);
    const ends = ys.at(-1) === y[to];
    const within = (end: number, node: number): boolean =>
      end >= (x[node] ?? 0) && end <= (x[node] ?? 0) + (nodes[node]?.w ?? 0);
    const meets = within(path[0] ?? 0, from) && within(path.at(-2) ?? 0, to);
    return falls && starts && ends && meets ? [] : [`${from} to ${to}`];
  });
}

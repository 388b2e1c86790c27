// The op of an item, as breakpoints name it.
import type { Item } from '../../graph/scene';
import type { PlacedOp } from '../../state/request/breakpoint_place';

// null: the item computes nothing, or is a box of many ops.
export const placedOf = ({ node, group }: Item): PlacedOp | null =>
  group || node.executed_op === null
    ? null
    : { output: node.name, op: node.op ?? '', layer: node.layer };

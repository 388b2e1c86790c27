// The kinds of nodes that the legend of the graph shows and hides.
import type { Category } from '../net/types';

export const CATEGORIES: readonly {
  readonly category: Category;
  readonly name: string;
  readonly hint: string;
}[] = [
  {
    category: 'layer',
    name: 'layer',
    hint: 'Ops, weights and KV cache or recurrent state of this layer',
  },
  {
    category: 'infrastructure',
    name: 'shared',
    hint: 'Inputs shared by all layers (positions, masks), drawn next to each reader',
  },
  { category: 'cross_layer_input', name: 'input', hint: 'Input from another layer' },
  { category: 'cross_layer_output', name: 'output', hint: 'Output to another layer' },
  { category: 'embedding', name: 'embedding', hint: 'Token and position embeddings' },
  { category: 'output', name: 'logits', hint: 'The model’s output' },
];

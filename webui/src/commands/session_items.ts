// What the search finds in the open session: tensors, ops of the selected step, and tokens.
import { plural, tokenText } from '../format';
import { graphOf, opsOf } from '../state/session/per_session';
import type { Selection } from '../state/view/selection';
import type { Store } from '../state/store';
import type { Command } from './command';

const MAX_OF_KIND = 8;

export function sessionItems(store: Store, query: string): readonly Command[] {
  const open = store.open.peek();
  const text = query.trim().toLowerCase();
  if (!open || text.length < 2) return [];
  const words = text.split(/\s+/);
  const has = (...fields: readonly string[]): boolean => {
    const all = fields.join(' ').toLowerCase();
    return words.every((word) => all.includes(word));
  };
  const graph = graphOf(open).state.peek().value;
  const ops = opsOf(open).state.peek().value?.rows ?? [];
  const tensors: Command[] = (graph?.tensors ?? [])
    .filter(({ tensor_name, role }) => has(tensor_name, role))
    // Weights first: their names are what one knows of a model.
    .sort((a, b) => Number(b.tensor_kind === 'weight') - Number(a.tensor_kind === 'weight'))
    .map(({ tensor, tensor_name, tensor_kind, layer_id }): Command => ({
      id: `tensor-${tensor}`,
      title: tensor_name,
      group: tensor_kind === 'weight' ? 'Weight' : 'Tensor',
      run: () => {
        find(store, { kind: 'tensor', name: graph?.keys[tensor] ?? tensor_name }, layer_id);
      },
    }));
  const found = ops
    .filter(({ operation_type, tensor_name }) => has(operation_type, tensor_name))
    .map(({ op, operation_type, tensor_name, op_layer_id }): Command => ({
      id: `op-${op}`,
      title: `${operation_type} ${tensor_name}`,
      group: `Op ${op}`,
      run: () => {
        find(store, { kind: 'op', op }, op_layer_id);
      },
    }));
  const tokens: Command[] = [];
  for (const token of open.data.tokens) {
    if (!token?.text.toLowerCase().includes(text)) continue;
    tokens.push({
      id: `token-${token.index}`,
      title: tokenText(token),
      group: `Token ${token.index}`,
      run: () => {
        store.selectToken(open, token.index);
      },
    });
  }
  return [...firstOf(tensors, 'tensor'), ...firstOf(found, 'op'), ...firstOf(tokens, 'token')];
}

// The first ones, and a row that says how many there are more.
export function firstOf(items: readonly Command[], kind: string): readonly Command[] {
  const more = items.length - MAX_OF_KIND;
  if (more <= 0) return items;
  const row: Command = {
    id: `more-${kind}`,
    title: `${plural(more, `more ${kind}`)}: type more of the name`,
    group: '',
    enabled: () => false,
    run: () => undefined,
  };
  return [...items.slice(0, MAX_OF_KIND), row];
}

// Selects a found item. The graph shows its layer; null: it has none.
function find({ navigation }: Store, selection: Selection, layer: number | null): void {
  navigation.change({ selection, layer: layer ?? navigation.view.peek().layer });
}

// What a click on a part of a chart does: it selects the item in every view, or filters all views.
import type { Pick } from '../../charts/table';
import { parseFilter, toggleWord } from '../../state/view/filter';
import type { OpenSession } from '../../state/session/open_session';
import { graphOf } from '../../state/session/per_session';
import { partNamed, type Selection } from '../../state/view/selection';
import type { Store } from '../../state/store';

const WORDS: Readonly<Record<string, string>> = {
  component: 'component',
  op_kind: 'op',
  kernel: 'kernel',
  source: 'source',
};

// The selection of a part; null: it is none.
export function selectionOf(session: OpenSession, { of, name }: Pick): Selection | null {
  const number = Number(name);
  const isNumber = name !== '' && Number.isInteger(number) && number >= 0;
  switch (of) {
    case 'layer':
      return isNumber ? { kind: 'layer', layer: number } : null;
    case 'token':
      return isNumber ? { kind: 'token', token: number } : null;
    case 'tensor':
      return graphOf(session).state.peek().value?.tensorOf.has(name) === true
        ? { kind: 'tensor', name }
        : null;
    case 'expert':
    case 'head':
      return partNamed(name);
    case 'op':
      return name === '' ? null : { kind: 'output', of: 'op', name };
    default:
      return null;
  }
}

export function choose(store: Store, session: OpenSession, pick: Pick): void {
  const { of, name, step } = pick;
  if (step !== undefined) {
    // Not what was selected at another step.
    store.navigation.toStep(step);
    store.select(selectionOf(session, pick));
  } else if (of === 'step') {
    if (name !== '') store.navigation.toStep(Number(name));
  } else if (of === 'token') {
    store.selectToken(session, Number(name));
  } else if (of === 'phase') {
    const { phase } = store.navigation.view.peek();
    if (name === 'prompt' || name === 'generate') store.setPhase(phase === name ? 'all' : name);
  } else if (WORDS[of] !== undefined) {
    if (name === 'unknown' || name === '') return;
    const { filter } = store.navigation.view.peek();
    store.setFilter(toggleWord(filter, `${WORDS[of]}:${name.toLowerCase()}`), 'push');
  } else {
    const selection = selectionOf(session, pick);
    if (selection) store.select(selection);
  }
}

// The path into the parts: the words of the filter that a click on a part has added.
export const pathOf = (filter: string): readonly { readonly text: string; readonly value: string }[] =>
  parseFilter(filter)
    .filter(({ key, not }) => (key === 'component' || key === 'op') && !not)
    .map(({ text, values }) => ({ text, value: values.join(', ') })); // prettier-ignore

// What the search finds by number: "12", "step 12", "token 17", "layer 5" or "l 5", "expert 3 layer 2",
// "layer 0 head 1". Parsing and limits are pure functions.
import { formatCount } from '../format';
import { headName, type Selection } from '../state/view/selection';
import type { OpenSession } from '../state/session/open_session';
import type { Store } from '../state/store';
import { withStep } from '../state/view/view';
import type { Command } from './command';

const KINDS = ['step', 'token', 'layer', 'expert', 'head'] as const;
type Kind = (typeof KINDS)[number];
type Numbers = Readonly<Partial<Record<Kind, number>>>;

// How many of each the session has.
export type Counts = Readonly<Record<Kind, number>>;

export interface Jump {
  readonly title: string;
  readonly step?: number;
  readonly layer?: number;
  readonly selection?: Selection;
}

// `layer`: the one in view, of a head or an expert without a layer.
export function findJumps(query: string, counts: Counts, layer: number): readonly Jump[] {
  const only = /^\s*(\d{1,9})\s*$/.exec(query)?.[1];
  const all: readonly Numbers[] = only
    ? [{ step: Number(only) }, { layer: Number(only) }]
    : [numbersOf(query) ?? {}];
  return all.flatMap((numbers) => {
    const exists = KINDS.every((kind) => (numbers[kind] ?? -1) < counts[kind]);
    const jump = exists ? jumpOf(numbers, layer) : null;
    return jump ? [jump] : [];
  });
}

// Why a query of names and numbers finds nothing: "The session has no experts.". Null: it is another
// query.
export function missingText(query: string, counts: Counts): string | null {
  const numbers = numbersOf(query);
  const kind = KINDS.find((one) => (numbers?.[one] ?? -1) >= counts[one]);
  if (kind === undefined) return null;
  const count = counts[kind];
  return count === 0
    ? `The session has no ${kind}s.`
    : `The session has no ${kind} ${numbers?.[kind] ?? ''}: they are 0–${formatCount(count - 1)}.`;
}

// Null: the query has other words, or one of them twice.
function numbersOf(query: string): Numbers | null {
  const text = query
    .toLowerCase()
    .replace(/\b(of|in|at|the)\b/g, ' ')
    .trim();
  if (!/^(([a-z]+)\s*\d{1,9}[\s,]*)+$/.test(text)) return null;
  const found = new Map<Kind, number>();
  for (const [, word = '', number] of text.matchAll(/([a-z]+)\s*(\d+)/g)) {
    const kind = KINDS.find((one) => one === word || (one === 'layer' && word === 'l'));
    if (!kind || found.has(kind)) return null;
    found.set(kind, Number(number));
  }
  return Object.fromEntries(found);
}

function jumpOf({ step, token, layer, expert, head }: Numbers, inView: number): Jump | null {
  const given = [step, token, expert, head].filter((one) => one !== undefined).length;
  const at = layer === undefined ? {} : { layer };
  const ofLayer = layer === undefined ? '' : ` of layer ${layer}`;
  if (given > 1) return null;
  const inLayer = layer ?? inView;
  if (expert !== undefined)
    return {
      title: `Select expert ${expert} of layer ${inLayer}`,
      layer: inLayer,
      selection: { kind: 'expert', layer: inLayer, expert },
    };
  if (head !== undefined) {
    const one = { layer: inLayer, head };
    return {
      title: `Select ${headName(one)}`,
      layer: inLayer,
      selection: { kind: 'head', ...one },
    };
  }
  if (token !== undefined)
    return { title: `Select token ${token}${ofLayer}`, ...at, selection: { kind: 'token', token } };
  if (step !== undefined) return { title: `Go to step ${step}${ofLayer}`, step, ...at };
  return layer === undefined ? null : { title: `Go to layer ${layer}`, layer };
}

export function jumpCommands(store: Store, query: string): readonly Command[] {
  const open = store.open.peek();
  if (!open) return [];
  const { layer } = store.navigation.view.peek();
  const counts = countsOf(store, open);
  const missing = missingText(query, counts);
  if (missing !== null)
    return [{ id: 'jump-none', title: missing, group: 'By number', enabled: () => false, run: () => undefined }]; // prettier-ignore
  return findJumps(query, counts, layer).map((jump): Command => ({
    id: `jump-${jump.title}`,
    title: jump.title,
    group: 'By number',
    run: () => {
      go(store, open, jump);
    },
  }));
}

function countsOf(store: Store, { data, info }: OpenSession): Counts {
  const about = info.peek();
  const { n_experts = 0, n_heads = 0 } = about.is === 'ready' ? about.value : {};
  return {
    step: data.steps.length,
    token: data.tokens.length,
    layer: store.layers.peek(),
    expert: n_experts,
    head: n_heads,
  };
}

function go(store: Store, session: OpenSession, jump: Jump): void {
  const { step, layer, selection } = jump;
  const { navigation } = store;
  if (selection?.kind === 'token') {
    store.selectToken(session, selection.token, layer ?? null);
    return;
  }
  const view = navigation.view.peek();
  const next = step === undefined ? view : withStep(view, step);
  navigation.go({
    ...next,
    layer: layer ?? view.layer,
    selection: selection ?? next.selection,
  });
}

// Details of the selection: facts, inputs, outputs, and buttons to copy them. Without a selection
// it shows the session.
import type { ComponentChildren } from 'preact';
import { exactBytes, formatBytes, kindName, plural, sourceName } from '../../format';
import { useMemo, useState } from 'preact/hooks';
import type { Access, Op } from '../../net/types';
import { excludesExpert, parseFilter, toggleWord } from '../../state/filter';
import type { OpenSession } from '../../state/open_session';
import { accessesOf, graphOf, opsOf } from '../../state/per_session';
import type { Selection } from '../../state/selection';
import type { Store } from '../../state/store';
import { IconButton } from '../../ui/Button';
import { copyText } from '../../ui/clipboard';
import { useExact, usePart, useResource } from '../../ui/hooks';
import { closeMenu, Menu } from '../../ui/Menu';
import { Empty, Failed, Loading } from '../../ui/States';
import { Unused } from '../../ui/Unused';
import { withKey } from '../../state/view';
import type { SessionProps } from '../panel';
import { defaultTable, encodeTable } from '../table/table_options';
import { Comparison } from './Comparison';
import { expertTokensQuery, tokensOfExpert } from './expert_tokens';
import { Figures, isPartShown, UNFILTERED } from './Figures';
import { inspectAccess, inspectNode, inspectOp, inspectTensor } from './inspect_graph';
import {
  inspectExpert,
  inspectHead,
  inspectLayer,
  inspectSession,
  inspectToken,
} from './inspect_session';
import {
  inspectionJson,
  inspectionText,
  type Fact,
  type FactGroup,
  type Inspection,
  type Links,
} from './inspection';
import { COPY_KINDS, reproductionText } from './reproduce';
import { Summary } from './Summary';

const MAX_ROWS = 60; // rows of a list, or that are added to it at once
const FOLDED_ROWS = 20; // rows of a folded list

export function Inspector(props: SessionProps) {
  return (
    <>
      <Summary store={props.store} session={props.session} />
      <Details {...props} />
    </>
  );
}

function Details({ store, session }: SessionProps) {
  const selection = usePart(() => store.navigation.view.value.selection);
  switch (selection?.kind) {
    case undefined:
      return <SessionDetails store={store} session={session} />;
    case 'token':
      return <TokenDetails store={store} session={session} token={selection.token} />;
    case 'layer':
      return <LayerDetails store={store} session={session} layer={selection.layer} />;
    case 'expert':
      return <ExpertDetails store={store} session={session} expert={selection.expert} />;
    case 'head':
      return <InspectionView store={store} session={session} what={inspectHead(selection)} />;
    case 'op':
    case 'access':
      return <OpDetails store={store} session={session} selection={selection} />;
    case 'node':
    case 'tensor':
      return <GraphDetails store={store} session={session} selection={selection} />;
  }
}

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
}

function SessionDetails({ store, session }: Props) {
  void session.feed.version.value;
  const info = session.info.value;
  if (info.is === 'ready')
    return (
      <InspectionView
        store={store}
        session={session}
        what={inspectSession(info.value, session.data)}
      />
    );
  return info.is === 'loading' && !session.active.value ? (
    <Loading>Loading the session…</Loading>
  ) : (
    <Empty>Details of the selection are shown here.</Empty>
  );
}

function TokenDetails({ store, session, token }: Props & { token: number }) {
  void session.feed.version.value;
  const { data } = session;
  if (token >= data.tokens.length) return <NotFound store={store} session={session} what="token" />;
  const step = data.stepOfToken(token);
  const summary = step === null ? undefined : data.steps[step];
  return (
    <InspectionView store={store} session={session} what={inspectToken(data, token, summary)}>
      <Comparison
        store={store}
        session={session}
        selected={{ kind: 'token', token }}
        count={data.tokens.length}
      />
    </InspectionView>
  );
}

function LayerDetails({ store, session, layer }: Props & { layer: number }) {
  const ops = useResource(opsOf(session));
  const { step } = session;
  const layers = store.layers.value;
  if (layers > 0 && layer >= layers)
    return <NotFound store={store} session={session} what="layer" />;
  const summary = step.value === null ? undefined : session.data.steps[step.value];
  const rows = ops.value?.rows ?? [];
  return (
    <InspectionView
      store={store}
      session={session}
      what={inspectLayer(layer, layers, summary, rows)}
    >
      <Comparison
        store={store}
        session={session}
        selected={{ kind: 'layer', layer }}
        count={layers}
      />
    </InspectionView>
  );
}

function ExpertDetails({ store, session, expert }: Props & { expert: number }) {
  void session.feed.version.value;
  const resource = useMemo(() => tokensOfExpert(store, session, expert), [store, session, expert]);
  const { value: used, error } = useResource(resource);
  const missing = usePart(() =>
    expertTokensQuery(expert, store.navigation.view.value).missing.join('\n'),
  );
  return (
    <InspectionView
      store={store}
      session={session}
      what={inspectExpert(expert, session.data, used, store.layers.value)}
      note={<Excluded store={store} expert={expert} />}
    >
      {error && <Failed what="The tokens that used it cannot be shown." error={error} />}
      {used && (used.tokens.length === 0 || missing !== '') && (
        <p class="expert-tokens">
          {used.tokens.length === 0
            ? 'No token of this selection used it. '
            : 'The list of tokens '}
          <Unused words={missing === '' ? [] : missing.split('\n')} />
        </p>
      )}
    </InspectionView>
  );
}

// The filter selects other experts than the selected one.
function Excluded({ store, expert }: { store: Store; expert: number }) {
  const { navigation } = store;
  const words = usePart(() =>
    excludesExpert(parseFilter(navigation.view.value.filter), expert)
      .map(({ text }) => text)
      .join(' '),
  );
  if (words === '') return null;
  return (
    <p class="excluded">
      <span class="warn">The filter {words} excludes this expert: it is shown all the same.</span>{' '}
      <button
        type="button"
        class="link"
        onClick={() => {
          const { filter } = navigation.view.peek();
          navigation.setFilter(words.split(' ').reduce(toggleWord, filter), 'push');
        }}
      >
        Remove {words} from the filter
      </button>
    </p>
  );
}

function useOpsByIndex(rows: readonly Op[] | undefined): ReadonlyMap<number, Op> {
  return useMemo(() => new Map((rows ?? []).map((op) => [op.op, op])), [rows]);
}

type OpSelection = Extract<Selection, { kind: 'op' | 'access' }>;

function OpDetails({ store, session, selection }: Props & { selection: OpSelection }) {
  const ops = useResource(opsOf(session));
  const graph = useExact(graphOf(session));
  const accesses = useExact(accessesOf(session));
  const byIndex = useOpsByIndex(ops.value?.rows);
  const op = byIndex.get(selection.op);
  if (!ops.value) {
    return ops.error ? <Failed what="The op cannot be shown." error={ops.error} /> : <Loading />;
  }
  if (!op)
    return ops.loading ? <Loading /> : <NotFound store={store} session={session} what="op" />;
  const rows = accesses.value;
  if (selection.kind === 'access') {
    const access = rows?.find(
      (one) => one.access === selection.access && one.part === selection.part,
    );
    if (!rows)
      return accesses.error ? (
        <Failed what="The access cannot be shown." error={accesses.error} />
      ) : (
        <Loading />
      );
    if (!access) return <NotFound store={store} session={session} what="access" />;
    return (
      <InspectionView
        store={store}
        session={session}
        what={inspectAccess(access, op, graph.value?.keys ?? null)}
      />
    );
  }
  return (
    <InspectionView
      store={store}
      session={session}
      what={inspectOp(op, graph.value, rows, byIndex)}
    >
      {accesses.error && <Failed what="The accesses cannot be shown." error={accesses.error} />}
      {rows && <Accesses store={store} rows={rows} />}
    </InspectionView>
  );
}

type GraphSelection = Extract<Selection, { kind: 'node' | 'tensor' }>;

function GraphDetails({ store, session, selection }: Props & { selection: GraphSelection }) {
  const graph = useExact(graphOf(session));
  const ops = useResource(opsOf(session));
  const byIndex = useOpsByIndex(ops.value?.rows);
  const info = session.info.value;
  if (!graph.value) {
    return graph.error ? (
      <Failed
        what="The step’s graph cannot be shown."
        error={graph.error}
        retry={() => {
          graphOf(session).reload();
        }}
      />
    ) : (
      <Loading>Loading the graph…</Loading>
    );
  }
  const { nodes, tensors } = graph.value;
  const about = info.is === 'ready' ? info.value : null;
  if (selection.kind === 'node') {
    const node = nodes[selection.node];
    if (!node) return <NotFound store={store} session={session} what="node" />;
    return (
      <InspectionView
        store={store}
        session={session}
        what={inspectNode(node, graph.value, byIndex, about)}
      />
    );
  }
  const tensor = tensors[graph.value.tensorOf.get(selection.name) ?? -1];
  if (!tensor) return <NotFound store={store} session={session} what="tensor" />;
  return (
    <InspectionView
      store={store}
      session={session}
      what={inspectTensor(tensor, graph.value, byIndex, about)}
    />
  );
}

// The selection, for example from a link, does not exist in the step.
function NotFound({ store, session, what }: Props & { what: string }) {
  return (
    <Empty>
      <span>
        Step {session.step.value} does not have this {what}.
      </span>
      <button
        type="button"
        class="link"
        onClick={() => {
          store.select(null);
        }}
      >
        Clear the selection
      </button>
    </Empty>
  );
}

function InspectionView(props: {
  store: Store;
  session: OpenSession;
  what: Inspection;
  note?: ComponentChildren;
  children?: ComponentChildren;
}) {
  const { store, session, what } = props;
  return (
    <div class="inspection">
      <header>
        <span class="inspection-kind">{what.kind}</span>
        <h3 title={what.title}>{what.title}</h3>
        <Actions store={store} session={session} what={what} />
      </header>
      <div class="inspection-body" tabIndex={0} role="group" aria-label="Details">
        {props.note}
        <Figures
          store={store}
          session={session}
          figures={what.figures}
          place={what.place}
          now={what.now}
        />
        {what.kind === 'Op' && <FactGroups groups={what.groups} />}
        {what.links.map((links) => (
          <LinkList
            key={`${what.kind} ${what.title} ${links.title}`}
            store={store}
            session={session}
            links={links}
          />
        ))}
        {props.children}
        <AllFacts store={store} what={what} />
      </div>
    </div>
  );
}

function AllFacts({ store, what }: { store: Store; what: Inspection }) {
  const isPart = usePart(() => isPartShown(store));
  const { kind, facts, groups = [] } = what;
  const count = groups.reduce((sum, group) => sum + group.facts.length, facts.length);
  return (
    <details class="all-facts">
      <summary>
        All facts <span class="dim">{count}</span>
        {isPart && (
          <span class="dim" title={UNFILTERED}>
            {' '}
            not filtered
          </span>
        )}
      </summary>
      <Facts facts={facts} />
      {kind !== 'Op' && <FactGroups groups={groups} />}
    </details>
  );
}

function FactGroups({ groups = [] }: { groups: readonly FactGroup[] | undefined }) {
  return (
    <>
      {groups.map(({ title, facts }) => (
        <section key={title} class="links">
          <h4>{title}</h4>
          <Facts facts={facts} />
        </section>
      ))}
    </>
  );
}

function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts.map(({ name, value, exact, mono }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class={mono ? 'mono' : ''} title={exact ?? value}>
            {value}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Actions({ store, session, what }: Props & { what: Inspection }) {
  const { layer } = what;
  const selected = usePart(() => store.navigation.view.value.selection !== null);
  const copy = (text: string, name: string): void => {
    void copyText(text).then((copied) => {
      if (copied) store.toasts.done(`${name} copied.`);
      else store.toasts.error('The browser denied access to the clipboard.');
    });
  };
  const choices: readonly (readonly [string, () => string])[] = [
    ['Text', () => inspectionText(what)],
    ['JSON', () => inspectionJson(what)],
    ...COPY_KINDS.map(
      (kind) =>
        [kind, () => reproductionText(kind, what.copy, session.id, document.baseURI)] as const,
    ),
  ];
  return (
    <div class="inspection-actions">
      <Menu label="Copy as" title="Copy the details, or what reproduces them">
        {choices.map(([name, text]) => (
          <button
            key={name}
            type="button"
            class="menu-item"
            onClick={(event) => {
              closeMenu(event.currentTarget);
              copy(text(), name);
            }}
          >
            {name}
          </button>
        ))}
      </Menu>
      {what.accessesOf !== undefined && (
        <button
          type="button"
          class="small"
          title="List all its accesses in the session"
          onClick={() => {
            showAccesses(store, what.accessesOf ?? '');
          }}
        >
          Accesses
        </button>
      )}
      {layer !== null && (
        <button
          type="button"
          class="small"
          title={`Show in the graph of layer ${layer}`}
          onClick={() => {
            store.reveal('graph');
            store.navigation.change({ layer });
          }}
        >
          Graph
        </button>
      )}
      {selected && (
        <IconButton
          icon="close"
          label="Clear the selection"
          hint="Esc"
          onClick={() => {
            store.select(null);
          }}
        />
      )}
    </div>
  );
}

// All accesses that match the filter, of all steps, in the table.
function showAccesses(store: Store, filter: string): void {
  store.reveal('table');
  const { options, sorts } = store.navigation.view.peek();
  const text = encodeTable({ ...defaultTable, rows: 'accesses', all: true });
  store.navigation.change({
    options: withKey(options, 'table', text),
    sorts: withKey(sorts, 'table', null),
    filter,
  });
}

// A long list is folded; the button shows further rows.
function LinkList({ store, session, links }: Props & { links: Links }) {
  const { title, jumps } = links;
  const [shown, setShown] = useState(FOLDED_ROWS);
  const left = Math.min(MAX_ROWS, jumps.length - shown);
  if (jumps.length === 0) return null;
  return (
    <section class="links">
      <h4>
        {title}
        {jumps.length > 1 && <span class="dim"> {jumps.length}</span>}
      </h4>
      <ul>
        {jumps.slice(0, shown).map(({ text, detail, to }, i) => (
          <li key={i}>
            {to ? (
              <button
                type="button"
                class="jump"
                title={`${text} ${detail}`}
                onClick={() => {
                  if (to.kind === 'layer')
                    store.navigation.change({ layer: to.layer, selection: to });
                  else if (to.kind === 'token') store.selectToken(session, to.token);
                  else store.select(to);
                }}
              >
                <span class="mono">{text}</span>
                <span class="dim">{detail}</span>
              </button>
            ) : (
              <span class="jump" title={`${text} ${detail}`}>
                <span class="mono">{text}</span>
                <span class="dim">{detail}</span>
              </span>
            )}
          </li>
        ))}
      </ul>
      {left > 0 && (
        <button
          type="button"
          class="link"
          onClick={() => {
            setShown(shown + left);
          }}
        >
          Show {left} more
        </button>
      )}
    </section>
  );
}

function Accesses({ store, rows }: { store: Store; rows: readonly Access[] }) {
  return (
    <section class="links" aria-label="Accesses">
      <h4>
        Accesses <span class="dim">{rows.length}</span>
      </h4>
      {rows.length === 0 && <p class="dim">This op does not access memory.</p>}
      <ul>
        {rows.slice(0, MAX_ROWS).map((access, index) => (
          <li key={index}>
            <button
              type="button"
              class="jump access"
              data-write={access.write}
              title={`${access.tensor_name}: ${exactBytes(access.size_bytes)} ${access.write ? 'written' : 'read'}`}
              onClick={() => {
                store.select({
                  kind: 'access',
                  op: access.op,
                  access: access.access,
                  part: access.part,
                });
              }}
            >
              <span class="access-way">{access.write ? 'write' : 'read'}</span>
              <span class="mono">{access.tensor_name}</span>
              <span class="access-bytes">{formatBytes(access.size_bytes)}</span>
              <span class="access-where dim">{whereOf(access)}</span>
            </button>
          </li>
        ))}
      </ul>
      {rows.length > MAX_ROWS && (
        <p class="dim">and {plural(rows.length - MAX_ROWS, 'more access', 'more accesses')}</p>
      )}
    </section>
  );
}

function whereOf(access: Access): string {
  const { expert_id: expert, expert_rank: rank, routing_score: score } = access;
  const routed =
    expert === null
      ? ''
      : `expert ${expert}${rank === null ? '' : `, rank ${rank}`}${score === null ? '' : `, score ${score.toFixed(3)}`}`;
  return [kindName(access.tensor_kind), sourceName(access.memory_source), routed]
    .filter(Boolean)
    .join(', ');
}

// What one inspection shows (inspection.ts): figures, links, all facts, and buttons that copy them or
// open them in other panels.
import { Fragment, type ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { withKey } from '../../state/view/view';
import { IconButton } from '../../ui/Button';
import { copyText } from '../../ui/clipboard';
import { usePart } from '../../ui/hooks';
import { Menu, MenuItem } from '../../ui/Menu';
import { Empty } from '../../ui/States';
import { isModelOf } from '../map/residency';
import { defaultTable, encodeTable } from '../table/table_options';
import { defaultWeights, encodeWeights } from '../weights/weights_options';
import { Figures, isPartShown, UNFILTERED } from './Figures';
import {
  inspectionJson,
  inspectionText,
  type Fact,
  type FactGroup,
  type Inspection,
  type Links,
} from './inspection';
import { COPY_KINDS, reproductionText } from './reproduce';

const ADDED_ROWS = 60; // rows that are added to a list at once
const FOLDED_ROWS = 20; // rows of a folded list

export interface DetailsProps {
  readonly store: Store;
  readonly session: OpenSession;
}

export function InspectionView(props: {
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
        <span class="inspection-kind">
          {what.kind}
          {what.number !== undefined && ` ${what.number}`}
        </span>
        <h2 title={what.title}>{what.title}</h2>
        <Actions store={store} session={session} what={what} />
      </header>
      <div class="inspection-body">
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

// Its parts are not cut between a number and its unit.
function Detail({ text }: { text: string }) {
  return (
    <span class="dim">
      {text.split(', ').map((part, i) => (
        <Fragment key={i}>
          {i > 0 && ', '}
          <span class="unbroken">{part}</span>
        </Fragment>
      ))}
    </span>
  );
}

function FactGroups({ groups = [] }: { groups: readonly FactGroup[] | undefined }) {
  return (
    <>
      {groups.map(({ title, facts }) => (
        <section key={title} class="links">
          <h3>{title}</h3>
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

function Actions({ store, session, what }: DetailsProps & { what: Inspection }) {
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
    ...COPY_KINDS.filter((kind) => kind !== 'REST' || store.hasServer).map(
      (kind) =>
        [kind, () => reproductionText(kind, what.copy, session.id, document.baseURI)] as const,
    ),
  ];
  return (
    <div class="inspection-actions">
      <Menu label="Copy as" title="Copy the details, or what reproduces them">
        {choices.map(([name, text]) => (
          <MenuItem
            key={name}
            run={() => {
              copy(text(), name);
            }}
          >
            {name}
          </MenuItem>
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
      {what.kind === 'Weight' && (
        <WeightsButton store={store} session={session} tensor={what.title} />
      )}
      {layer !== null && (
        <button
          type="button"
          class="small"
          title={`Show in the graph of layer ${layer}`}
          onClick={() => {
            store.reveal('graph');
            // A new object: the graph goes to it again.
            const { selection } = store.navigation.view.peek();
            store.navigation.change({ layer, selection: selection && { ...selection } });
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

// Only of a model that the server has.
function WeightsButton({ store, session, tensor }: DetailsProps & { tensor: string }) {
  const info = session.info.value;
  const list = store.models.list.value;
  const model =
    info.is === 'ready' && list.is === 'ready'
      ? list.value.models.find((one) => isModelOf(info.value, one))
      : undefined;
  if (!model) return null;
  return (
    <button
      type="button"
      class="small"
      title="Show the values of this tensor"
      onClick={() => {
        store.reveal('weights');
        const text = encodeWeights({ ...defaultWeights, model: model.id, tensor, show: 'picture' });
        store.navigation.setOptions('weights', text, 'push');
      }}
    >
      Weights
    </button>
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
function LinkList({ store, session, links }: DetailsProps & { links: Links }) {
  const { title, jumps } = links;
  const [shown, setShown] = useState(FOLDED_ROWS);
  const left = Math.min(ADDED_ROWS, jumps.length - shown);
  if (jumps.length === 0) return null;
  return (
    <section class="links">
      <h3>
        {title}
        {jumps.length > 1 && <span class="dim"> {jumps.length}</span>}
      </h3>
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
                <span class="mono">{breakable(text)}</span>
                <Detail text={detail} />
              </button>
            ) : (
              <span class="jump" title={`${text} ${detail}`}>
                <span class="mono">{breakable(text)}</span>
                <Detail text={detail} />
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

// A name whose lines break after its dots: "blk.0.attn_output." and "weight".
const breakable = (name: string): ComponentChildren =>
  name.split(/(?<=\.)/).map((part, i) => (
    <Fragment key={i}>
      {i > 0 && <wbr />}
      {part}
    </Fragment>
  ));

// The selection, for example from a link, does not exist in the step.
export function NotFound({
  store,
  session,
  what,
  name,
}: DetailsProps & { what: string; name?: string }) {
  return (
    <Empty>
      <span>
        Step {session.step.value} does not have{' '}
        {name === undefined ? `this ${what}` : `the ${what} ${name}`}.
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

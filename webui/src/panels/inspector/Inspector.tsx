// Details of the selection, by its kind. Without a selection it shows the session.
import { opsOf } from '../../state/session/per_session';
import { usePart, useResource } from '../../ui/hooks';
import { Empty, Loading } from '../../ui/States';
import { Alternatives } from '../chat/Alternatives';
import { SessionChoice } from '../compare/SessionChoice';
import type { SessionProps } from '../panel';
import { Altered } from './Altered';
import { Comparison } from './Comparison';
import { ExpertDetails } from './ExpertDetails';
import { GraphDetails, OpDetails, OutputDetails } from './GraphDetails';
import { HeadDetails } from './HeadDetails';
import { inspectLayer, inspectSession, inspectToken } from './inspect_session';
import { InspectionView, NotFound, type DetailsProps } from './InspectionView';
import { Summary } from './Summary';

export function Inspector(props: SessionProps) {
  return (
    <div class="inspector" tabIndex={0} role="group" aria-label="Details">
      <Altered store={props.store} session={props.session} />
      <Summary store={props.store} session={props.session} />
      <Details {...props} />
    </div>
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
      return <ExpertDetails store={store} session={session} selected={selection} />;
    case 'head':
      return <HeadDetails store={store} session={session} selected={selection} />;
    case 'op':
    case 'access':
      return <OpDetails store={store} session={session} selection={selection} />;
    case 'output':
      return <OutputDetails store={store} session={session} selection={selection} />;
    case 'node':
    case 'tensor':
      return <GraphDetails store={store} session={session} selection={selection} />;
  }
}

function SessionDetails({ store, session }: DetailsProps) {
  void session.feed.version.value;
  const info = session.info.value;
  if (info.is === 'ready')
    return (
      <InspectionView
        store={store}
        session={session}
        what={inspectSession(info.value, session.data)}
      >
        {store.has('compare') && (
          <section class="links comparison" aria-label="Comparison with a session">
            <SessionChoice store={store} session={session} />
          </section>
        )}
      </InspectionView>
    );
  return info.is === 'loading' && !session.active.value ? (
    <Loading>Loading the session…</Loading>
  ) : (
    <Empty>Details of the selection are shown here.</Empty>
  );
}

function TokenDetails({ store, session, token }: DetailsProps & { token: number }) {
  void session.feed.version.value;
  const layer = usePart(() => store.navigation.view.value.layer);
  const { data } = session;
  if (token >= data.tokens.length) return <NotFound store={store} session={session} what="token" />;
  const step = data.stepOfToken(token);
  const summary = step === null ? undefined : data.steps[step];
  const info = session.info.value;
  const slots = info.is === 'ready' ? info.value.server_slots : undefined;
  return (
    <InspectionView
      store={store}
      session={session}
      what={inspectToken(data, token, summary, layer, slots)}
    >
      <Alternatives store={store} session={session} token={token} />
      <Comparison
        store={store}
        session={session}
        selected={{ kind: 'token', token }}
        count={data.tokens.length}
      />
    </InspectionView>
  );
}

function LayerDetails({ store, session, layer }: DetailsProps & { layer: number }) {
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

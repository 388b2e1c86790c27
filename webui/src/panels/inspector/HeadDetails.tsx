// An attention head: what it costs and, if attention weights were captured, which tokens it looks at.
import { formatValue } from '../../charts/table';
import { plural } from '../../format';
import type { HeadOfLayer } from '../../state/view/selection';
import { useResource } from '../../ui/hooks';
import { FailedLoad } from '../../ui/States';
import { encodeLook } from '../chat/token_attention';
import { inspectHead } from './inspect_session';
import { InspectionView, type DetailsProps } from './InspectionView';
import { headScores, scoresOf } from '../../state/session/head_scores';

export function HeadDetails(props: DetailsProps & { selected: HeadOfLayer }) {
  const { store, session, selected } = props;
  return (
    <InspectionView store={store} session={session} what={inspectHead(selected)}>
      <Scores {...props} />
    </InspectionView>
  );
}

function Scores({ store, session, selected }: DetailsProps & { selected: HeadOfLayer }) {
  const resource = scoresOf(session);
  const { value, error } = useResource(resource);
  if (error) return <FailedLoad what="Its attention cannot be read." resource={resource} />;
  const head = value?.heads.find(
    ({ layer, head: number }) => layer === selected.layer && number === selected.head,
  );
  if (!head) return null;
  return (
    <section class="links" aria-label="Attention">
      <h3>
        Looks at <span class="dim">mean of {plural(head.tokens, 'token')}</span>
      </h3>
      <dl class="facts">
        {headScores(head).map(({ name, unit, value: of, meaning }) => (
          <div key={name} title={meaning}>
            <dt>{name}</dt>
            <dd title={String(of)}>{formatValue(unit, of)}</dd>
          </div>
        ))}
      </dl>
      {store.hasServer && (
        <button
          type="button"
          class="small"
          title="Tint the tokens that a token of the text looks at with this head"
          onClick={() => {
            const { layer, head: number } = selected;
            store.reveal('chat');
            store.navigation.setOptions('chat', encodeLook({ layer, head: number }), 'push');
          }}
        >
          Tint the text
        </button>
      )}
    </section>
  );
}

// An expert of a layer: what it costs, and the tokens that used it.
import { useMemo } from 'preact/hooks';
import { excludes, parseFilter, toggleWord } from '../../state/view/filter';
import type { ExpertOfLayer } from '../../state/view/selection';
import type { Store } from '../../state/store';
import { usePart, useResource } from '../../ui/hooks';
import { Failed } from '../../ui/States';
import { Unused } from '../../ui/Unused';
import { expertTokensQuery, tokensOfExpert } from './expert_tokens';
import { inspectExpert } from './inspect_session';
import { InspectionView, type DetailsProps } from './InspectionView';

export function ExpertDetails(props: DetailsProps & { selected: ExpertOfLayer }) {
  const { store, session, selected } = props;
  void session.feed.version.value;
  const resource = useMemo(
    () => tokensOfExpert(store, session, selected),
    [store, session, selected.layer, selected.expert],
  );
  const { value: used, error } = useResource(resource);
  const missing = usePart(() =>
    expertTokensQuery(selected, store.navigation.view.value).missing.join('\n'),
  );
  return (
    <InspectionView
      store={store}
      session={session}
      what={inspectExpert(selected, session.data, used)}
      note={<Excluded store={store} selected={selected} />}
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
function Excluded({ store, selected }: { store: Store; selected: ExpertOfLayer }) {
  const { navigation } = store;
  const words = usePart(() => {
    const terms = parseFilter(navigation.view.value.filter);
    return [
      ...excludes(terms, 'expert', selected.expert),
      ...excludes(terms, 'layer', selected.layer),
    ]
      .map(({ text }) => text)
      .join(' ');
  });
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

// What the server concludes about the subject of a page, in its words, each with its evidence.
import type { FindingTopic } from '../../net/types';
import { showAnswer } from '../../state/view/answer';
import { findingsOf } from '../../state/session/findings';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { useResource } from '../../ui/hooks';
import { linesOf } from '../inspector/summary';
import type { PageId } from './page_list';

const TOPICS: Readonly<Record<PageId, readonly FindingTopic[]>> = {
  overview: [], // the summary beside it has all
  roofline: ['speed'],
  reuse: ['memory', 'waits'],
  experts: [],
  attention: [],
  lens: [],
  checks: ['recording', 'machine', 'repeat', 'order'],
};

export function PageFindings(props: { store: Store; session: OpenSession; page: PageId }) {
  const { store, session, page } = props;
  const { value } = useResource(findingsOf(session));
  const lines = value
    ? (['main', 'warning'] as const)
        .flatMap((role) => linesOf(value, role))
        .filter(({ topic }) => TOPICS[page].includes(topic))
    : [];
  if (lines.length === 0) return null;
  return (
    <ul class="page-findings" aria-label="Findings">
      {lines.map(({ text, hint, evidence }) => (
        <li key={text}>
          {text}{' '}
          <button
            type="button"
            class="link"
            title={hint}
            aria-label={`Evidence: ${text}`}
            onClick={() => {
              store.navigation.change({ full: null }, 'replace');
              void showAnswer(store, evidence);
            }}
          >
            evidence
          </button>
        </li>
      ))}
    </ul>
  );
}

// What the model expected where it chose a token: probability, rank and entropy, and what it would have
// said instead.
import { formatValue } from '../../charts/table';
import { tokenText } from '../../format';
import type { LensRow } from '../../net/types';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { usePart, useResource } from '../../ui/hooks';
import { FailedLoad } from '../../ui/States';
import { alternativesOf, bitsOf, chosenOf, hasChosen } from './chosen_tokens';
import { shownToken } from './shown_token';

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
}

const percent = (probability: number | null): string =>
  probability === null ? 'not a number' : formatValue('share', probability);

// "12 %, rank 2, surprise 3.1 bits, entropy 4 bits"
export function chosenText({ chosen, rank, entropy }: LensRow): string {
  if (!chosen) return 'No token was chosen.';
  const bits = bitsOf(chosen.probability);
  return [
    `probability ${percent(chosen.probability)}`,
    rank === null ? '' : rank === 0 ? 'rank 0, the most likely one' : `rank ${rank}`,
    bits === null ? '' : `surprise ${formatValue('bits', bits)}`,
    entropy === null ? '' : `entropy ${formatValue('bits', entropy)}`,
  ]
    .filter(Boolean)
    .join(', ');
}

// In the inspector of a token.
export function Alternatives({ session, token }: Props & { token: number }) {
  const resource = chosenOf(session);
  const { value, error } = useResource(resource);
  const row = value?.rows.find((one) => one.token === token);
  if (error)
    return (
      <FailedLoad what="What the model expected cannot be read." resource={resource} />
    );
  if (!value || !hasChosen(session)) return null;
  return (
    <section class="links alternatives" aria-label="What the model expected">
      <h3>What the model expected</h3>
      {row ? (
        <>
          <p>{chosenText(row)}</p>
          <table aria-label="Most likely tokens">
            <tbody>
              {alternativesOf(row).map(({ id, text, probability, isChosen }) => (
                <tr key={id} data-chosen={isChosen}>
                  <th scope="row" class="mono" title={`token id ${id}`}>
                    {tokenText({ text })}
                  </th>
                  <td>{percent(probability)}</td>
                  <td class="alternative-bar" aria-hidden="true">
                    <i style={{ width: `${100 * (probability ?? 0)}%` }} />
                  </td>
                  <td class="dim">{isChosen ? 'chosen' : ''}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      ) : (
        <p class="dim">The model did not choose this token: it was given.</p>
      )}
    </section>
  );
} // prettier-ignore

const MAX_IN_LINE = 4;

// In the chat, of the selected token, or of that of the shown step.
export function ChosenLine({ store, session }: Props) {
  const { value } = useResource(chosenOf(session));
  const token = usePart(() => shownToken(store, session));
  const row = value?.rows.find((one) => one.token === token);
  if (!row?.chosen) return null;
  const others = alternativesOf(row).filter(({ isChosen }) => !isChosen).slice(0, MAX_IN_LINE);
  return (
    <p class="chosen-line" role="group" tabIndex={0} aria-label="The model's choice">
      <b class="mono">{tokenText(row.chosen)}</b> {chosenText(row)}
      {others.length > 0 && (
        <>
          . Instead:{' '}
          {others.map(({ id, text, probability }, i) => (
            <span key={id}>
              {i > 0 && ', '}
              <span class="mono">{tokenText({ text })}</span> {percent(probability)}
            </span>
          ))}
        </>
      )}
    </p>
  );
} // prettier-ignore

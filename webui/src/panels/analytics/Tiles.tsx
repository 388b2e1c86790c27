// The speed of the session beside the median of the other sessions of its model.
import { fileName, formatNs, formatSpeed, plural } from '../../format';
import type { Session } from '../../net/types';
import { quantile } from '../../quantile';
import { ok } from '../../result';
import type { OpenSession } from '../../state/session/open_session';
import { perSession } from '../../state/session/per_session';
import { finishedSteps } from '../../state/view/answer';
import { Resource } from '../../state/resource';
import { useResource } from '../../ui/hooks';
import { Failed } from '../../ui/States';

interface Tile {
  readonly id: string;
  readonly name: string;
  readonly hint: string;
  readonly value: (session: Session) => number | null;
  readonly text: (value: number) => string;
}

const TILES: readonly Tile[] = [
  {
    id: 'speed',
    name: 'generation',
    hint: 'Generated tokens after the first one, by the time from the first to the last one',
    value: ({ speed }) => speed?.tokens_per_second ?? null,
    text: formatSpeed,
  },
  {
    id: 'first_token',
    name: 'first token',
    hint: 'From the start of the session, after the queue, to the first generated token',
    value: ({ speed }) => speed?.first_token_ns ?? null,
    text: formatNs,
  },
  {
    id: 'prompt_speed',
    name: 'prompt',
    hint: 'Evaluated tokens of the prompt by the time of its steps',
    value: ({ speed }) => speed?.prompt_tokens_per_second ?? null,
    text: formatSpeed,
  },
  {
    id: 'sampling',
    name: 'choosing tokens',
    hint: 'Share of the time of the generation',
    value: ({ speed }) => speed?.sample_share ?? null,
    text: (share) => `${(100 * share).toFixed(1)} %`,
  },
  {
    id: 'tokens',
    name: 'tokens',
    hint: 'Tokens of the prompt and the answer',
    value: ({ tokens }) => tokens ?? null,
    text: (count) => plural(count, 'token'),
  },
];

const MAX_OTHERS = 200;

// The session and the other ones of its model: those with the same file of the same size.
const sessionsOfModel = perSession((session) => {
  const { api, reconnects } = session.context;
  return new Resource<{ readonly own: Session; readonly others: readonly Session[] }>({
    key: () => finishedSteps(session),
    load: async () => {
      const own = await api.session(session.id);
      if (!own.ok) return own;
      const { model } = own.value;
      if (!model) return ok({ own: own.value, others: [] });
      const file = fileName(model.path);
      const page = await api.sessions({ model: file, limit: MAX_OTHERS });
      if (!page.ok) return page;
      const others = page.value.sessions.filter(
        (one) => one.id !== session.id && one.model?.size === model.size && one.state !== 'running',
      );
      return ok({ own: own.value, others });
    },
    reconnects,
  });
});

export function Tiles({ session }: { session: OpenSession }) {
  const { value, error } = useResource(sessionsOfModel(session));
  if (error) return <Failed what="The sessions of this model cannot be read." error={error} />;
  if (!value) return null;
  const { own, others } = value;
  return (
    <dl class="tiles" aria-label="Session">
      {TILES.map(({ id, name, hint, value: of, text }) => {
        const here = of(own);
        const known = others.flatMap((one) => of(one) ?? []).sort((a, b) => a - b);
        const usual = quantile(known, 0.5);
        return (
          <div key={id} data-tile={id} title={hint}>
            <dt>{name}</dt>
            <dd>{here === null ? '–' : text(here)}</dd>
            <dd class="dim tile-usual">
              {usual === undefined
                ? 'no other session of this model'
                : `median of ${plural(known.length, 'other session')}: ${text(usual)}`}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

// A session whose run was changed at a stop, and the same request without the changes.
import type { Api } from '../../net/api';
import type { GenerateRequest, Session } from '../../net/types';
import type { DebugOptions } from '../request/chat';
import { changesOf, type Facts } from './changes';
import { isActive } from './open_session';
import type { ListedSession } from './session_list';
import { titleOf } from './session_list';

const MAX_CANDIDATES = 20;
const POLL_MS = 200;

const STOPS: Readonly<Record<keyof DebugOptions, true>> = {
  breakpoints: true,
  stop_at_first_op: true,
  hold_ms: true,
};

// What makes a request compute the same: all of it, but where it stops. The seed is that of the sampler.
function requestIn(facts: Facts): string {
  const isGreedy = facts['request.temperature'] === '0';
  return JSON.stringify(
    Object.entries(facts)
      .filter(([key]) => key.startsWith('request.') && !((key.split('.')[1] ?? '') in STOPS))
      .filter(([key]) => !isGreedy || key !== 'request.seed')
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

export const isSameUnaltered = (altered: Session, other: Session): boolean =>
  altered.facts !== undefined &&
  other.facts !== undefined &&
  other.id !== altered.id &&
  other.state === 'done' &&
  altered.model?.path === other.model?.path &&
  changesOf(other.facts).length === 0 &&
  requestIn(altered.facts) === requestIn(other.facts);

// A session of the same request that was not altered; null: there is none among those listed.
export async function unalteredOf(
  api: Pick<Api, 'session'>,
  altered: Session,
  listed: readonly ListedSession[],
): Promise<string | null> {
  const candidates = listed
    .filter((one) => one.id !== altered.id && titleOf(one) === titleOf(altered))
    .slice(0, MAX_CANDIDATES);
  for (const { id } of candidates) {
    const other = await api.session(id);
    if (other.ok && isSameUnaltered(altered, other.value)) return id;
  }
  return null;
}

// The same request again, without stops, with the seed that the altered run had.
export function unalteredRequest(request: GenerateRequest, facts: Facts): GenerateRequest {
  const again = Object.entries(request).filter(([key]) => !(key in STOPS));
  return {
    ...(Object.fromEntries(again) as GenerateRequest),
    seed: Number(facts['request.seed'] ?? -1),
  };
}

// Runs a request to its end. Returns its session; null: it failed.
export async function runToEnd(
  api: Pick<Api, 'generate' | 'run'>,
  request: GenerateRequest,
): Promise<string | null> {
  const begun = await api.generate(request);
  if (!begun.ok) return null;
  const { id } = begun.value;
  for (;;) {
    const run = await api.run(id);
    if (!run.ok) return null;
    if (!isActive(run.value.state)) return run.value.state === 'done' ? id : null;
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

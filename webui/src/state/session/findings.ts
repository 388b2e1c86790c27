// The findings of a session that is no longer running: the server decides and words them.
import type { Findings } from '../../net/types';
import { finishedSteps } from '../view/answer';
import { perSession } from './per_session';
import { Resource } from '../resource';

export const findingsOf = perSession((session) => {
  const { api, reconnects } = session.context;
  return new Resource<Findings>({
    key: () => finishedSteps(session),
    load: (signal) => api.findings(session.id, signal),
    reconnects,
  });
});

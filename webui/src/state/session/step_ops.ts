// The ops of the steps that were shown last. Several views ask for the same step, and playback asks
// for the next one in advance.
import type { ApiResult } from '../../net/api';
import type { Op } from '../../net/types';
import type { OpenSession } from './open_session';

const KEPT = 12;
const KEPT_OF_RUN = 3; // while it runs: each newest step is shown once, and is seldom wanted again

export class StepOps {
  private readonly session: OpenSession;
  private readonly kept = new Map<number, readonly Op[]>(); // the last used one last
  private readonly loading = new Set<number>();

  constructor(session: OpenSession) {
    this.session = session;
  }

  // The ops in execution order, if they have arrived.
  known(step: number): readonly Op[] | undefined {
    const ops = this.kept.get(step);
    if (ops) this.keep(step, ops);
    return ops;
  }

  async load(step: number, signal?: AbortSignal): ApiResult<readonly Op[]> {
    const known = this.known(step);
    if (known) return { ok: true, value: known };
    const { context, id, data } = this.session;
    const answer = await context.api.ops(id, step, signal);
    if (!answer.ok) return answer;
    const template = data.steps[step]?.template;
    if (typeof template === 'number') data.learnTemplate(template, answer.value);
    if (data.steps[step]) this.keep(step, answer.value); // the step is complete
    return answer;
  }

  // Loads the ops in the background.
  prefetch(step: number): void {
    if (this.kept.has(step) || this.loading.has(step)) return;
    this.loading.add(step);
    void this.load(step).finally(() => {
      this.loading.delete(step);
    });
  }

  private keep(step: number, ops: readonly Op[]): void {
    this.kept.delete(step);
    this.kept.set(step, ops);
    const most = this.session.active.peek() ? KEPT_OF_RUN : KEPT;
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= most) break;
      this.kept.delete(oldest);
    }
  }
}

// The progress of the run, and the Stop button.
import { formatCount, formatSpeed, plural } from '../../format';
import type { Run } from '../../net/types';
import type { OpenSession } from '../../state/session/open_session';
import { endingText } from '../../state/session/ending';
import { queuedText } from '../../state/session/queued';
import { runningOpText } from '../../state/session/first_graph';
import { limitOf, type RunLimit } from '../../state/request/run_limit';
import { generationSpeed, speedBasis, speedHint } from '../../state/session/speed';
import type { Store } from '../../state/store';
import { usePart } from '../../ui/hooks';

export function RunStrip({ store, session }: { store: Store; session: OpenSession }) {
  const run = session.run.value;
  const stopping = session.stopping.value;
  const active = session.active.value;
  const speed = usePart(() => {
    void session.feed.version.value;
    const info = session.info.value;
    const tokens = generationSpeed(
      session.data,
      info.is === 'ready' ? info.value : null,
      session.active.value,
    );
    return tokens === null ? '' : formatSpeed(tokens);
  });
  const { generated } = session.counts.value;
  const ending = usePart(() => (session.active.value ? endingText(store, session) : null));
  const running = usePart(() => {
    void session.feed.version.value;
    const isStopped = store.debug.stop.value !== null; // the bar of the debugger says where
    return run?.generated === 0 && !isStopped ? runningOpText(store, session) : null;
  });
  if (!run) return null;
  const { share, text } = progressOf({ ...run, generated }, limitOf(store, run), stopping);
  return (
    <section class="run-strip" data-state={run.state} aria-label="Progress">
      <div class="run-line" role="status">
        <span>{text}</span>
        {ending?.startsWith('interrupted') === true && <b class="bad">{ending}</b>}
        {running !== null && <span class="dim">{running}</span>}
        {speed !== '' && run.generated > 1 && (
          <span class="dim" title={speedHint(active)}>
            {speed} {speedBasis(active)}
          </span>
        )}
      </div>
      {active && (
        <div class="run-line">
          <progress
            max={1}
            {...(share === null ? {} : { value: share })}
            aria-label="Progress of the run"
          />
          {store.canAct.value && (
            <button
              type="button"
              class="stop"
              disabled={stopping}
              title="Stop the run; the recorded part is kept (press X twice)"
              onClick={() => {
                void session.stop();
              }}
            >
              {stopping ? 'Stopping…' : 'Stop'}
            </button>
          )}
        </div>
      )}
    </section>
  );
}

interface Progress {
  readonly share: number | null; // null: unknown
  readonly text: string;
}

const REASONS: Readonly<Record<string, string>> = {
  eos: 'end of text',
  stop: 'stop string found',
  length: 'token limit reached',
  context_full: 'context full',
};

export function progressOf(run: Run, limit: RunLimit, stopping: boolean): Progress {
  const tokens = plural(run.generated, 'generated token');
  switch (run.state) {
    case 'queued':
      return { share: null, text: queuedText(run) };
    case 'running':
      if (stopping) return { share: null, text: `Stopping after ${tokens}` };
      return run.generated === 0 ? readingOf(run) : generatingOf(run, limit);
    case 'done': {
      if (run.stop_reason === 'embedded') {
        return { share: 1, text: `Done: embedding of ${plural(run.prompt_tokens, 'token')}` };
      }
      const why = REASONS[run.stop_reason ?? ''];
      return { share: 1, text: why ? `Done: ${tokens}, ${why}` : `Done: ${tokens}` };
    }
    case 'cancelled':
      return { share: 1, text: `Stopped after ${tokens}` };
    case 'failed':
      return { share: 1, text: `Failed: ${run.error ?? 'no reason reported'}` };
  }
}

function readingOf({ prompt_done, prompt_tokens }: Run): Progress {
  if (prompt_tokens === 0) return { share: null, text: 'Processing the prompt' };
  return {
    share: prompt_done / prompt_tokens,
    text: `Processing the prompt: ${formatCount(prompt_done)} of ${plural(prompt_tokens, 'token')}`,
  };
}

function generatingOf({ generated }: Run, { tokens, isContext }: RunLimit): Progress {
  const most = plural(tokens, 'token');
  return {
    share: tokens > 0 ? generated / tokens : null,
    text: `Generating ${formatCount(generated)} of ${isContext ? `at most ${most} (context)` : most}`,
  };
}

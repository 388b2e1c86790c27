// How far the run is, and Stop.
import { useMemo } from 'preact/hooks';
import { formatCount, plural } from '../format';
import type { Run } from '../net/types';
import { isActive } from '../state/state';
import type { Store } from '../state/store';
import { speedOf } from '../state/speed';

export function RunStrip({ store }: { store: Store }) {
  const run = useMemo(() => store.select(({ open }) => open?.run ?? null), [store]).value;
  const stopping = useMemo(
    () => store.select(({ open }) => open?.stopping ?? false),
    [store],
  ).value;
  const version = useMemo(() => store.select(({ open }) => open?.version ?? 0), [store]).value;
  const speed = useMemo(() => speedOf(store.data), [store, version]);
  if (!run) return null;
  const active = isActive(run.state);
  const { share, text } = progressOf(run, stopping);
  return (
    <section class="run-strip" data-state={run.state} aria-label="Progress">
      <div class="run-line" role="status">
        <span>{text}</span>
        {speed !== null && run.generated > 1 && (
          <span class="dim">{speed >= 100 ? speed.toFixed(0) : speed.toFixed(1)} tokens/s</span>
        )}
      </div>
      {active && (
        <div class="run-line">
          <progress
            max={1}
            {...(share === null ? {} : { value: share })}
            aria-label="Progress of the run"
          />
          <button
            type="button"
            class="stop"
            disabled={stopping}
            onClick={() => {
              void store.stop();
            }}
          >
            {stopping ? 'Stopping…' : 'Stop'}
          </button>
        </div>
      )}
    </section>
  );
}

interface Progress {
  readonly share: number | null; // null: going on, but nobody knows how far
  readonly text: string;
}

const REASONS: Readonly<Record<string, string>> = {
  eos: 'end of text',
  stop: 'stop string found',
  length: 'limit reached',
  context_full: 'context full',
  embedded: 'embedding computed',
};

function progressOf(run: Run, stopping: boolean): Progress {
  const tokens = plural(run.generated, 'token');
  switch (run.state) {
    case 'queued':
      return { share: null, text: run.position > 0 ? `Queued, ${run.position} ahead` : 'Queued' };
    case 'running':
      if (stopping) return { share: null, text: `Stopping after ${tokens}` };
      if (run.generated === 0) {
        const share = run.prompt_tokens > 0 ? run.prompt_done / run.prompt_tokens : null;
        const of =
          run.prompt_tokens > 0
            ? ` ${formatCount(run.prompt_done)} of ${plural(run.prompt_tokens, 'token')}`
            : '';
        return { share, text: `Reading the prompt${of}` };
      }
      return {
        share: run.max_tokens > 0 ? run.generated / run.max_tokens : null,
        text: `Generating ${formatCount(run.generated)} of ${plural(run.max_tokens, 'token')}`,
      };
    case 'done': {
      const why = REASONS[run.stop_reason ?? ''];
      return { share: 1, text: why ? `Done: ${tokens}, ${why}` : `Done: ${tokens}` };
    }
    case 'cancelled':
      return { share: 1, text: `Stopped after ${tokens}` };
    case 'failed':
      return { share: 1, text: `Failed: ${run.error ?? 'no reason given'}` };
  }
}

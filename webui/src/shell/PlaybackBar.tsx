// Playback: the position in the session as steps and ops, its speed, the loop, and its video.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { formatNs, positionOf } from '../format';
import { durationOf } from '../net/types';
import type { OpenSession } from '../state/session/open_session';
import { opCount } from '../state/view/playback';
import { opsOf } from '../state/session/per_session';
import { opOf } from '../state/view/selection';
import { SPEEDS, speedName } from '../state/view/speeds';
import type { Store } from '../state/store';
import { IconButton } from '../ui/Button';
import { usePart, useResource } from '../ui/hooks';
import type { VideoRecording } from './video_recording';

export function PlaybackBar({ store }: { store: Store }) {
  const session = store.open.value;
  const hasSteps = usePart(() => {
    const open = store.open.value;
    void open?.feed.version.value;
    return (open?.data.steps.length ?? 0) > 0;
  });
  return session && hasSteps ? <Bar key={session.id} store={store} session={session} /> : null;
}

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
}

function Bar({ store, session }: Props) {
  const { playback, navigation } = store;
  const playing = playback.playing.value;
  const loop = usePart(() => navigation.view.value.loop);
  return (
    <section class="playback" aria-label="Playback">
      <IconButton
        icon="first"
        label="Previous op"
        hint=","
        onClick={() => {
          playback.moveOp(-1, 'coalesce');
        }}
      />
      <IconButton
        icon={playing ? 'pause' : 'play'}
        label={playing ? 'Pause' : 'Play'}
        hint="Space"
        onClick={() => {
          playback.toggle();
        }}
      />
      <IconButton
        icon="last"
        label="Next op"
        hint="."
        onClick={() => {
          playback.moveOp(1, 'coalesce');
        }}
      />
      <Speed store={store} />
      <Video store={store} session={session} />
      <IconButton
        icon="loop"
        label="Loop"
        hint="of the range, else of the session"
        pressed={loop}
        onClick={() => {
          navigation.change({ loop: !loop }, 'replace');
        }}
      />
      <Position store={store} session={session} />
      <Slider store={store} session={session} />
    </section>
  );
}

function Video({ store, session }: Props) {
  const video = useSignal<VideoRecording | null>(null);
  useEffect(
    () => () => {
      video.peek()?.stop();
    },
    [store, session],
  );
  const recording = video.value?.recording.value === true;
  const start = async (): Promise<void> => {
    const { VideoRecording: Recording } = await import('./video_recording');
    video.value ??= new Recording(store, session);
    video.value.start();
  };
  return (
    <IconButton
      icon="record"
      label={recording ? 'Stop the video' : 'Record a video'}
      hint={recording ? 'and save it' : 'of the range, else of the session, at this speed'}
      pressed={recording}
      onClick={() => {
        if (recording) video.peek()?.stop();
        else void start();
      }}
    />
  );
}

function Speed({ store }: Pick<Props, 'store'>) {
  const speed = usePart(() => store.navigation.view.value.speed);
  return (
    <select
      aria-label="Speed"
      title="Speed of playback, relative to the speed of the run. Slow motion: so that a step of the usual time takes about 4 seconds."
      value={speed === null ? '' : String(speed)}
      onChange={(event) => {
        const { value } = event.currentTarget;
        if (value === '') store.playback.chooseSlowMotion();
        else store.navigation.change({ speed: Number(value) }, 'replace');
      }}
    >
      <option value="">slow motion</option>
      {SPEEDS.map((one) => (
        <option key={one} value={String(one)}>
          {speedName(one)}
        </option>
      ))}
    </select>
  );
}

// "step 12 of 0–127, op 143 of 0–378: blk.5 ffn_down, MUL_MAT, 1.2 ms".
function Position({ store, session }: Props) {
  const ops = useResource(opsOf(session)).value;
  const index = usePart(() => opOf(store.navigation.view.value.selection));
  const step = session.step.value ?? 0;
  const steps = usePart(() => {
    void session.feed.version.value;
    return session.data.steps.length;
  });
  const count = opCount(session, step);
  const op = ops?.step === step ? ops.rows.find((one) => one.op === index) : undefined;
  // Also without an op, each part has its room: the slider stays under the pointer.
  return (
    <span class="playback-position">
      <span style={roomFor('step', steps)}>step {positionOf(step, steps)}</span>
      <span style={roomFor('op', count)}>{index !== null && `op ${positionOf(index, count)}`}</span>
      <span class="playback-op">
        {op && (
          <>
            <b class="mono">{op.tensor_name}</b> {op.operation_type} {formatNs(durationOf(op))}
          </>
        )}
      </span>
    </span>
  );
}

// As wide as the last one of `count`.
const roomFor = (what: string, count: number): { readonly minWidth: string } => ({
  minWidth: `max(108px, ${`${what} ${positionOf(Math.max(0, count - 1), count)}`.length}ch)`,
});

function Slider({ store, session }: Props) {
  const index = usePart(() => opOf(store.navigation.view.value.selection));
  const step = session.step.value ?? 0;
  const steps = usePart(() => {
    void session.feed.version.value;
    return session.data.steps.length;
  });
  const part = index === null ? 0 : (index + 0.5) / Math.max(1, opCount(session, step));
  return (
    <input
      type="range"
      class="playback-slider"
      aria-label="Position in the session"
      title="The steps of the session; between two steps, the ops of the step"
      aria-valuetext={`step ${positionOf(step, steps)}`}
      min={0}
      max={steps}
      step="any"
      value={step + Math.min(0.999, part)}
      onInput={(event) => {
        store.playback.seek(Number(event.currentTarget.value));
      }}
    />
  );
}
